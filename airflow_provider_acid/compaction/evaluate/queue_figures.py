"""How the compaction queue stands, in a few figures, counted as Hive's metrics service counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState


@dataclass(frozen=True)
class QueueFigures:
    """Counts and ages of compaction requests.

    :param partitions_by_state: partitions (or unpartitioned tables) by the state of their newest request, as Hive's
        ``AcidMetricService`` counts; states that none is in may be missing.
    :param oldest_enqueue_seconds: how long the oldest request has waited to be claimed; 0 where none waits.
    :param oldest_working_seconds: how long the oldest claim has been worked on; 0 where there is none.
    :param oldest_ready_seconds: how long the oldest compaction that is not cleaned could have been; 0 where all are, or
        what they replaced is still kept.
    """

    partitions_by_state: Mapping[CompactionState, int] = field(default_factory=dict)
    oldest_enqueue_seconds: float = 0.0
    oldest_working_seconds: float = 0.0
    oldest_ready_seconds: float = 0.0


def queue_figures(
    rows: Mapping[Entity, Sequence[CompactionRow]], now_ms: Callable[[], int], keep_seconds: float
) -> QueueFigures:
    """The figures of these rows.

    :param rows: rows of the queue and its history, by partition.
    :param now_ms: the metastore's clock; read only where something is under way.
    :param keep_seconds: how long what a compaction replaced is kept after its commit.
    """
    newest = (max(of_entity, key=lambda row: row.id) for of_entity in rows.values() if of_entity)
    counts = Counter(row.state for row in newest)
    every_row = [row for of_entity in rows.values() for row in of_entity]
    enqueued = _oldest(row.enqueue_ms for row in every_row if row.state is CompactionState.INITIATED)
    working = _oldest(row.start_ms for row in every_row if row.state is CompactionState.WORKING)
    ready = _oldest(cleanable_since_ms(row, keep_seconds) for row in every_row if row.waits_to_be_cleaned)
    if (enqueued, working, ready) == (None, None, None):
        return QueueFigures(counts)
    now = now_ms()
    return QueueFigures(counts, *(_age_seconds(since_ms, now) for since_ms in (enqueued, working, ready)))


def cleanable_since_ms(row: CompactionRow, keep_seconds: float) -> int:
    """When what a compaction replaced might be deleted at the earliest, whoever reads it.

    :param row: waits to be cleaned.
    :param keep_seconds: how long it is kept after the commit.
    """
    return (row.commit_ms or 0) + round(keep_seconds * 1000)


def _oldest(times_ms: Iterable[int | None]) -> int | None:
    return min((time_ms for time_ms in times_ms if time_ms is not None), default=None)


def _age_seconds(since_ms: int | None, now_ms: int) -> float:
    return 0.0 if since_ms is None else max(now_ms - since_ms, 0) / 1000
