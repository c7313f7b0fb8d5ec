package org.apache.hadoop.hive.metastore;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;
import org.apache.hadoop.hive.metastore.security.MetastoreDelegationTokenManager;
import org.apache.hadoop.hive.metastore.security.TUGIContainingTransport;
import org.apache.hadoop.hive.metastore.utils.MetaStoreUtils;
import org.apache.hadoop.hive.metastore.utils.SecurityUtils;
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
    TThreadPoolServer.Args options = new TThreadPoolServer.Args(socket(conf, port));
    options.protocolFactory(new TBinaryProtocol.Factory());
    if (MetastoreConf.getBoolVar(conf, ConfVars.USE_THRIFT_SASL)) {
      authenticate(conf, options);
    } else {
      options.processor(new TUGIBasedProcessor<>(HiveMetaStore.newRetryingHMSHandler("metastore", conf, false)));
      options.transportFactory(new TUGIContainingTransport.Factory());
    }
    TServer server = new TThreadPoolServer(options);
    server.setServerEventHandler(new ClosedConnections());
    if (MetastoreConf.getBoolVar(conf, ConfVars.COMPACTOR_INITIATOR_ON)) {
      startThreads(conf);
    }
    server.serve();
  }

  private static TServerSocket socket(Configuration conf, int port) throws Exception {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    if (!MetastoreConf.getBoolVar(conf, ConfVars.USE_SSL)) {
      return new TServerSocket(new InetSocketAddress(loopback, port));
    }
    String keys = MetastoreConf.getVar(conf, ConfVars.SSL_KEYSTORE_PATH);
    String password = MetastoreConf.getPassword(conf, ConfVars.SSL_KEYSTORE_PASSWORD);
    return SecurityUtils.getServerSSLSocket(loopback.getHostAddress(), port, keys, password, List.of("SSLv2", "SSLv3"));
  }

  /** Kerberos, and delegation tokens for those who have them, as the main class of Hive 3 asks for them. */
  private static void authenticate(Configuration conf, TThreadPoolServer.Args options) throws Exception {
    HadoopThriftAuthBridge.Server bridge =
        HadoopThriftAuthBridge.getBridge()
            .createServer(
                MetastoreConf.getVar(conf, ConfVars.KERBEROS_KEYTAB_FILE),
                MetastoreConf.getVar(conf, ConfVars.KERBEROS_PRINCIPAL),
                MetastoreConf.getVar(conf, ConfVars.CLIENT_KERBEROS_PRINCIPAL));
    HiveMetaStore.HMSHandler handler = new HiveMetaStore.HMSHandler("metastore", conf, false);
    MetastoreDelegationTokenManager tokens = new MetastoreDelegationTokenManager();
    tokens.startDelegationTokenSecretManager(conf, handler, HadoopThriftAuthBridge.Server.ServerMode.METASTORE);
    bridge.setSecretManager(tokens.getSecretManager());
    boolean tls = MetastoreConf.getBoolVar(conf, ConfVars.USE_SSL);
    options.transportFactory(bridge.createTransportFactory(MetaStoreUtils.getMetaStoreSaslProperties(conf, tls)));
    IHMSHandler retrying = RetryingHMSHandler.getProxy(conf, handler, false);
    options.processor(bridge.wrapProcessor(new ThriftHiveMetastore.Processor<>(retrying)));
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
