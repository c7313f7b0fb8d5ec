"""Forgetting what a cleaned compaction made unnecessary to know (Hive's ``CompactionTxnHandler.markCleaned``)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ObjectNotFoundError
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase
from airflow_provider_acid.metastore.thrift.catalog import CatalogCalls

ABORTED = "a"
"""TXN_STATE of an aborted transaction."""


@dataclass(frozen=True)
class WriteIdBookkeeping:
    """The tables that remember who wrote what.

    Once the components of an aborted transaction are gone, its write id counts as committed: no file may hold rows
    of it any more.
    """

    database: MetastoreDatabase
    completed: HiveTable
    components: HiveTable
    txns: HiveTable

    @classmethod
    def of(cls, database: MetastoreDatabase) -> WriteIdBookkeeping:
        """Look the tables up.

        :raises MetastoreVersionError: one of them, or a column, is not there.
        """
        return cls(
            database,
            database.table("COMPLETED_TXN_COMPONENTS", ("CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID")),
            database.table("TXN_COMPONENTS", ("TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_WRITEID")),
            database.table("TXNS", ("TXN_ID", "TXN_STATE", "TXN_LAST_HEARTBEAT")),
        )

    def forget(
        self, connection: Connection, entity: Entity, highest_write_id: int, *, aborted_too: bool
    ) -> tuple[int, int]:
        """Forget write ids up to ``highest_write_id`` of exactly this table or partition.

        What is recorded for a whole partitioned table stays when one of its partitions is cleaned.

        :param highest_write_id: positive; Hive would take 0 for all there are.
        :param aborted_too: whether aborted write ids are forgotten as well.
        :return: how many records of committed and of aborted writes were removed.
        """
        if highest_write_id <= 0:
            raise AssertionError(f"write ids up to {highest_write_id} cannot be forgotten")
        committed = connection.execute(
            delete(self.completed.table).where(*self._of(self.completed, "CTC_", entity, highest_write_id))
        ).rowcount
        aborted = 0
        if aborted_too:
            aborted = connection.execute(
                delete(self.components.table).where(*self._aborted(entity, highest_write_id))
            ).rowcount
        return committed, aborted

    def has_aborted(self, connection: Connection, entity: Entity, highest_write_id: int) -> bool:
        """Whether aborted write ids up to this one are recorded for exactly this table or partition."""
        counted = select(func.count()).select_from(self.components.table)
        return bool(connection.execute(counted.where(*self._aborted(entity, highest_write_id))).scalar_one())

    def _aborted(self, entity: Entity, highest_write_id: int) -> list[ColumnElement[bool]]:
        aborted = select(self.txns["TXN_ID"]).where(self.txns["TXN_STATE"] == ABORTED)
        return [
            *self._of(self.components, "TC_", entity, highest_write_id),
            self.components["TC_TXNID"].in_(aborted.scalar_subquery()),
        ]

    def _of(self, table: HiveTable, prefix: str, entity: Entity, highest_write_id: int) -> list[ColumnElement[bool]]:
        return [
            self.database.equals(table[prefix + "DATABASE"], entity.database),
            self.database.equals(table[prefix + "TABLE"], entity.table),
            self.database.equals(table[prefix + "PARTITION"], entity.partition),
            table[prefix + "WRITEID"] <= highest_write_id,
        ]


def has_twin(client: CatalogCalls, entity: Entity) -> bool:
    """Whether another partition's name is the same but for case.

    Hive 3.1 records writes under the partition's name in lower case (``TxnHandler.lock``), so that a record for
    ``p=a`` may belong to ``p=A``.
    """
    if entity.partition is None:
        return False
    try:
        names = client.get_partition_names(entity.database, entity.table)
    except ObjectNotFoundError:
        return False
    return any(name != entity.partition and name.casefold() == entity.partition.casefold() for name in names)
