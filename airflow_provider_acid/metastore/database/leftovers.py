"""Records of writes that outlive every cleaning by a metastore.

A cleaning forgets what is recorded under the partition's own name, up to a write id. Hive 4's ``lock`` records a
partition whose name has escapes under the name escaped once more (``p=a%252Fb`` for ``p=a%2Fb``), Hive 3's under the
name in lower case; and a writer that locks a table before it has its write id, as Trino does, is recorded without one.
Such records would stay for ever: the partition a candidate, and an aborted transaction among those to remember.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from sqlalchemy import delete, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.acid.entity import Entity, whatever_spelling
from airflow_provider_acid.metastore.database.cleaning import ABORTED, WriteIdBookkeeping
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase
from airflow_provider_acid.metastore.database.written import WriteRecords

ANY_TIME_ZONE = timedelta(hours=26)
"""CTC_TIMESTAMP has no time zone: by so much two clocks may differ."""


def forget_other_spellings(
    database: MetastoreDatabase,
    table: Entity,
    cleaned: Mapping[str, int],
    partition_names: Callable[[], Collection[str]],
    name_in_locks: Callable[[str], str],
) -> int:
    """Forget what is recorded for cleaned partitions under the spelling that ``lock`` gave their names.

    Nothing is forgotten where another partition of the table could be meant as well. That one need not be known to the
    metastore: an INSERT that failed may have left a directory and a record of a partition that was not yet added, and
    whose name differs by case.

    :param table: whose partitions they are.
    :param cleaned: write ids by partition, up to which no file holds rows of an aborted one any more.
    :param partition_names: asks for all partitions of the table; called where there is another spelling.
    :param name_in_locks: see :meth:`~airflow_provider_acid.acid.hive.Hive.name_in_locks`.
    :return: how many records were removed.
    """
    recorded = WriteRecords(database).partitions(table.database, table.table)
    spelled = {name_in_locks(name): name for name in cleaned}
    others = {name: own for name, own in spelled.items() if name in recorded and name not in cleaned}
    if not others:
        return 0
    meant = Counter(map(whatever_spelling, partition_names()))
    bookkeeping = WriteIdBookkeeping.of(database)

    def forget(connection: Connection) -> int:
        return sum(
            sum(
                bookkeeping.forget(
                    connection, Entity(table.database, table.table, name), cleaned[own], aborted_too=True
                )
            )
            for name, own in others.items()
            if meant[whatever_spelling(name)] == 1
        )

    return database.write(f"write records of {table}", forget)


@dataclass(frozen=True)
class CleanedTable:
    """An unpartitioned table after its cleaning.

    :param write_id: up to it no file holds rows of an aborted one any more.
    :param claimed_ms: when the compaction was claimed, before it looked at the table; since 1970. None where that is
        not on record.
    """

    database: str
    table: str
    write_id: int
    claimed_ms: int | None


def forget_without_write_ids(database: MetastoreDatabase, cleaned: Iterable[CleanedTable]) -> int:
    """Forget what is recorded for unpartitioned tables without a write id, and is certainly cleaned.

    A write that was committed before the compaction looked is in its result, unless a lower write id was open then:
    the end of that one is recorded for the same table. An aborted one has its write id in TXN_TO_WRITE_ID.

    :return: how many records were removed.
    """
    records = _RecordsWithoutWriteIds.of(database)
    found = database.read("write records without write ids", records.tables)
    some = [table for table in cleaned if (table.database, table.table) in found]
    if not some:
        return 0
    return database.write(
        "write records without write ids", lambda connection: sum(records.forget(connection, table) for table in some)
    )


@dataclass(frozen=True)
class _RecordsWithoutWriteIds:
    database: MetastoreDatabase
    completed: HiveTable
    components: HiveTable
    txns: HiveTable
    allocated: HiveTable

    @classmethod
    def of(cls, database: MetastoreDatabase) -> _RecordsWithoutWriteIds:
        completed = ("CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_TIMESTAMP")
        components = ("TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_WRITEID")
        return cls(
            database,
            database.table("COMPLETED_TXN_COMPONENTS", completed),
            database.table("TXN_COMPONENTS", components),
            database.table("TXNS", ("TXN_ID", "TXN_STATE")),
            database.table("TXN_TO_WRITE_ID", ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID")),
        )

    def tables(self, connection: Connection) -> set[tuple[str, str]]:
        queries = (
            select(table[prefix + "DATABASE"], table[prefix + "TABLE"])
            .where(table[prefix + "PARTITION"].is_(None), table[prefix + "WRITEID"].is_(None))
            .distinct()
            for table, prefix in ((self.completed, "CTC_"), (self.components, "TC_"))
        )
        return {(str(database), str(table)) for query in queries for database, table in connection.execute(query)}

    def forget(self, connection: Connection, table: CleanedTable) -> int:
        aborted = select(self.txns["TXN_ID"]).where(self.txns["TXN_STATE"] == ABORTED)
        cleaned = select(self.allocated["T2W_TXNID"]).where(
            self.database.equals(self.allocated["T2W_DATABASE"], table.database),
            self.database.equals(self.allocated["T2W_TABLE"], table.table),
            self.allocated["T2W_WRITEID"] <= table.write_id,
        )
        statements = [
            delete(self.components.table).where(
                *self._of(self.components, "TC_", table),
                self.components["TC_TXNID"].in_(aborted.scalar_subquery()),
                self.components["TC_TXNID"].in_(cleaned.scalar_subquery()),
            )
        ]
        if table.claimed_ms is not None:
            claimed = datetime.fromtimestamp(table.claimed_ms / 1000, timezone.utc).replace(tzinfo=None)
            is_older = self.completed["CTC_TIMESTAMP"] < claimed - ANY_TIME_ZONE
            statements.append(delete(self.completed.table).where(*self._of(self.completed, "CTC_", table), is_older))
        return sum(connection.execute(statement).rowcount for statement in statements)

    def _of(self, records: HiveTable, prefix: str, table: CleanedTable) -> list[ColumnElement[bool]]:
        return [
            self.database.equals(records[prefix + "DATABASE"], table.database),
            self.database.equals(records[prefix + "TABLE"], table.table),
            records[prefix + "PARTITION"].is_(None),
            records[prefix + "WRITEID"].is_(None),
        ]
