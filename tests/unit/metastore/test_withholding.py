"""Rows are kept from Hive's own Cleaner in the metastore's own database, or nothing is merged."""

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
CLAIM = ClaimedCompaction(CompactionInfo(ID, ENTITY, "major", ME), ME)


class Database:
    """With one row in the queue."""

    subject = "metastore database hive on db"

    def __init__(self, id: int, txn_id: int) -> None:
        names = ("CQ_ID", "CQ_TXN_ID", "CQ_RETRY_RETENTION")
        self.queue = Table("COMPACTION_QUEUE", MetaData(), *(Column(name, Integer) for name in names))
        self.engine = create_engine("sqlite://")
        self.queue.create(self.engine)
        self.write("row", lambda connection: connection.execute(insert(self.queue).values((id, txn_id, 0))))

    def table(self, name: str, required: Iterable[str] = ()) -> HiveTable:
        return HiveTable(self.queue, {column.name: column for column in self.queue.columns})

    def write(self, subject: str, work: Callable[[Connection], Any]) -> Any:
        with self.engine.begin() as connection:
            return work(connection)

    read = write


class Server:
    """A metastore that has the claim, or lost it while it recorded something."""

    def __init__(self, *, loses: bool = False) -> None:
        self.row = CompactionRow(ID, ENTITY, "major", CompactionState.WORKING, ME)
        self.recorded: list[int] = []
        self._loses = loses

    def compactions(self, **wanted: object) -> list[CompactionRow]:
        return [self.row]

    def update_compactor_state(self, info: CompactionInfo, txn_id: int) -> None:
        self.recorded.append(txn_id)
        if self._loses:
            self.row = CompactionRow(ID, ENTITY, "major", CompactionState.FAILED)


def record(server: Server, database: Database) -> ClaimedCompaction:
    return ThriftCompactionQueue(cast(Any, server), HIVE_4, cast(Any, database)).record(CLAIM, 3, TXN, "hive")


def test_a_row_is_withheld_as_soon_as_its_transaction_is_recorded() -> None:
    server, database = Server(), Database(ID, TXN)
    assert record(server, database).txn_id == TXN
    found = database.read("row", lambda connection: connection.execute(select(database.queue)).one())
    assert (tuple(found), server.recorded) == ((ID, TXN, by_sql.WITHHELD_MS), [TXN])


@pytest.mark.parametrize(("id", "txn_id"), [(ID, TXN + 1), (ID + 1, TXN)])
def test_with_the_database_of_another_metastore_nothing_is_merged(id: int, txn_id: int) -> None:
    with pytest.raises(ConfigurationError, match="name the metastore's own database"):
        record(Server(), Database(id, txn_id))


def test_a_row_that_is_gone_is_called_lost() -> None:
    with pytest.raises(OwnershipLostError):
        record(Server(loses=True), Database(ID + 1, TXN))
