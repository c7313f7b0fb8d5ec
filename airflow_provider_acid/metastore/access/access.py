"""All that an Airflow connection says of how its metastore is to be talked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thrift.transport.TTransport import TTransportBase

from airflow_provider_acid.metastore.access import kerberos, password
from airflow_provider_acid.metastore.access.http import Http, HttpCalls
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.access.tls import Tls, TlsSocket
from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError
from airflow_provider_acid.metastore.thrift.transport import (
    BufferedCalls,
    CallSocket,
    MetastoreAddress,
    SocketTransport,
)

if TYPE_CHECKING:
    from airflow_provider_acid.metastore.access.sasl import SaslMechanism


@dataclass(frozen=True)
class MetastoreAccess:
    """Opens connections; a :class:`~..thrift.transport.TransportFactory`.

    :param tls: None for connections without TLS.
    :param kerberos: None for a client without a ticket.
    :param password: None for a client without one.
    :param http: None for Thrift without HTTP around it; else there is neither of the two before.
    """

    tls: Tls | None = None
    kerberos: Kerberos | None = None
    password: Password | None = None
    http: Http | None = None

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        """See :meth:`~..thrift.transport.TransportFactory.connect`."""
        tls = self.tls
        stream = CallSocket(address, timeout_seconds) if tls is None else TlsSocket(address, timeout_seconds, tls)
        calls = self._calls(stream)
        transport = SocketTransport(stream, calls)
        try:
            calls.open()
        except BaseException:
            transport.close()
            raise
        return transport

    def _calls(self, stream: CallSocket) -> TTransportBase:
        if self.kerberos is not None:
            conversation = self.kerberos.conversation(stream.host)
            return _inside_sasl(stream, kerberos.MECHANISM, conversation, "kerberos_principal", self.kerberos.remedy)
        if self.password is not None:
            return _inside_sasl(stream, password.MECHANISM, self.password, "login and password", password.REMEDY)
        return BufferedCalls(stream if self.http is None else HttpCalls(stream, self.http))


def _inside_sasl(stream: CallSocket, name: str, mechanism: SaslMechanism, setting: str, remedy: str) -> TTransportBase:
    try:
        from airflow_provider_acid.metastore.access.sasl import SaslCalls
    except ImportError as error:
        raise UnusableConnectionError(f"SASL needs a package that is missing ({error})", password.INSTALL) from error
    return SaslCalls(stream, name, mechanism, setting, remedy)
