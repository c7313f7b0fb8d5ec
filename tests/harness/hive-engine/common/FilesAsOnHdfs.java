import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** The local file system without .crc files, and with listings that say all there is to say, as on HDFS. */
public class FilesAsOnHdfs extends LocalFileSystem {
  public FilesAsOnHdfs() {
    super(new ToldFiles());
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    setWriteChecksum(false); // Reading keeps its checks: Parquet needs the stream that they bring along.
  }

  /** Else owner and permissions are asked for later, by "ls", when a Cleaner may have removed the file. */
  private static class ToldFiles extends RawLocalFileSystem {
    private static final FsPermission ALL = new FsPermission((short) 0777);

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      return Arrays.stream(super.listStatus(path)).map(ToldFiles::told).toArray(FileStatus[]::new);
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
      return told(super.getFileStatus(path));
    }

    private static FileStatus told(FileStatus asked) {
      String user = System.getProperty("user.name");
      return new FileStatus(
          asked.getLen(), asked.isDirectory(), asked.getReplication(), asked.getBlockSize(),
          asked.getModificationTime(), asked.getAccessTime(), ALL, user, user, asked.getPath());
    }
  }
}
