package org.apache.hadoop.hive.ql.txn.compactor;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.common.ValidCompactorWriteIdList;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.api.CompactionType;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.txn.CompactionInfo;
import org.apache.hadoop.hive.metastore.txn.TxnStore;

/**
 * The job by which Hive 3's Worker merges a directory, without the Worker's bookkeeping around it.
 *
 * <p>Arguments: location, MAJOR or MINOR, highest write id, columns as NAME:TYPE;NAME:TYPE, table properties as
 * NAME=VALUE. It lies in Hive's package because the Worker's way to the job is open to nobody else.
 */
public final class CompactionJob {
  public static void run(HiveConf conf, String[] arguments) throws Exception {
    StorageDescriptor storage = storage(arguments[0], columns(arguments[3]));
    Table table = new Table();
    table.setDbName("d");
    table.setTableName("t");
    table.setSd(storage);
    table.setParameters(properties(arguments));
    CompactionInfo request = new CompactionInfo("d", "t", null, CompactionType.valueOf(arguments[1]));
    request.runAs = System.getProperty("user.name");
    String writeIds = "d.t:" + arguments[2] + ":" + Long.MAX_VALUE + "::";
    Worker.StatsUpdater noStatistics = Worker.StatsUpdater.init(request, new ArrayList<>(), conf, request.runAs);
    new CompactorMR()
        .run(
            new HiveConf(conf), "compaction", table, null, storage, new ValidCompactorWriteIdList(writeIds), request,
            noStatistics, silentStore());
  }

  private static StorageDescriptor storage(String location, List<FieldSchema> columns) {
    StorageDescriptor storage = new StorageDescriptor();
    storage.setLocation(location);
    storage.setCols(columns);
    storage.setInputFormat("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat");
    storage.setOutputFormat("org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat");
    storage.setNumBuckets(-1);
    storage.setBucketCols(new ArrayList<>());
    storage.setSortCols(new ArrayList<>());
    storage.setParameters(new HashMap<>());
    storage.setSerdeInfo(new SerDeInfo("t", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", new HashMap<>()));
    return storage;
  }

  private static List<FieldSchema> columns(String text) {
    List<FieldSchema> columns = new ArrayList<>();
    for (String column : text.split(";")) {
      String[] pair = column.split(":", 2);
      columns.add(new FieldSchema(pair[0], pair[1], ""));
    }
    return columns;
  }

  private static Map<String, String> properties(String[] arguments) {
    Map<String, String> properties = new HashMap<>();
    properties.put("transactional", "true");
    properties.put("transactional_properties", "default");
    for (int place = 4; place < arguments.length; place++) {
      String[] pair = arguments[place].split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    return properties;
  }

  /** The job's id is noted with the request, which there is none of. */
  private static TxnStore silentStore() {
    return (TxnStore)
        Proxy.newProxyInstance(
            TxnStore.class.getClassLoader(), new Class<?>[] {TxnStore.class}, (store, method, arguments) -> null);
  }
}
