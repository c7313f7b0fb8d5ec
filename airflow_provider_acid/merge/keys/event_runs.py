"""The delete events of a bucket in their order, each once, however many there are.

They are kept in sorted runs, of which a block is merged at a time: sorting all of them at once would take several
times their memory. Merging them again gives the same again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.merge.keys.acid_keys import count

EVENT_FIELDS = ["pair", "row_id", "deleter"]
"""What :func:`~airflow_provider_acid.merge.keys.acid_keys.pairs_of` makes of an event, rowId and currentTransaction."""

_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("pair", "ascending"),
    ("row_id", "ascending"),
    ("deleter", "descending"),
]

_RUN_EVENTS = 1 << 20
"""Sorted together: few runs to look into, and no more than a run's events to copy."""

_BLOCK_EVENTS = 1 << 19
"""Most that are merged together, if there are not more runs."""


@dataclass(frozen=True)
class _Run:
    """Sorted events, where there are many events of few write ids in 10 to 16 bytes each.

    :param pairs: with a dictionary, as ``deleters``.
    """

    pairs: Any
    row_ids: pa.Array[Any]
    deleters: Any

    @classmethod
    def of(cls, events: pa.RecordBatch) -> _Run:
        pairs, row_ids, deleters = events.columns
        return cls(_narrow(pairs), row_ids, _narrow(deleters))

    def __len__(self) -> int:
        return len(self.row_ids)

    def place(self, event: int) -> tuple[int, int, int]:
        """Where an event stands in the order."""
        pair, row_id, deleter = (column[event].as_py() for column in (self.pairs, self.row_ids, self.deleters))
        return pair, row_id, -deleter

    def place_before(self, end: int) -> tuple[int, int, int]:
        """Where the last event before an end stands, which may lie behind the last one."""
        return self.place(min(end, len(self)) - 1)

    def slice(self, start: int, end: int) -> pa.RecordBatch:
        """Some of the events as they came."""
        pairs, deleters = (
            column.slice(start, end - start).dictionary_decode() for column in (self.pairs, self.deleters)
        )
        columns = [pairs, self.row_ids.slice(start, end - start), deleters]
        return pa.RecordBatch.from_arrays(columns, names=EVENT_FIELDS)


@dataclass(frozen=True)
class EventRuns:
    """All events of a bucket that count.

    :param events: how many, each as often as it came.
    """

    events: int
    runs: tuple[_Run, ...]

    def merged(self) -> Iterator[pa.RecordBatch]:
        """The events in their order, each once, in batches of :data:`EVENT_FIELDS`."""
        starts = [0] * len(self.runs)
        step = max(_BLOCK_EVENTS // max(len(self.runs), 1), 1)
        while left := [number for number, run in enumerate(self.runs) if starts[number] < len(run)]:
            last = min(self.runs[number].place_before(starts[number] + step) for number in left)
            pieces = []
            for number in left:
                run, start = self.runs[number], starts[number]
                if run.place(start) <= last:
                    # Equal events of all runs come into the same batch.
                    starts[number] = bisect_right(range(len(run)), last, start, key=run.place)
                    pieces.append(run.slice(start, starts[number]))
            yield _once(_sorted(pieces))


def gather_runs(batches: Iterable[pa.RecordBatch]) -> EventRuns:
    """Collect events.

    :param batches: of :data:`EVENT_FIELDS`, in any order.
    """
    runs: list[_Run] = []
    gathered: list[pa.RecordBatch] = []
    events = gathered_events = 0
    for batch in batches:
        gathered.append(batch)
        gathered_events += batch.num_rows
        events += batch.num_rows
        if gathered_events >= _RUN_EVENTS:
            runs.append(_Run.of(_sorted(gathered)))
            gathered, gathered_events = [], 0
    if gathered_events:
        runs.append(_Run.of(_sorted(gathered)))
    return EventRuns(events, tuple(runs))


def ascends(events: pa.RecordBatch) -> bool:
    """Whether every event stands behind the one before it."""
    return count(_is_behind(events, pc.less)) == max(events.num_rows - 1, 0)


def _is_behind(events: pa.RecordBatch, of_deleters: Any) -> pa.Array[Any]:
    """Of each event but the first, whether it stands behind the one before it.

    :param of_deleters: how the deleters of the same row must compare.
    """
    pairs, row_ids, deleters = events.columns
    same_row = pc.and_(pc.equal(row_ids[1:], row_ids[:-1]), of_deleters(deleters[1:], deleters[:-1]))
    same_pair = pc.and_(pc.equal(pairs[1:], pairs[:-1]), pc.or_(pc.greater(row_ids[1:], row_ids[:-1]), same_row))
    is_behind: pa.Array[Any] = pc.or_(pc.greater(pairs[1:], pairs[:-1]), same_pair)
    return is_behind


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of the same columns as one."""
    if len(batches) == 1:
        return batches[0]
    columns: list[pa.Array[Any]] = [
        pa.concat_arrays(list(pieces)) for pieces in zip(*(batch.columns for batch in batches), strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batches[0].schema.names)


def _sorted(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    events = joined(batches)
    in_order = count(_is_behind(events, pc.less_equal)) == max(events.num_rows - 1, 0)
    return events if in_order else events.take(pc.sort_indices(events, sort_keys=_ORDER))


def _once(events: pa.RecordBatch) -> pa.RecordBatch:
    differs = [pc.not_equal(column[1:], column[:-1]) for column in events.columns]
    is_new = pc.or_(pc.or_(differs[0], differs[1]), differs[2])
    if count(is_new) == len(is_new):
        return events
    return events.filter(pa.concat_arrays([pa.array([True]), is_new]))


def _narrow(numbers: pa.Array[Any]) -> Any:
    """The numbers with a dictionary, and as few bytes for the place in it as will do."""
    encoded: Any = pc.dictionary_encode(numbers)
    size = len(encoded.dictionary)
    narrow = next((kind for kind, most in ((pa.int8(), 1 << 7), (pa.int16(), 1 << 15)) if size <= most), pa.int32())
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(narrow), encoded.dictionary)
