import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hive.streaming.HiveStreamingConnection;
import org.apache.hive.streaming.StrictDelimitedInputWriter;

/**
 * Hive's streaming API, one connection at a time.
 *
 * <p>"open DATABASE TABLE SIZE" takes a batch of so many transactions; "commit ROW..." and "abort ROW..." are one
 * transaction each, rows in the form "1,a"; "begin ROW..." leaves one open; "close" ends all.
 */
public final class StreamingWriter {
  private static HiveStreamingConnection connection;

  public static void run(HiveConf conf, String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "open":
        connection =
            HiveStreamingConnection.newBuilder()
                .withDatabase(arguments[1])
                .withTable(arguments[2])
                .withTransactionBatchSize(Integer.parseInt(arguments[3]))
                .withRecordWriter(StrictDelimitedInputWriter.newBuilder().withFieldDelimiter(',').build())
                .withHiveConf(new HiveConf(conf))
                .connect();
        break;
      case "close":
        connection.close();
        break;
      default:
        transaction(arguments);
    }
  }

  private static void transaction(String[] arguments) throws Exception {
    connection.beginTransaction();
    for (String row : Arrays.copyOfRange(arguments, 1, arguments.length)) {
      connection.write(row.getBytes(StandardCharsets.UTF_8));
    }
    if (arguments[0].equals("commit")) {
      connection.commitTransaction();
    } else if (arguments[0].equals("abort")) {
      connection.abortTransaction();
    }
  }
}
