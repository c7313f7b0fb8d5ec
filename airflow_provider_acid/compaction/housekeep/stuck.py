"""What is stuck: the transaction that holds every cleaner back, the cleaning that waits longest, failures, requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.evaluate.failures import FAILED_COMPACTIONS_THRESHOLD, failures_in_a_row
from airflow_provider_acid.compaction.evaluate.queue_figures import cleanable_since_ms
from airflow_provider_acid.compaction.housekeep.report import Stuck, StuckKind
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnInfo, TxnState


def find_stuck(
    client: AcidMetastoreClient,
    queue: CompactionQueue,
    settings: CompactionSettings,
    rows: Mapping[Entity, Sequence[CompactionRow]],
) -> tuple[Stuck, ...]:
    """Look for what is stuck; changes nothing.

    :param rows: the queue's rows and history, by partition.
    """
    now_ms = client.server_now_ms()
    every_row = [row for of_entity in rows.values() for row in of_entity]
    return (
        *oldest_transaction(client.transactions(), now_ms),
        *_oldest_cleaning(Cleaner(client, queue, settings), every_row, now_ms, settings.keep_replaced_seconds),
        *repeated_failures(rows),
        *unserved_requests(every_row, now_ms, settings.worker_timeout_seconds),
    )


def oldest_transaction(transactions: Sequence[TxnInfo], now_ms: int) -> Iterator[Stuck]:
    """The open transaction that was begun first: no cleaner deletes what it may have seen."""
    opened = [txn for txn in transactions if txn.state is TxnState.OPEN]
    if not opened:
        return
    txn = min(opened, key=lambda txn: txn.id)
    message = f"of {txn.user}@{txn.host}"
    yield Stuck(StuckKind.OPEN_TRANSACTION, f"transaction {txn.id}", _age_seconds(txn.started_ms, now_ms), message)


def _oldest_cleaning(
    cleaner: Cleaner, rows: Sequence[CompactionRow], now_ms: int, keep_seconds: float
) -> Iterator[Stuck]:
    waiting = [(cleanable_since_ms(row, keep_seconds), row) for row in rows if row.waits_to_be_cleaned]
    late = [found for found in waiting if found[0] <= now_ms]
    if not late:
        return
    since_ms, row = min(late, key=itemgetter(0))
    seen = cleaner.look([row.entity])
    message = seen[0].message if seen else "is about to be cleaned"
    yield Stuck(StuckKind.CLEANING, str(row.entity), _age_seconds(since_ms, now_ms), message)


def repeated_failures(rows: Mapping[Entity, Sequence[CompactionRow]]) -> Iterator[Stuck]:
    """Partitions whose last compactions failed so often that Hive would not try again."""
    for entity, of_entity in rows.items():
        failures = failures_in_a_row(of_entity, count_deaths=True)
        if failures >= FAILED_COMPACTIONS_THRESHOLD:
            last = max((row for row in of_entity if row.state is CompactionState.FAILED), key=lambda row: row.id)
            message = f"{failures} times in a row, last: {last.error_message or 'no message'}"
            yield Stuck(StuckKind.FAILURES, str(entity), None, message)


def unserved_requests(rows: Sequence[CompactionRow], now_ms: int, patience_seconds: float) -> Iterator[Stuck]:
    """Requests that nobody has claimed for so long, or since nobody knows when."""
    for row in rows:
        if row.state is not CompactionState.INITIATED or row.commit_ms is not None:
            continue
        age_seconds = _age_seconds(row.enqueue_ms, now_ms)
        if age_seconds is None or age_seconds > patience_seconds:
            pool = f"pool {row.pool}" if row.pool else "no pool"
            yield Stuck(StuckKind.REQUEST, str(row.entity), age_seconds, f"request {row.id} ({row.type}) of {pool}")


def _age_seconds(since_ms: int | None, now_ms: int) -> float | None:
    return None if since_ms is None else (now_ms - since_ms) / 1000
