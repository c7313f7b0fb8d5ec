"""One file of delete events: those of a bucket's rows, sorted, each written once.

Deletes are never applied here (Hive's minor compaction). Two events that name the same row are the same only if the
same write id deleted it: a reader may see the one deleter and not the other, so both stay, the later one first. That
is the order of Hive's ``ReaderKey``; its ``OrcRawRecordMerger`` collapses the same pairs and no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.acid.plan import BucketPlan, CompactionPlan
from airflow_provider_acid.acid.result import OutputFile
from airflow_provider_acid.exceptions import VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.acid_keys import (
    DELETE,
    Key,
    KeyRange,
    Visibility,
    bucket_properties,
    count,
    key_range,
    pairs_of,
    write_ids_of,
)
from airflow_provider_acid.spark_jobs.arrow_rows import ArrowFile
from airflow_provider_acid.spark_jobs.delete_events import events_of_bucket
from airflow_provider_acid.spark_jobs.merge_sources import output_calendar
from airflow_provider_acid.spark_jobs.merged import Merged, Progress, attempt_path
from airflow_provider_acid.spark_jobs.orc_schema import acid_schema, as_written
from airflow_provider_acid.spark_jobs.output_options import writable
from airflow_provider_acid.spark_jobs.sealed_output import write_errors_named
from airflow_provider_acid.spark_jobs.shared_dictionary import encoded, places_of, shared_values
from airflow_provider_acid.spark_jobs.source_files import KEY_FIELDS, SourceReader
from airflow_provider_acid.spark_jobs.stitched_file import StitchedFile
from airflow_provider_acid.spark_jobs.verify import REPORT, Expected, verify_output

_PIECE_ROWS = 65_536

_STRIPE_EVENTS = 1_048_576
"""Most events of a stripe: they compress so well that a writer would put all into one, and whoever reads one needs all
of it in memory.
"""

_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("pair", "ascending"),
    ("row_id", "ascending"),
    ("deleter", "descending"),
]


@dataclass(frozen=True)
class _Events:
    """The valid events of a bucket's rows: 16 bytes each, in Arrow.

    :param all_pairs: see :func:`~airflow_provider_acid.spark_jobs.acid_keys.pairs_of`; ascending, each once.
    :param all_deleters: of currentTransaction; ascending, each once.
    :param pairs: places in ``all_pairs``.
    :param deleters: places in ``all_deleters``.
    """

    bucket: int
    all_pairs: pa.Array[Any]
    all_deleters: pa.Array[Any]
    pairs: pa.Array[Any]
    row_ids: pa.Array[Any]
    deleters: pa.Array[Any]

    @property
    def columns(self) -> tuple[pa.Array[Any], ...]:
        """What differs from event to event."""
        return self.pairs, self.row_ids, self.deleters

    def changed(self, columns: Iterable[pa.Array[Any]]) -> _Events:
        """Some of the events, or in another order."""
        return _Events(self.bucket, self.all_pairs, self.all_deleters, *columns)

    def __len__(self) -> int:
        return len(self.pairs)

    def slice(self, start: int, length: int) -> _Events:
        """Some of the events, in place."""
        return self.changed(column.slice(start, length) for column in self.columns)

    def ids(self, start: int, length: int) -> pa.RecordBatch:
        """The columns before the row, of some of the events."""
        some = self.slice(start, length)
        pairs = self.all_pairs.take(some.pairs)
        columns = [
            pa.repeat(pa.scalar(DELETE, pa.int32()), len(some)),
            write_ids_of(pairs),
            bucket_properties(pairs, self.bucket),
            some.row_ids,
            self.all_deleters.take(some.deleters),
        ]
        return pa.RecordBatch.from_arrays(columns, names=KEY_FIELDS)


@dataclass(frozen=True)
class _Found:
    """What the delete files hold for a bucket; see :class:`~airflow_provider_acid.acid.result.OutputFile`."""

    events: _Events
    calendars: frozenset[int]
    rows_in: int
    rows_aborted: int
    rows_repeated: int


def merge_deletes(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> Merged:
    """Merge delete files into one; see :func:`~airflow_provider_acid.spark_jobs.merge.merge_bucket`."""
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    found = _collect(storage, plan, bucket, visibility)
    progress(bucket.input_bytes)
    if len(found.events) == 0:
        return Merged(None, _figures(bucket, found, 0, 0))
    schema, options = acid_schema(plan.columns), writable(plan.orc)
    path = attempt_path(plan, bucket_file_name(bucket.bucket))
    name, calendar = join(storage.location, path), output_calendar(found.calendars)
    with storage.create(path) as file, write_errors_named(name):
        stitched = StitchedFile(name, file)
        keys: list[Key] = []
        for start in range(0, len(found.events), _STRIPE_EVENTS):
            with stitched.part() as part:
                writer = ArrowFile(name, part, as_written(schema), options, set())
                _write(writer, found.events.slice(start, _STRIPE_EVENTS))
                writer.close()
                keys += writer.keys.last_keys(part.stripe_rows())
        stitched.seal(schema, options, keys, DELETE, calendar)
    expected = Expected(schema, DELETE, len(found.events), (0,) * len(plan.columns), tuple(keys), calendar)
    size = verify_output(storage, path, options, expected, _EventsCheck(found.events, visibility))
    return Merged(path, _figures(bucket, found, size, len(keys)))


@dataclass(frozen=True)
class _Piece:
    """Events as they were read; pairs and deleters are :func:`encoded`."""

    pairs: Any
    row_ids: pa.Array[Any]
    deleters: Any


def _collect(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, visibility: Visibility) -> _Found:
    pieces: list[_Piece] = []
    calendars: set[int] = set()
    rows_in = 0
    for reader, batch in events_of_bucket(storage, plan, bucket, visibility):
        pieces.append(_piece_of(batch.filter(visibility.valid(batch.column("currentTransaction")))))
        calendars.add(reader.tail.calendar)
        rows_in += batch.num_rows
        del batch
    events = _together(bucket.bucket, pieces)
    rows_valid = len(events)
    events = _once(events)
    return _Found(events, frozenset(calendars), rows_in, rows_in - rows_valid, rows_valid - len(events))


def _piece_of(batch: pa.RecordBatch) -> _Piece:
    return _Piece(encoded(pairs_of(batch)), batch.column("rowId"), encoded(batch.column("currentTransaction")))


def _together(bucket: int, pieces: list[_Piece]) -> _Events:
    """The events in their order. What is not needed any more is let go at once: there may be millions."""
    if not pieces:
        nothing: pa.Array[Any] = pa.array([], pa.int64())
        return _Events(bucket, nothing, nothing, nothing, nothing, nothing)
    all_pairs = shared_values(piece.pairs for piece in pieces)
    all_deleters = shared_values(piece.deleters for piece in pieces)
    columns: tuple[list[pa.Array[Any]], ...] = ([], [], [])
    while pieces:
        piece = pieces.pop()
        found = places_of(piece.pairs, all_pairs), piece.row_ids, places_of(piece.deleters, all_deleters)
        for column, values in zip(columns, found, strict=True):
            column.append(values)
        del piece, found
        pa.default_memory_pool().release_unused()
    joined = [_joined(column) for column in columns]
    _sort(joined)
    return _Events(bucket, all_pairs, all_deleters, *joined)


def _joined(pieces: list[pa.Array[Any]]) -> pa.Array[Any]:
    joined = pa.concat_arrays(pieces)
    pieces.clear()
    return joined


def _sort(columns: list[pa.Array[Any]]) -> None:
    table = pa.Table.from_arrays(list(columns), names=[column for column, _ in _ORDER])
    order = pc.sort_indices(table, sort_keys=_ORDER)
    del table
    for place in range(len(columns)):
        columns[place] = columns[place].take(order)


def _once(events: _Events) -> _Events:
    differs = [pc.not_equal(column[1:], column[:-1]) for column in events.columns]
    is_new = pc.or_(pc.or_(differs[0], differs[1]), differs[2])
    if count(is_new) == len(is_new):
        return events
    first = pa.concat_arrays([pa.array([True]), is_new])
    return events.changed(column.filter(first) for column in events.columns)


def _write(writer: ArrowFile, events: _Events) -> None:
    for start in range(0, len(events), _PIECE_ROWS):
        ids = events.ids(start, _PIECE_ROWS)
        kinds: list[Any] = list(writer.types)
        no_values: list[pa.Array[Any]] = [pa.nulls(ids.num_rows, kind) for kind in kinds]
        writer.append(ids, no_values, pa.repeat(pa.scalar(True), ids.num_rows))


def _figures(bucket: BucketPlan, found: _Found, size: int, stripes: int) -> OutputFile:
    return OutputFile(
        output=bucket.output,
        bucket=bucket.bucket,
        name=bucket_file_name(bucket.bucket) if stripes else None,
        size_bytes=size,
        stripes=stripes,
        rows_in=found.rows_in,
        rows_aborted=found.rows_aborted,
        rows_deleted=0,
        rows_repeated=found.rows_repeated,
        rows_out=len(found.events),
    )


class _EventsCheck:
    """Compares what is read back with what was to be written, and looks once more at order and validity."""

    def __init__(self, events: _Events, visibility: Visibility) -> None:
        self._events = events
        self._visibility = visibility
        self._start = 0

    def __call__(self, reader: SourceReader, stripe: int) -> KeyRange:
        """Check one stripe.

        :raises VerificationError: it does not hold what it must.
        """
        batch = reader.read_stripe(stripe)
        ids = batch.select(KEY_FIELDS)
        wanted = self._events.ids(self._start, batch.num_rows)
        if not ids.equals(wanted):
            raise VerificationError(reader.name, f"holds other events in stripe {stripe} than were found", REPORT)
        if batch.column("row").null_count != batch.num_rows:
            raise VerificationError(reader.name, f"holds rows among the delete events of stripe {stripe}", REPORT)
        invalid = count(pc.invert(self._visibility.valid(ids.column("currentTransaction"))))
        if invalid:
            raise VerificationError(reader.name, f"holds {invalid} events that do not count", REPORT)
        if not _ascends(self._events.slice(max(self._start - 1, 0), batch.num_rows + 1)):
            raise VerificationError(reader.name, f"holds events that do not ascend in stripe {stripe}", REPORT)
        self._start += batch.num_rows
        return key_range(ids)


def _ascends(events: _Events) -> bool:
    pairs, row_ids, deleters = events.pairs, events.row_ids, events.deleters
    same_row = pc.and_(pc.equal(row_ids[1:], row_ids[:-1]), pc.less(deleters[1:], deleters[:-1]))
    same_pair = pc.and_(pc.equal(pairs[1:], pairs[:-1]), pc.or_(pc.greater(row_ids[1:], row_ids[:-1]), same_row))
    return count(pc.or_(pc.greater(pairs[1:], pairs[:-1]), same_pair)) == len(pairs) - 1
