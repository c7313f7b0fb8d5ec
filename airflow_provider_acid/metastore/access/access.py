"""All that an Airflow connection says of how its metastore is to be talked to."""

from __future__ import annotations

from dataclasses import dataclass

from thrift.transport.TTransport import TTransportBase

from airflow_provider_acid.metastore.access.kerberos import MECHANISM, Kerberos
from airflow_provider_acid.metastore.access.tls import Tls, TlsSocket
from airflow_provider_acid.metastore.thrift.transport import (
    BufferedCalls,
    CallSocket,
    MetastoreAddress,
    SocketTransport,
)


@dataclass(frozen=True)
class MetastoreAccess:
    """Opens connections; a :class:`~..thrift.transport.TransportFactory`.

    :param tls: None for connections without TLS.
    :param kerberos: None for a client that proves nothing of itself.
    """

    tls: Tls | None = None
    kerberos: Kerberos | None = None

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        """See :meth:`~..thrift.transport.TransportFactory.connect`."""
        tls = self.tls
        stream = CallSocket(address, timeout_seconds) if tls is None else TlsSocket(address, timeout_seconds, tls)
        calls = BufferedCalls(stream) if self.kerberos is None else self._inside_sasl(self.kerberos, stream)
        transport = SocketTransport(stream, calls)
        try:
            calls.open()
        except BaseException:
            transport.close()
            raise
        return transport

    @staticmethod
    def _inside_sasl(kerberos: Kerberos, stream: CallSocket) -> TTransportBase:
        first = kerberos.conversation(stream.host)
        # Its library comes with the extra [kerberos], which the line above looks for.
        from airflow_provider_acid.metastore.access.sasl import SaslCalls

        return SaslCalls(stream, MECHANISM, lambda: first, kerberos.remedy)
