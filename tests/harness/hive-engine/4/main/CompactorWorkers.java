package org.apache.hadoop.hive.ql.txn.compactor;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;

/**
 * Hive 4's own Workers, as HiveServer2 runs them, in this process.
 *
 * <p>Argument: how many there are to be from now on. It lies in Hive's package because their conf is open to nobody
 * else.
 */
public final class CompactorWorkers {
  private static final List<Worker> WORKERS = new ArrayList<>();

  private static AtomicBoolean stop = new AtomicBoolean();

  public static void run(HiveConf conf, String[] arguments) throws Exception {
    stop.set(true);
    for (Worker worker : WORKERS) {
      worker.interrupt();
    }
    for (Worker worker : WORKERS) {
      worker.join();
    }
    WORKERS.clear();
    stop = new AtomicBoolean();
    for (int number = 0; number < Integer.parseInt(arguments[0]); number++) {
      Worker worker = new Worker();
      worker.setConf(new HiveConf(conf));
      worker.init(stop);
      WORKERS.add(worker);
    }
    for (Worker worker : WORKERS) {
      worker.start();
    }
  }
}
