"""Replies of metastores 3.1.3 and 4.0.1, as the client receives them through its own transport.

A document is a method's name, a line feed, and the bytes of its reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import (
    BufferedCalls,
    CallSocket,
    MetastoreAddress,
    SocketTransport,
)
from airflow_provider_acid.metastore.thrift.txns import _write_ids, txn_of
from airflow_provider_acid.metastore.values import CompactionInfo
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.fuzzing.subject import Subject

FOLDER = Path(__file__).parent

_ENTITY = Entity("d", "t", "p=a")
_NAMES = structs.GetValidWriteIdsRequest(full_table_names=["d.t"], valid_txn_list="5:9:::")
_INFO = CompactionInfo(1, _ENTITY, "major")

CALLS: dict[str, Callable[[AcidMetastoreClient], object]] = {
    "abort_txn": lambda client: client.abort(1),
    "check_lock": lambda client: client.check_lock(1, 1),
    "commit_txn": lambda client: client.commit(1),
    "compact2": lambda client: client.compact(_ENTITY, CompactionType.MAJOR),
    "find_next_compact2": lambda client: client.find_next_compaction("worker", None, "1"),
    "getVersion": lambda client: client._invoke("metastore", methods.GET_VERSION, repeatable=True),
    "get_all_databases": lambda client: client.databases(),
    "get_config_value": lambda client: client.config_value("metastore.warehouse.dir"),
    "get_database": lambda client: client.get_database("d"),
    "get_open_txns": lambda client: client.open_transactions(),
    "get_open_txns_info": lambda client: [txn_of(info, None) for info in client._open_txns_info().open_txns],
    "get_open_txns_req": lambda client: client.open_transactions(),
    "get_partition_names": lambda client: client.get_partition_names("d", "t"),
    "get_partitions_by_names": lambda client: list(client.partition_locations("d", "t", ["p=a"])),
    "get_table_objects_by_name_req": lambda client: client._tables_of("d", ["t"]),
    "get_table_req": lambda client: client.get_table("d", "t"),
    "get_tables": lambda client: client.tables("d"),
    "get_valid_write_ids": lambda client: [
        _write_ids(table)
        for table in client._invoke("d.t", methods.GET_VALID_WRITE_IDS, _NAMES, repeatable=True).tables
    ],
    "heartbeat": lambda client: client.heartbeat(1),
    "lock": lambda client: client.lock_shared_read(1, _ENTITY),
    "open_txns": lambda client: client.open_compaction_txn(),
    "set_hadoop_jobid": lambda client: client.set_hadoop_job_id(1, "job"),
    "show_compact": lambda client: client.compactions(),
    "show_locks": lambda client: client.show_locks(),
    "update_compactor_state": lambda client: client.update_compactor_state(_INFO, 1),
}
"""How each call of the wire is made."""


class Recorded:
    """A socket's handle with a reply in it; what is sent to it goes nowhere."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = self._reply[:size]
        if not flags:
            self._reply = self._reply[size:]
        return data

    def sendall(self, data: bytes) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        pass

    def gettimeout(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


class _Replies:
    """Opens connections over each of which the same reply comes; counts its bytes and goes."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        socket = CallSocket(address, timeout_seconds)
        socket.setHandle(Recorded(self._reply))
        return SocketTransport(socket, BufferedCalls(socket))


def seeds() -> Sequence[bytes]:
    """All recorded replies."""
    files = sorted(file for file in FOLDER.iterdir() if file.name[:2] in ("3-", "4-"))
    return [file.name[2:].encode() + b"\n" + file.read_bytes() for file in files]


def read(document: bytes) -> None:
    """What comes out of a reply is used up to where it has become this package's own values."""
    name, _, reply = document.partition(b"\n")
    call = CALLS.get(name.decode("latin-1"), CALLS["get_table_req"])
    client = AcidMetastoreClient([MetastoreAddress("recorded")], transport_factory=_Replies(reply), user="fuzz")
    if name == b"get_open_txns":
        client._tells_types = False
    call(client)


SUBJECT = Subject("replies", seeds, read)
