"""The queue of a Hive 4 metastore whose calls know no pools and show no transactions, as 4.0.0-alpha-1's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.compactions import CompactAnswer, state_of_letter
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

_SHARED = (
    *("ID", "DATABASE", "TABLE", "PARTITION", "STATE", "TYPE", "WORKER_ID", "ENQUEUE_TIME", "START", "RUN_AS"),
    *("HIGHEST_WRITE_ID", "HADOOP_JOB_ID", "ERROR_MESSAGE", "INITIATOR_ID"),
)
"""Columns of queue and history, after ``CQ_`` and ``CC_``."""

_TRANSACTIONS = ("TXN_ID", "NEXT_TXN_ID", "COMMIT_TIME")
"""Columns of the queue by which a compaction is a transaction; the history keeps them where it has them."""

_TYPES = {"a": "major", "i": "minor"}


class UnpooledCompactionQueue(ThriftCompactionQueue):
    """See :class:`~.queue.CompactionQueue`.

    Rows are changed over Thrift, but looked at, and claimed by their ids, in the database. A request's pool is kept as
    its initiator, which every Hive 4 records.

    :param hive: the kind of the client's metastore; one without pools.
    :param database: that metastore's.
    :raises MetastoreVersionError: a column by which a compaction is a transaction, or a request's initiator is kept, is
        not there.
    """

    def __init__(self, client: AcidMetastoreClient, hive: Hive, database: MetastoreDatabase) -> None:
        super().__init__(client, hive, database)
        self._database = database
        own = (*_SHARED, *_TRANSACTIONS, "RETRY_RETENTION")
        self._queue = database.table("COMPACTION_QUEUE", ["CQ_" + name for name in own])
        self._history = database.table("COMPLETED_COMPACTIONS", ["CC_END", *("CC_" + name for name in _SHARED)])

    def claim(self, pool: str, worker_id: str) -> ClaimedCompaction | None:
        """See :meth:`~.queue.CompactionQueue.claim`."""
        for row in self.rows(pool=pool):
            if row.state is CompactionState.INITIATED:
                return self._claim_by_id(self._database, row, worker_id)
        return None

    def claim_foreign(self, row: CompactionRow, worker_id: str) -> ClaimedCompaction | CompactionRow | None:
        """See :meth:`~.queue.CompactionQueue.claim_foreign`; a request of a pool is never claimed."""
        return None if row.pool is not None else super().claim_foreign(row, worker_id)

    def row(self, id: int) -> CompactionRow | None:
        """See :meth:`~.queue.CompactionQueue.row`."""
        rows = self._rows(id=id)
        return rows[0] if rows else None

    def rows(
        self, entity: Entity | None = None, state: CompactionState | None = None, pool: str | None = None
    ) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.rows`."""
        return [
            row
            for row in self._rows(table=None if entity is None else entity.table)
            if (entity is None or row.entity == entity)
            and (state is None or row.state is state)
            and (pool is None or row.pool == pool)
        ]

    def _ask_for(
        self, entity: Entity, type: CompactionType, pool: str, properties: Mapping[str, str] | None
    ) -> CompactAnswer:
        return self._client.compact(entity, type, initiator_id=pool, properties=properties)

    def _rows(self, *, id: int | None = None, table: str | None = None) -> list[CompactionRow]:
        def look(connection: Connection) -> dict[int, CompactionRow]:
            # The queue first: a row that moves meanwhile is seen twice, and counts as history, but is never missed.
            queued = _look(connection, self._queue, "CQ_", id, table)
            return {**queued, **_look(connection, self._history, "CC_", id, table)}

        found = self._database.read("compactions" if id is None else f"compaction {id}", look)
        return [found[id] for id in sorted(found) if not found[id].is_removal]


def _look(
    connection: Connection, rows: HiveTable, prefix: str, id: int | None, table: str | None
) -> dict[int, CompactionRow]:
    names = [name for name in (*_SHARED, *_TRANSACTIONS, "END") if prefix + name in rows]
    wanted = select(*(rows[prefix + name].label(name) for name in names))
    if id is not None:
        wanted = wanted.where(rows[prefix + "ID"] == id)
    if table is not None:
        wanted = wanted.where(func.lower(rows[prefix + "TABLE"]) == table)
    return {int(values["ID"]): _row(values) for values in connection.execute(wanted).mappings()}


def _row(values: Mapping[Any, Any]) -> CompactionRow:
    initiator = values["INITIATOR_ID"] or None
    return CompactionRow(
        id=int(values["ID"]),
        entity=Entity(values["DATABASE"], values["TABLE"], values["PARTITION"] or None),
        type=_TYPES.get(values["TYPE"], f"type {values['TYPE']}"),
        state=state_of_letter(values["STATE"]),
        worker_id=values["WORKER_ID"] or None,
        pool=initiator if RequestPool.parse(initiator) else None,
        start_ms=values["START"] or None,
        end_ms=values.get("END") or None,
        enqueue_ms=values["ENQUEUE_TIME"] or None,
        highest_write_id=values["HIGHEST_WRITE_ID"] or None,
        next_txn_id=values.get("NEXT_TXN_ID") or None,
        txn_id=values.get("TXN_ID") or None,
        commit_ms=values.get("COMMIT_TIME") or None,
        error_message=values["ERROR_MESSAGE"] or None,
        run_as=values["RUN_AS"] or None,
        job_id=values["HADOOP_JOB_ID"] or None,
        initiator_id=initiator,
    )
