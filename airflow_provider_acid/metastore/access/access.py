"""All that an Airflow connection says of how its metastore is to be talked to."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_acid.metastore.access.tls import Tls, TlsSocket
from airflow_provider_acid.metastore.thrift.transport import CallSocket, MetastoreAddress, SocketTransport


@dataclass(frozen=True)
class MetastoreAccess:
    """Opens connections; a :class:`~..thrift.transport.TransportFactory`.

    :param tls: None for connections without TLS.
    """

    tls: Tls | None = None

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        """See :meth:`~..thrift.transport.TransportFactory.connect`."""
        tls = self.tls
        stream = CallSocket(address, timeout_seconds) if tls is None else TlsSocket(address, timeout_seconds, tls)
        transport = SocketTransport(stream)
        try:
            stream.open()
        except BaseException:
            transport.close()
            raise
        return transport
