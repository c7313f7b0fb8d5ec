"""What the page says of the queue and of who is in the way, from rows, transactions and locks."""

from __future__ import annotations

from typing import cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.health import metastore_view
from airflow_provider_acid.health.metastore_view import MAX_ROWS, cleaning_view, queue_view
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    LockInfo,
    LockState,
    TxnInfo,
    TxnState,
)

PARTITION = Entity("d", "t", "p=1")


class FakeQueue:
    def __init__(self, *rows: CompactionRow) -> None:
        self._rows = rows

    def rows(self, entity: Entity | None = None) -> list[CompactionRow]:
        return [row for row in self._rows if entity in (None, row.entity)]


class FakeClient:
    """Answers with these, and has no other calls: the page asks for nothing else."""

    def __init__(self, *transactions: TxnInfo) -> None:
        self._transactions = list(transactions)

    def transactions(self) -> list[TxnInfo]:
        return self._transactions

    def show_locks(self, entity: Entity) -> list[LockInfo]:
        return [LockInfo(5, "d", entity, LockState.ACQUIRED, "SHARED_READ", 3, "eve", "bi", 70, 80, None)]


def row(id: int, state: CompactionState, **fields: object) -> CompactionRow:
    return CompactionRow(id, PARTITION, "major", state, **fields)  # type: ignore[arg-type]


def txn(id: int, state: TxnState = TxnState.OPEN) -> TxnInfo:
    return TxnInfo(id, state, f"user{id}", "host", None, 1000 + id, 2000)


def queue(*rows: CompactionRow) -> CompactionQueue:
    return cast(CompactionQueue, FakeQueue(*rows))


def blockers(*transactions: TxnInfo, rows: tuple[CompactionRow, ...]) -> list[tuple[str, int]]:
    view = cleaning_view(cast(AcidMetastoreClient, FakeClient(*transactions)), queue(*rows), PARTITION)
    return [(each.kind, each.id) for each in view.blockers]


READY = row(9, CompactionState.READY_FOR_CLEANING, next_txn_id=7, commit_ms=50)


def test_transactions_that_may_have_begun_to_read_before_the_commit_are_in_the_way() -> None:
    found = blockers(txn(8), txn(7), txn(3), txn(2, TxnState.ABORTED), rows=(READY,))
    assert found == [("transaction", 3), ("transaction", 7), ("lock", 5)]


@pytest.mark.parametrize(
    "rows",
    [(), (row(1, CompactionState.SUCCEEDED),), (row(1, CompactionState.READY_FOR_CLEANING),)],
    ids=["nothing", "cleaned", "not committed"],
)
def test_where_nothing_waits_to_be_cleaned_nobody_is_in_the_way(rows: tuple[CompactionRow, ...]) -> None:
    assert blockers(txn(3), rows=rows) == []


def test_the_newest_compaction_counts() -> None:
    newer = row(10, CompactionState.READY_FOR_CLEANING, next_txn_id=8, commit_ms=60)
    assert ("transaction", 8) in blockers(txn(8), rows=(READY, newer))


def test_the_queue_is_counted_by_state_with_the_oldest_that_wait() -> None:
    view = queue_view(
        queue(
            row(1, CompactionState.INITIATED, enqueue_ms=300),
            row(2, CompactionState.INITIATED, enqueue_ms=200),
            row(3, CompactionState.WORKING, enqueue_ms=100),
            row(4, CompactionState.READY_FOR_CLEANING, commit_ms=40),
            row(5, CompactionState.READY_FOR_CLEANING),
            row(6, CompactionState.FAILED, error_message="no disk"),
            row(7, CompactionState.REFUSED),
            row(8, CompactionState.SUCCEEDED),
        ),
        keep_seconds=0.0,
    )
    assert view.states["initiated"] == 2
    assert (view.oldest_initiated_ms, view.oldest_cleaning_ms) == (200, 40)
    assert [each["id"] for each in view.waiting] == [1, 2, 3, 4, 5]
    assert [(each["id"], each["error_message"]) for each in view.failed] == [(7, None), (6, "no disk")]


def test_a_long_queue_is_counted_whole_and_shown_in_part() -> None:
    view = queue_view(queue(*(row(number, CompactionState.INITIATED) for number in range(1000))), keep_seconds=0.0)
    assert (view.states["initiated"], len(view.waiting)) == (1000, MAX_ROWS)


@pytest.mark.parametrize(
    ("hours_ago", "could_be_cleaned_hours_ago"),
    [([], None), ([1], None), ([47], None), ([47, 50], 2), ([60, 47, 50], 12)],
)
def test_what_is_kept_for_an_undo_is_not_late(
    monkeypatch: pytest.MonkeyPatch, hours_ago: list[int], could_be_cleaned_hours_ago: int | None
) -> None:
    """As the doctor and the metrics reckon it."""
    hour, now = 3_600_000, 1_800_000_000_000
    monkeypatch.setattr(metastore_view, "now_ms", lambda: now)
    rows = [row(id, CompactionState.READY_FOR_CLEANING, commit_ms=now - ago * hour) for id, ago in enumerate(hours_ago)]
    view = queue_view(queue(*rows), keep_seconds=48 * 3600.0)
    expected = None if could_be_cleaned_hours_ago is None else now - could_be_cleaned_hours_ago * hour
    assert view.oldest_cleaning_ms == expected
    assert view.states.get("ready for cleaning", 0) == len(rows)
