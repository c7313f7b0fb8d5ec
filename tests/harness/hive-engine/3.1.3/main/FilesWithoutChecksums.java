import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;

/** The local file system without .crc files, so that table directories look as they do on HDFS. */
public class FilesWithoutChecksums extends LocalFileSystem {
  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    setWriteChecksum(false); // Reading keeps its checks: Parquet needs the stream that they bring along.
  }
}
