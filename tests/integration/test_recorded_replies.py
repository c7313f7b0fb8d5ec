"""The replies that fuzzing damages are those of real metastores; one that is missing is recorded anew.

Errors are left out: fuzzing takes what it damages to be right.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TMessageType

from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.metastore.thrift import connection, methods
from airflow_provider_acid.metastore.thrift.exchange import ask
from airflow_provider_acid.metastore.thrift.transport import CallSocket
from airflow_provider_acid.metastore.thrift.wire import Method
from airflow_provider_acid.metastore.values import CompactionInfo
from airflow_provider_acid.plan.plan import CompactionType
from tests.fuzz.replies import CALLS, FOLDER
from tests.integration.compaction_site import ON_BOTH_METASTORES, Site


class Recorder:
    """The bytes of the first reply to each method."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.replies: dict[str, bytes] = {}
        self._reply = bytearray()
        read: Callable[[CallSocket, int], bytes] = CallSocket.read

        def recording_read(socket: CallSocket, size: int) -> bytes:
            data = read(socket, size)
            self._reply += data
            return data

        def recording_ask(protocol: TProtocolBase, number: int, method: Method, arguments: tuple[object, ...]) -> Any:
            self._reply.clear()
            try:
                return ask(protocol, number, method, arguments)
            finally:
                reply = bytes(self._reply)
                numbered = 8 + int.from_bytes(reply[4:8], "big")
                # Fuzzing asks each with the number 1.
                self.replies.setdefault(method.name, reply[:numbered] + b"\0\0\0\1" + reply[numbered + 4 :])

        monkeypatch.setattr(CallSocket, "read", recording_read)
        monkeypatch.setattr(connection, "ask", recording_ask)


@ON_BOTH_METASTORES
def test_the_recorded_replies_are_those_of_real_metastores(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    table = site.table("parted", partitions=["p=a", "p=b"])
    aborted = table.write("p=a")
    aborted.abort()
    reader = site.reader(table, "p=a")
    recorder = Recorder(monkeypatch)
    client, entity = site.client, table.entity("p=a")
    client.open_transactions()
    client._invoke("open transactions", methods.GET_OPEN_TXNS, repeatable=True)
    names = client.get_partition_names(entity.database, entity.table)
    client.get_partitions(entity.database, entity.table, names)
    client.databases()
    list(client.table_locations())
    client.get_table(entity.database, entity.table)
    client.get_database(entity.database)
    client.probe()
    client.valid_write_ids([entity.full_table_name], site.admin.transactions().as_valid_txn_list())
    asked = client.compact(entity, CompactionType.MAJOR)
    client.compactions()
    for txn in (client.open_compaction_txn(), client.open_compaction_txn()):
        client.transactions()
        lock = client.lock_shared_read(txn, entity)
        client.check_lock(lock.lock_id, txn)
        client.heartbeat(txn)
        client.config_value("metastore.warehouse.dir")
        (client.commit if txn % 2 else client.abort)(txn)
    with suppress(AcidError):
        client.set_hadoop_job_id(asked.id, "job")
    with suppress(AcidError):
        client.find_next_compaction("worker", None, "1")
    (row,) = client.compactions(id=asked.id)
    with suppress(AcidError):
        client.update_compactor_state(CompactionInfo.of_row(row), reader)
    assert set(recorder.replies) == set(CALLS)
    version = "3" if site.renames_publish else "4"
    for name, reply in recorder.replies.items():
        if reply[3] != TMessageType.REPLY:
            continue
        file = FOLDER / f"{version}-{name}"
        if not file.exists():
            file.write_bytes(reply)
        assert file.read_bytes()[:5] == reply[:5], name
