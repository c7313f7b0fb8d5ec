"""What the metastore says at this moment, for the page: its queue, and who keeps a partition from being cleaned.

Only questions are asked. Times are those of the metastore's database, ages are reckoned from this machine's clock: the
database's would cost a transaction for each look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.queue_figures import cleanable_since_ms
from airflow_provider_acid.health.files import now_ms
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, LockInfo, TxnInfo, TxnState

MAX_ROWS = 100
"""Most rows of the queue, or of failures, that are shown."""

_WAITING = (CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING)

_FIRST_SAID = (CompactionState.WORKING, CompactionState.INITIATED, CompactionState.READY_FOR_CLEANING)
"""Of several requests of one partition, whose state is said of it."""


@dataclass(frozen=True)
class QueueView:
    """The compaction queue.

    :param states: number of rows by state, history included as far as the metastore keeps it.
    :param waiting: rows that are no history, oldest first, at most :data:`MAX_ROWS`.
    :param failed: failed, refused and aborted ones, newest first, at most :data:`MAX_ROWS`.
    :param oldest_initiated_ms: when the oldest request was made that nobody has claimed.
    :param oldest_cleaning_ms: since when the compaction that waits longest could be cleaned; None where what they
        replaced is still kept.
    """

    states: dict[str, int]
    waiting: list[dict[str, object]]
    failed: list[dict[str, object]]
    oldest_initiated_ms: int | None
    oldest_cleaning_ms: int | None


@dataclass(frozen=True)
class Blocker:
    """A transaction or lock that a cleaning waits for, or will.

    :param since_ms: when the transaction was begun or the lock granted; None where the metastore does not say.
    """

    kind: str
    id: int
    user: str
    host: str
    since_ms: int | None
    description: str


@dataclass(frozen=True)
class CleaningView:
    """What the metastore knows about one partition.

    :param rows: its requests, newest first.
    :param blockers: who keeps its newest compaction from being cleaned, or would with a lock; none where nothing
        waits to be cleaned.
    """

    rows: list[dict[str, object]]
    blockers: list[Blocker]


def queue_view(queue: CompactionQueue, keep_seconds: float) -> QueueView:
    """Look at the queue.

    :param keep_seconds: how long what a compaction replaced is kept after its commit.
    """
    rows = queue.rows()
    waiting = [row for row in rows if row.state in _WAITING]
    failures = (CompactionState.FAILED, CompactionState.REFUSED, CompactionState.ABORTED)
    failed = sorted((row for row in rows if row.state in failures), key=lambda row: row.id, reverse=True)
    initiated = [row.enqueue_ms for row in waiting if row.state is CompactionState.INITIATED and row.enqueue_ms]
    cleanable = [cleanable_since_ms(row, keep_seconds) for row in waiting if row.waits_to_be_cleaned]
    now = now_ms()
    return QueueView(
        states=dict(Counter(row.state.value for row in rows)),
        waiting=[describe_row(row) for row in waiting[:MAX_ROWS]],
        failed=[describe_row(row) for row in failed[:MAX_ROWS]],
        oldest_initiated_ms=min(initiated, default=None),
        oldest_cleaning_ms=min((since for since in cleanable if since <= now), default=None),
    )


def requests_of(queue: CompactionQueue, entities: Collection[Entity]) -> list[dict[str, object]]:
    """Of each of these partitions that waits, is in work or waits to be cleaned, the request that says so."""
    wanted = frozenset(entities)
    rows = [row for row in queue.rows() if row.state in _FIRST_SAID and row.entity in wanted]
    said: dict[Entity, CompactionRow] = {}
    for row in sorted(rows, key=lambda row: _FIRST_SAID.index(row.state)):
        said.setdefault(row.entity, row)
    return [describe_row(row) for row in said.values()]


def cleaning_view(client: AcidMetastoreClient, queue: CompactionQueue, entity: Entity) -> CleaningView:
    """Look at one partition."""
    rows = sorted(queue.rows(entity), key=lambda row: row.id, reverse=True)
    waiting = [row for row in rows if row.waits_to_be_cleaned]
    if not waiting:
        return CleaningView([describe_row(row) for row in rows[:MAX_ROWS]], [])
    blockers = [
        *transactions_in_the_way(client.transactions(), waiting[0]),
        *map(_of_lock, client.show_locks(entity)),
    ]
    return CleaningView([describe_row(row) for row in rows[:MAX_ROWS]], blockers[:MAX_ROWS])


def transactions_in_the_way(transactions: Sequence[TxnInfo], row: CompactionRow) -> list[Blocker]:
    """Open transactions that may have begun to read before the compaction was committed, oldest first."""
    last = row.next_txn_id or 0
    opened = [txn for txn in transactions if txn.state is TxnState.OPEN and txn.id <= last]
    return [
        Blocker("transaction", txn.id, txn.user, txn.host, txn.started_ms, _description(txn))
        for txn in sorted(opened, key=lambda txn: txn.id)
    ]


def describe_row(row: CompactionRow) -> dict[str, object]:
    """A row of the queue as a small object."""
    return {
        "id": row.id,
        "database": row.entity.database,
        "table": row.entity.table,
        "partition": row.entity.partition or "",
        "type": row.type,
        "state": row.state.value,
        "enqueue_ms": row.enqueue_ms,
        "start_ms": row.start_ms,
        "commit_ms": row.commit_ms,
        "end_ms": row.end_ms,
        "worker": row.worker_id,
        "job_id": row.job_id,
        "error_message": row.error_message,
    }


def _description(txn: TxnInfo) -> str:
    """What opened it; clients that give no name are called "Unknown" by the metastore."""
    return "open" if txn.agent_info in (None, "", "Unknown") else f"open, {txn.agent_info}"


def _of_lock(lock: LockInfo) -> Blocker:
    owner = f", transaction {lock.txn_id}" if lock.txn_id else ""
    return Blocker(
        "lock", lock.lock_id, lock.user, lock.host, lock.acquired_ms, f"{lock.type}, {lock.state.value}{owner}"
    )
