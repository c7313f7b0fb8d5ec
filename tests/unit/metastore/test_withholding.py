"""Rows are kept from Hive's own Cleaner in the metastore's own database, or not completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select
from sqlalchemy.engine import Connection

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.exceptions import ConfigurationError, OwnershipLostError
from airflow_provider_acid.metastore.database.database import HiveTable
from airflow_provider_acid.metastore.hive4 import by_sql
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

ID, TXN, ME = 7, 40, "airflow@h-acid:me:1"
ENTITY = Entity("d", "t")
CLAIM = ClaimedCompaction(CompactionInfo(ID, ENTITY, "major", ME), ME, TXN)


class Database:
    """With one row in the queue."""

    subject = "metastore database hive on db"

    def __init__(self, id: int, txn_id: int) -> None:
        names = ("CQ_ID", "CQ_TXN_ID", "CQ_RETRY_RETENTION", "CQ_COMMIT_TIME")
        self.queue = Table("COMPACTION_QUEUE", MetaData(), *(Column(name, Integer) for name in names))
        self.engine = create_engine("sqlite://")
        self.queue.create(self.engine)
        self.write("row", lambda connection: connection.execute(insert(self.queue).values((id, txn_id, 0, None))))

    def table(self, name: str, required: Iterable[str] = ()) -> HiveTable:
        return HiveTable(self.queue, {column.name: column for column in self.queue.columns})

    def write(self, subject: str, work: Callable[[Connection], Any]) -> Any:
        with self.engine.begin() as connection:
            return work(connection)

    read = write


class Server:
    """A metastore that has the claim."""

    def __init__(self, worker_id: str) -> None:
        self.row = CompactionRow(ID, ENTITY, "major", CompactionState.WORKING, worker_id, txn_id=TXN)
        self.row = self.row if worker_id == ME else CompactionRow(ID, ENTITY, "major", CompactionState.FAILED)
        self.compacted: list[int] = []
        self.settings: dict[str, str] = {}
        self.registered: list[tuple[int, str, tuple[int, ...]]] = []

    def compactions(self, **wanted: object) -> list[CompactionRow]:
        return [self.row]

    def config_value(self, name: str) -> str:
        return self.settings.get(name, "")

    def register_reader(self, txn_id: int, full_table_name: str) -> None:
        self.registered.append((txn_id, full_table_name, tuple(self.compacted)))

    def mark_compacted(self, info: CompactionInfo) -> None:
        self.compacted.append(info.id)


def complete(server: Server, database: Database) -> None:
    ThriftCompactionQueue(cast(Any, server), HIVE_4, cast(Any, database)).complete(CLAIM)


def test_a_row_is_withheld_before_it_is_ready_for_cleaning() -> None:
    server, database = Server(ME), Database(ID, TXN)
    complete(server, database)
    found = database.read("row", lambda connection: connection.execute(select(database.queue)).one())
    assert (tuple(found), server.compacted) == ((ID, TXN, by_sql.WITHHELD_MS, 0), [ID])


@pytest.mark.parametrize(("id", "txn_id"), [(ID, TXN + 1), (ID + 1, TXN)])
def test_in_the_database_of_another_metastore_nothing_is_completed(id: int, txn_id: int) -> None:
    server = Server(ME)
    with pytest.raises(ConfigurationError, match="name the metastore's own database"):
        complete(server, Database(id, txn_id))
    assert server.compacted == []


def test_a_row_that_is_gone_is_called_lost() -> None:
    with pytest.raises(OwnershipLostError):
        complete(Server("somebody else"), Database(ID + 1, TXN))


@pytest.mark.parametrize(("setting", "registered"), [("true", [(TXN, "d.t", ())]), ("false", []), ("", [])])
def test_an_attempt_is_registered_as_a_reader_before_its_request_is_marked(
    setting: str, registered: list[tuple[int, str, tuple[int, ...]]]
) -> None:
    """Where Hive's Cleaner waits for nobody else, it takes transactions that are open for committed."""
    server = Server(ME)
    server.settings["metastore.txn.use.minhistorywriteid"] = setting
    complete(server, Database(ID, TXN))
    assert (server.registered, server.compacted) == (registered, [ID])
