"""One file of delete events: those of a bucket's rows, sorted, each written once.

Deletes are never applied here (Hive's minor compaction). Two events that name the same row are the same only if the
same write id deleted it: a reader may see the one deleter and not the other, so both stay, the later one first. That
is the order of Hive's ``ReaderKey``; its ``OrcRawRecordMerger`` collapses the same pairs and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.exceptions import VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.answers import Merged, Progress, attempt_path
from airflow_provider_acid.merge.files.delete_events import events_of_bucket
from airflow_provider_acid.merge.files.sealed_output import write_errors_named
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader
from airflow_provider_acid.merge.files.verify import REPORT, Expected, verify_output
from airflow_provider_acid.merge.keys.acid_keys import (
    DELETE,
    Key,
    KeyRange,
    Visibility,
    bucket_properties,
    count,
    key_range_with,
    pairs_of,
    write_ids_of,
)
from airflow_provider_acid.merge.keys.event_runs import EVENT_FIELDS, ascends, gather_runs, joined
from airflow_provider_acid.merge.orc.output_options import writable
from airflow_provider_acid.merge.orc.schema import acid_schema, as_written
from airflow_provider_acid.merge.rows.arrow_rows import ArrowFile
from airflow_provider_acid.merge.rows.merge_sources import output_calendar
from airflow_provider_acid.merge.stitch.stitched_file import StitchedFile
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan
from airflow_provider_acid.plan.result import OutputFile

_PIECE_ROWS = 65_536

_STRIPE_EVENTS = 1_048_576
"""Most events of a stripe: they compress so well that a writer would put all into one, and whoever reads one needs all
of it in memory.
"""


@dataclass
class _Found:
    """What the delete files hold for a bucket; see :class:`~airflow_provider_acid.plan.result.OutputFile`."""

    calendars: set[int] = field(default_factory=set)
    rows_in: int = 0
    rows_out: int = 0


def merge_deletes(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> Merged:
    """Merge delete files into one; see :func:`~airflow_provider_acid.merge.buckets.merge_bucket`."""
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    found = _Found()
    events = gather_runs(_valid_events(storage, plan, bucket, visibility, found))
    progress(bucket.input_bytes)
    if events.events == 0:
        return Merged(None, _figures(bucket, found, 0, 0, 0))
    schema, options = acid_schema(plan.columns), writable(plan.orc)
    path = attempt_path(plan, bucket_file_name(bucket.bucket))
    name, calendar = join(storage.location, path), output_calendar(found.calendars)
    with storage.create(path) as file, write_errors_named(name):
        stitched = StitchedFile(name, file)
        keys: list[Key] = []
        for pieces in _by_stripes(events.merged()):
            with stitched.part() as part:
                writer = ArrowFile(name, part, as_written(schema), options, set())
                for piece in pieces:
                    _write(writer, _ids_of(piece, bucket.bucket))
                    found.rows_out += piece.num_rows
                writer.close()
                keys += writer.keys.last_keys(part.stripe_rows())
        stitched.seal(schema, options, keys, DELETE, calendar)
    expected = Expected(schema, DELETE, found.rows_out, (0,) * len(plan.columns), tuple(keys), calendar)
    size = verify_output(storage, path, options, expected, _EventsCheck(bucket.bucket, events.merged(), visibility))
    return Merged(path, _figures(bucket, found, events.events, size, len(keys)))


def _valid_events(
    storage: Storage, plan: CompactionPlan, bucket: BucketPlan, visibility: Visibility, found: _Found
) -> Iterator[pa.RecordBatch]:
    for reader, batch in events_of_bucket(storage, plan, bucket, visibility):
        found.calendars.add(reader.tail.calendar)
        found.rows_in += batch.num_rows
        yield _events_of(batch.filter(visibility.valid(batch.column("currentTransaction"))))


def _events_of(ids: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pairs_of(ids), ids.column("rowId"), ids.column("currentTransaction")]
    return pa.RecordBatch.from_arrays(columns, names=EVENT_FIELDS)


def _ids_of(events: pa.RecordBatch, bucket: int) -> pa.RecordBatch:
    """The columns before the row."""
    pairs, row_ids, deleters = events.columns
    columns = [
        pa.repeat(pa.scalar(DELETE, pa.int32()), events.num_rows),
        write_ids_of(pairs),
        bucket_properties(pairs, bucket),
        row_ids,
        deleters,
    ]
    return pa.RecordBatch.from_arrays(columns, names=KEY_FIELDS)


def _by_stripes(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Pieces of the batches, as many as go into a stripe."""
    pieces: list[pa.RecordBatch] = []
    room = _STRIPE_EVENTS
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            pieces.append(batch.slice(start, min(_PIECE_ROWS, room)))
            start += pieces[-1].num_rows
            room -= pieces[-1].num_rows
            if not room:
                yield pieces
                pieces, room = [], _STRIPE_EVENTS
    if pieces:
        yield pieces


def _write(writer: ArrowFile, ids: pa.RecordBatch) -> None:
    kinds: list[Any] = list(writer.types)
    no_values: list[pa.Array[Any]] = [pa.nulls(ids.num_rows, kind) for kind in kinds]
    writer.append(ids, no_values, pa.repeat(pa.scalar(True), ids.num_rows))


def _figures(bucket: BucketPlan, found: _Found, rows_valid: int, size: int, stripes: int) -> OutputFile:
    return OutputFile(
        output=bucket.output,
        bucket=bucket.bucket,
        name=bucket_file_name(bucket.bucket) if stripes else None,
        size_bytes=size,
        stripes=stripes,
        rows_in=found.rows_in,
        rows_aborted=found.rows_in - rows_valid,
        rows_deleted=0,
        rows_repeated=rows_valid - found.rows_out,
        rows_out=found.rows_out,
    )


class _EventsCheck:
    """Compares what is read back with what was to be written, and looks once more at order and validity.

    :param wanted: the events in their order.
    """

    def __init__(self, bucket: int, wanted: Iterator[pa.RecordBatch], visibility: Visibility) -> None:
        self._bucket = bucket
        self._wanted = wanted
        self._visibility = visibility
        self._left: list[pa.RecordBatch] = []
        self._last: list[pa.RecordBatch] = []

    def __call__(self, reader: SourceReader, stripe: int) -> KeyRange | None:
        """Check one stripe.

        :raises VerificationError: it does not hold what it must.
        """
        keys: KeyRange | None = None
        for batch in reader.read_batches(stripe):
            self._check(reader, stripe, batch)
            keys = key_range_with(keys, batch)
        return keys

    def _check(self, reader: SourceReader, stripe: int, batch: pa.RecordBatch) -> None:
        ids = batch.select(KEY_FIELDS)
        wanted = self._next(batch.num_rows)
        if not ids.equals(_ids_of(wanted, self._bucket)):
            raise VerificationError(reader.name, f"holds other events in stripe {stripe} than were found", REPORT)
        if batch.column("row").null_count != batch.num_rows:
            raise VerificationError(reader.name, f"holds rows among the delete events of stripe {stripe}", REPORT)
        invalid = count(pc.invert(self._visibility.valid(ids.column("currentTransaction"))))
        if invalid:
            raise VerificationError(reader.name, f"holds {invalid} events that do not count", REPORT)
        if not ascends(joined([*self._last, wanted])):
            raise VerificationError(reader.name, f"holds events that do not ascend in stripe {stripe}", REPORT)
        self._last = [wanted.slice(wanted.num_rows - 1)]

    def _next(self, events: int) -> pa.RecordBatch:
        """The next that are wanted; fewer where there are not so many."""
        while sum(batch.num_rows for batch in self._left) < events:
            batch = next(self._wanted, None)
            if batch is None:
                break
            self._left.append(batch)
        whole = joined(self._left)
        self._left = [whole.slice(events)]
        return whole.slice(0, events)
