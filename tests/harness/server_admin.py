"""An administrator of any of the tests' metastores, whatever its protection asks of a client."""

from __future__ import annotations

from hmsclient.genthrift.hive_metastore.ThriftHiveMetastore import Client
from typing_extensions import Self

from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.metastore_server import UNPROTECTED, MetastoreServer
from tests.harness.thrift_admin import TIMEOUT_SECONDS, ThriftAdmin
from tests.harness.thrift_calls import ThriftCalls


class ProtectedAdmin(ThriftAdmin):
    """The same calls over the connection that the metastore's protection asks for."""

    def __init__(self, server: MetastoreServer) -> None:
        super().__init__(server.host, server.port)
        self._server = server

    def __enter__(self) -> Self:
        server = self._server
        address = MetastoreAddress(server.host, server.port)
        self._transport = server.protection.access.connect(address, TIMEOUT_SECONDS)
        self._client = Client(self._transport.protocol)
        self._calls = ThriftCalls(self._transport.protocol)
        return self


def admin_of(server: MetastoreServer) -> ThriftAdmin:
    """The administrator of a metastore."""
    return ThriftAdmin(server.host, server.port) if server.protection is UNPROTECTED else ProtectedAdmin(server)
