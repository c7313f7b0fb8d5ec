"""How the queue stands: counted by each partition's newest request, aged by the metastore's clock."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.queue_figures import QueueFigures, queue_figures
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

NOW_MS = 100_000
ONE, TWO, THREE = (Entity("d", "t", f"p={number}") for number in (1, 2, 3))
INITIATED, WORKING, READY = (
    CompactionState.INITIATED,
    CompactionState.WORKING,
    CompactionState.READY_FOR_CLEANING,
)
FAILED, SUCCEEDED = CompactionState.FAILED, CompactionState.SUCCEEDED


def row(id: int, entity: Entity, state: CompactionState, **times: int) -> CompactionRow:
    return replace(CompactionRow(id, entity, "major", state), **times)  # type: ignore[arg-type]


def figures(*rows: CompactionRow, keep_seconds: float = 0.0) -> QueueFigures:
    by_entity: dict[Entity, list[CompactionRow]] = {}
    for item in rows:
        by_entity.setdefault(item.entity, []).append(item)
    return queue_figures(by_entity, lambda: NOW_MS, keep_seconds)


def test_a_partition_counts_once_by_its_newest_request() -> None:
    found = figures(row(3, ONE, SUCCEEDED), row(1, ONE, FAILED), row(2, TWO, FAILED), row(4, THREE, SUCCEEDED))
    assert found.partitions_by_state == {SUCCEEDED: 2, FAILED: 1}


def test_ages_are_those_of_the_oldest_request_in_each_state() -> None:
    found = figures(
        row(1, ONE, INITIATED, enqueue_ms=40_000, start_ms=1),
        row(2, TWO, INITIATED, enqueue_ms=90_000),
        row(3, TWO, WORKING, enqueue_ms=1, start_ms=70_000),
        row(4, THREE, READY, enqueue_ms=1, start_ms=1, commit_ms=99_000),
        row(5, THREE, SUCCEEDED, enqueue_ms=1, start_ms=1, commit_ms=1),
    )
    ages = found.oldest_enqueue_seconds, found.oldest_working_seconds, found.oldest_ready_seconds
    assert ages == (60.0, 30.0, 1.0)


def test_what_is_kept_for_an_undo_is_not_late() -> None:
    waiting = [row(1, ONE, READY, commit_ms=40_000), row(2, TWO, READY, commit_ms=90_000)]
    kept = {keep: figures(*waiting, keep_seconds=keep).oldest_ready_seconds for keep in (0.0, 50.0, 70.0)}
    assert kept == {0.0: 60.0, 50.0: 10.0, 70.0: 0.0}


def test_what_was_begun_after_the_clock_was_read_has_no_age() -> None:
    assert figures(row(1, ONE, WORKING, start_ms=NOW_MS + 5)).oldest_working_seconds == 0


def test_the_clock_is_not_asked_where_nothing_is_under_way() -> None:
    def ask() -> int:
        raise AssertionError

    rows = {ONE: [row(1, ONE, SUCCEEDED, enqueue_ms=1, start_ms=1, commit_ms=1), row(2, ONE, INITIATED)]}
    assert queue_figures(rows, ask, 0.0) == QueueFigures({INITIATED: 1})
