"""What a metastore's database remembers of writes since the last cleaned compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select
from sqlalchemy.sql.selectable import ScalarSelect

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.database.cleaning import ABORTED
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase


class WriteRecords:
    """COMPLETED_TXN_COMPONENTS, and TXN_COMPONENTS of aborted transactions; only read, and only when asked.

    Each partition is named once, however often it was written to: the database sorts that out.

    :param database: the metastore's database.
    """

    def __init__(self, database: MetastoreDatabase) -> None:
        self._database = database

    def tables(self) -> frozenset[str]:
        """Full names (``database.table``) of all tables with a record.

        :raises MetastoreError: the database does not answer, or not with these tables.
        """
        found = self._recorded("writes", ("DATABASE", "TABLE"))
        return frozenset(Entity(str(database), str(table)).full_table_name for database, table in found)

    def partitions(self, database: str, table: str) -> frozenset[str | None]:
        """Names of partitions of one table as they were recorded; None where a record names the table alone.

        :param database: lower case, and so is ``table``.
        :raises MetastoreError: the database does not answer, or not with these tables.
        """
        found = self._recorded(f"writes to {database}.{table}", ("PARTITION",), DATABASE=database, TABLE=table)
        return frozenset(name or None for (name,) in found)

    def aborted(self, database: str, table: str) -> frozenset[tuple[str | None, int | None]]:
        """Partitions of one table, as they were recorded, with the aborted write ids that wrote there.

        Hive 4's own Cleaner deletes there without a request. None in place of a name: the record names the table alone.
        A record may be without a write id, too.

        :param database: lower case, and so is ``table``.
        :raises MetastoreError: the database does not answer, or not with these tables.
        """
        written = self._database.table("TXN_COMPONENTS", ("TC_TXNID", "TC_WRITEID", *_columns("TC_")))
        query = select(written["TC_PARTITION"], written["TC_WRITEID"]).where(
            self._database.equals(written["TC_DATABASE"], database),
            self._database.equals(written["TC_TABLE"], table),
            written["TC_TXNID"].in_(self._aborted_txns()),
        )

        def look(connection: Connection) -> frozenset[tuple[str | None, int | None]]:
            return frozenset((name or None, write_id) for name, write_id in connection.execute(query))

        return self._database.read(f"aborted writes to {database}.{table}", look)

    def _aborted_txns(self) -> ScalarSelect[Any]:
        txns = self._database.table("TXNS", ("TXN_ID", "TXN_STATE"))
        return select(txns["TXN_ID"]).where(txns["TXN_STATE"] == ABORTED).scalar_subquery()

    def _recorded(self, subject: str, wanted: Sequence[str], **where: str) -> set[tuple[str | None, ...]]:
        """Values of the wanted columns, which are named without their prefixes."""
        committed = self._database.table("COMPLETED_TXN_COMPONENTS", _columns("CTC_"))
        written = self._database.table("TXN_COMPONENTS", ("TC_TXNID", *_columns("TC_")))
        queries = (
            self._distinct(committed, "CTC_", wanted, where),
            self._distinct(written, "TC_", wanted, where).where(written["TC_TXNID"].in_(self._aborted_txns())),
        )

        def look(connection: Connection) -> set[tuple[str | None, ...]]:
            return {tuple(row)[: len(wanted)] for query in queries for row in connection.execute(query)}

        return self._database.read(subject, look)

    def _distinct(self, table: HiveTable, prefix: str, wanted: Sequence[str], where: Mapping[str, str]) -> Select[Any]:
        columns = [table[prefix + name] for name in wanted]
        # The bytes beside the names: MySQL by itself takes texts for equal that are not, and would drop one of them.
        query = select(*columns, *map(self._database.bytes_of, columns)).distinct()
        return query.where(*(self._database.equals(table[prefix + name], value) for name, value in where.items()))


def _columns(prefix: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in ("DATABASE", "TABLE", "PARTITION"))
