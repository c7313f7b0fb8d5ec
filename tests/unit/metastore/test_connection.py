from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TFileObjectTransport, TMemoryBuffer, TTransportException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
)
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.plan.plan import CompactionType

FIRST, SECOND = MetastoreAddress("first"), MetastoreAddress("second")
ENTITY = Entity("sales", "orders")


class TaskTimeout(BaseException):
    """What Airflow raises into a task that runs too long."""


class BrokenTransport:
    """A connection on which every read ends with ``error``."""

    def __init__(self, error: BaseException) -> None:
        self.protocol = TBinaryProtocol(TMemoryBuffer())
        self.protocol.readMessageBegin = self._fail
        self.is_closed = False
        self._error = error

    def _fail(self) -> None:
        raise self._error

    def is_open(self) -> bool:
        return not self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def interrupt(self) -> None:
        pass


class Factory:
    """Hands out connections that accept everything and break on the first read."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.connections: list[BrokenTransport] = []
        self.addresses: list[MetastoreAddress] = []

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> BrokenTransport:
        self.addresses.append(address)
        self.connections.append(BrokenTransport(self.error))
        return self.connections[-1]


BROKEN = TTransportException(TTransportException.END_OF_FILE, "read 0 bytes")

REPEATED = {
    "databases": lambda client: client.databases(),
    "tables": lambda client: client.tables("sales"),
    "get_database": lambda client: client.get_database("sales"),
    "get_table": lambda client: client.get_table("sales", "orders"),
    "get_partition_names": lambda client: client.get_partition_names("sales", "orders"),
    "open_transactions": lambda client: client.open_transactions(),
    "valid_write_ids": lambda client: client.valid_write_ids(["sales.orders"], "5:9:::"),
    "heartbeat": lambda client: client.heartbeat(1),
    "abort": lambda client: client.abort(1),
    "check_lock": lambda client: client.check_lock(1),
    "show_locks": lambda client: client.show_locks(),
    "compactions": lambda client: client.compactions(),
    "set_hadoop_job_id": lambda client: client.set_hadoop_job_id(1, "job"),
}
SENT_ONCE = {
    "open_compaction_txn": lambda client: client.open_compaction_txn(),
    "commit": lambda client: client.commit(1),
    "lock_shared_read": lambda client: client.lock_shared_read(1, ENTITY),
    "compact": lambda client: client.compact(ENTITY, CompactionType.MAJOR),
    "find_next_compaction": lambda client: client.find_next_compaction("worker", None, "1"),
}


@pytest.mark.parametrize("call", REPEATED)
def test_a_call_that_may_be_repeated_is_tried_twice_at_each_address(call: str) -> None:
    factory = Factory(BROKEN)
    client = AcidMetastoreClient([FIRST, SECOND], transport_factory=factory)
    with pytest.raises(MetastoreUnavailableError, match="first:9083, second:9083"):
        REPEATED[call](client)
    assert factory.addresses == [FIRST, SECOND, FIRST, SECOND]
    assert all(connection.is_closed for connection in factory.connections)


@pytest.mark.parametrize("call", SENT_ONCE)
def test_a_call_that_must_not_be_repeated_is_sent_once(call: str) -> None:
    factory = Factory(BROKEN)
    client = AcidMetastoreClient([FIRST, SECOND], transport_factory=factory)
    with pytest.raises(MetastoreUnavailableError, match="carried the call out is unknown"):
        SENT_ONCE[call](client)
    assert factory.addresses == [FIRST]


def test_other_threads_begin_at_the_address_that_was_reached_last() -> None:
    class FirstIsDead(Factory):
        def connect(self, address: MetastoreAddress, timeout_seconds: float) -> BrokenTransport:
            connection = super().connect(address, timeout_seconds)
            if address == FIRST:
                raise BROKEN
            return connection

    factory = FirstIsDead(TApplicationException(6, "no disk"))
    client = AcidMetastoreClient([FIRST, SECOND], transport_factory=factory)
    for _ in range(3):
        with pytest.raises(MetastoreError, match="no disk"):
            client.databases()
        client = client.for_another_thread()
    assert factory.addresses == [FIRST, SECOND, SECOND, SECOND]


@pytest.mark.parametrize("error", [TaskTimeout(), KeyboardInterrupt()])
def test_a_call_cut_short_leaves_no_half_read_connection(error: BaseException) -> None:
    factory = Factory(error)
    client = AcidMetastoreClient([FIRST], transport_factory=factory)
    with pytest.raises(type(error)):
        client.databases()
    assert [connection.is_closed for connection in factory.connections] == [True]


def test_an_answer_that_is_no_text_is_an_error_on_a_closed_connection() -> None:
    factory = Factory(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    client = AcidMetastoreClient([FIRST], transport_factory=factory)
    with pytest.raises(MetastoreError, match="not UTF-8"):
        client.databases()
    assert [connection.is_closed for connection in factory.connections] == [True]


@pytest.mark.parametrize("error", [ttypes.MetaException("no disk"), TApplicationException(6, "no disk")])
def test_an_error_of_the_server_is_passed_on_and_the_connection_kept(error: Exception) -> None:
    factory = Factory(error)
    client = AcidMetastoreClient([FIRST], transport_factory=factory)
    with pytest.raises(MetastoreError, match="no disk"):
        client.databases()
    assert [connection.is_closed for connection in factory.connections] == [False]


def test_no_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no address"):
        AcidMetastoreClient([])


@pytest.fixture
def old_server() -> Iterator[MetastoreAddress]:
    """A server that knows ``getVersion`` and no other method, as Thrift servers say it."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            protocol = TBinaryProtocol(TFileObjectTransport(stream))
            while stream.peek(1):
                name, _, sequence = protocol.readMessageBegin()
                TApplicationException().read(protocol)
                protocol.readMessageEnd()
                if name == "getVersion":
                    protocol.writeMessageBegin(name, TMessageType.REPLY, sequence)
                    protocol.writeStructBegin("result")
                    protocol.writeFieldBegin("success", 11, 0)
                    protocol.writeString("3.1.3")
                    protocol.writeFieldStop()
                else:
                    protocol.writeMessageBegin(name, TMessageType.EXCEPTION, sequence)
                    TApplicationException(1, f"Invalid method name: '{name}'").write(protocol)
                stream.flush()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield MetastoreAddress("127.0.0.1", listener.getsockname()[1])
        thread.join()


def test_a_server_of_another_version_is_named_as_such(old_server: MetastoreAddress) -> None:
    with AcidMetastoreClient([old_server]) as client:
        with pytest.raises(MetastoreVersionError, match="Invalid method name: 'find_next_compact2'"):
            client.find_next_compaction("worker", "pool", "1")
        hive = client.probe()
    assert hive == Hive(3, "3.1.3", has_pools=False)
