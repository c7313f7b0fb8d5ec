package org.apache.hadoop.hive.metastore;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.security.TUGIContainingTransport;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;

/**
 * Hive 3's metastore on the loopback interface; the main class of Hive 3 listens on all of them, without a choice.
 *
 * <p>Usage: LoopbackMetastore -p PORT
 */
public final class LoopbackMetastore {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = MetastoreConf.newMetastoreConf();
    int port = Integer.parseInt(arguments[1]);
    TServerSocket socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    TServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor(new TUGIBasedProcessor<>(HiveMetaStore.newRetryingHMSHandler("metastore", conf, false)))
                .transportFactory(new TUGIContainingTransport.Factory())
                .protocolFactory(new TBinaryProtocol.Factory()));
    server.setServerEventHandler(new ClosedConnections());
    if (MetastoreConf.getBoolVar(conf, MetastoreConf.ConfVars.COMPACTOR_INITIATOR_ON)) {
      startThreads(conf);
    }
    server.serve();
  }

  /** Initiator, Cleaner, and the reaper of dead transactions, as the main class of Hive 3 starts them. */
  private static void startThreads(Configuration conf) throws ReflectiveOperationException {
    Lock lock = new ReentrantLock();
    Method start =
        HiveMetaStore.class.getDeclaredMethod(
            "startMetaStoreThreads", Configuration.class, Lock.class, Condition.class, AtomicBoolean.class);
    start.setAccessible(true);
    start.invoke(null, conf, lock, lock.newCondition(), new AtomicBoolean(true));
  }

  /** The threads of the server are used again: each connection gets a database session of its own. */
  private static final class ClosedConnections implements TServerEventHandler {
    @Override
    public void preServe() {}

    @Override
    public ServerContext createContext(TProtocol input, TProtocol output) {
      return null;
    }

    @Override
    public void deleteContext(ServerContext context, TProtocol input, TProtocol output) {
      RawStore store = HiveMetaStore.HMSHandler.getRawStore();
      if (store != null) {
        store.shutdown();
        HiveMetaStore.HMSHandler.removeRawStore();
      }
    }

    @Override
    public void processContext(ServerContext context, TTransport input, TTransport output) {}
  }
}
