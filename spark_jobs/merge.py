"""One output file of a major compaction: a bucket's files in key order, without aborted and deleted rows.

No sort is needed: every ACID file is sorted by (originalTransaction, bucket, rowId) and insert deltas hold rows of
their own write ids only, so base, then deltas is the order already (checked while writing). The rules for rows are
those of Hive's ``OrcRawRecordMerger`` with a ``ValidCompactorWriteIdList``.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest

from airflow_provider_acid.acid.exchange import ATTEMPTS_DIRECTORY
from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.acid.plan import BucketPlan, CompactionPlan, OrcOptions, OutputKind
from airflow_provider_acid.acid.result import OutputFile
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.arrow_rows import UTC_NAMES, ArrowRows, NotExactError, is_exact
from airflow_provider_acid.spark_jobs.exact_rows import ExactRows
from airflow_provider_acid.spark_jobs.insert_only import copy_files
from airflow_provider_acid.spark_jobs.key_filter import DeletedKeys, KeyFilter, Visibility, deleted_keys
from airflow_provider_acid.spark_jobs.merged import Merged, Progress
from airflow_provider_acid.spark_jobs.orc_schema import INTEGERS, TIMESTAMPS, Kind, OrcType, acid_schema, as_written
from airflow_provider_acid.spark_jobs.sealed_output import SealedOutput, sealed_output
from airflow_provider_acid.spark_jobs.source_files import SourceReader, check_types, delete_events, open_source
from airflow_provider_acid.spark_jobs.verify import Expected, verify_output

# 1582-10-15, the first day on which the hybrid and the proleptic Gregorian calendar agree
_GREGORIAN_DAY = -141_427
_DAY_MILLISECONDS = 86_400_000

_CALENDAR_PROLEPTIC = 2

# ORC's C++ writer, below both pyarrow and pyorc, fills its compression blocks from memory blocks of this size.
_MEMORY_BLOCK_BYTES = 65_536


@dataclass
class _Sources:
    """What a look at every source's tail says about the whole merge."""

    rows: int = 0
    is_exact_in_arrow: bool = True
    values: tuple[int, ...] | None = ()
    zones: frozenset[str] = frozenset()
    calendars: frozenset[int] = frozenset()
    depends_on_calendar: bool = False


class _NoRowsLeftError(Exception):
    """Ends the writing of a file that would be empty; the storage then drops it."""


def merge_bucket(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> tuple[Merged, ...]:
    """Merge a bucket's files into a new file below the staging directory's ``attempts``, and verify it.

    :param storage: of the plan's location.
    :param progress: called with the bytes of the sources that are merged so far.
    :raises CorruptFileError: a source cannot be read exactly, is not the planned one, or breaks a rule.
    :raises UnsupportedTableError: a type, or a kind of file, that this release does not compact.
    :raises VerificationError: the written file does not hold what it must.
    """
    if plan.format.is_insert_only:
        return copy_files(storage, plan, bucket, progress)
    if bucket.output is OutputKind.DELETES:
        raise UnsupportedTableError(str(plan.entity), "is of a kind that is not merged yet", "ask for a major")
    schema = acid_schema(plan.columns)
    name = bucket_file_name(bucket.bucket)
    path = f"{plan.staging}/{ATTEMPTS_DIRECTORY}/{name}.{uuid.uuid4().hex}"
    sources = _look_at(storage, bucket, schema)
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    deleted = deleted_keys(delete_events(storage, bucket.deletes), bucket.bucket, visibility)
    options = _writable(plan.orc)
    merge = _Merge(storage, options, bucket, schema, path, sources, visibility, deleted, progress)
    if sources.is_exact_in_arrow:
        with suppress(NotExactError):
            return (merge.run(ArrowRows),)
    return (merge.run(ExactRows),)


@dataclass(frozen=True)
class _Merge:
    storage: Storage
    options: OrcOptions
    bucket: BucketPlan
    schema: OrcType
    path: str
    sources: _Sources
    visibility: Visibility
    deleted: DeletedKeys
    progress: Progress

    def run(self, way: type[ArrowRows] | type[ExactRows]) -> Merged:
        """Write and verify the file one of the two ways."""
        rows_aborted = rows_deleted = 0
        calendar = _output_calendar(self.sources)
        name = join(self.storage.location, self.path)
        try:
            with self.storage.create(self.path) as file, sealed_output(name, file) as output:
                writer = self._writer(way, name, output)
                rows_aborted, rows_deleted = self._copy(writer)
                writer.close()
                if writer.keys.rows == 0:
                    raise _NoRowsLeftError
                stripe_rows = output.stripe_rows()
                keys = writer.keys.last_keys(stripe_rows)
                output.seal(self.schema, keys, writer.keys.rows, calendar)
        except _NoRowsLeftError:
            return Merged(None, self._figures(0, 0, rows_aborted, rows_deleted, 0))
        expected = Expected(
            schema=self.schema,
            rows=self.sources.rows - rows_aborted - rows_deleted,
            # Statistics do not say which values went with the rows that were dropped.
            values=None if rows_aborted or rows_deleted else self.sources.values,
            last_keys=keys,
            calendar=calendar,
            reads_in_arrow=way is ArrowRows,
            zone=self._zone(),
        )
        keys_left = KeyFilter(self.bucket.bucket, self.visibility, self.deleted)
        size = verify_output(self.storage, self.path, self.options, expected, keys_left)
        return Merged(self.path, self._figures(size, len(keys), rows_aborted, rows_deleted, expected.rows))

    def _copy(self, writer: ArrowRows | ExactRows) -> tuple[int, int]:
        rows_aborted = rows_deleted = done_bytes = 0
        key_filter = KeyFilter(self.bucket.bucket, self.visibility, self.deleted)
        for source in self.bucket.rows:
            with open_source(self.storage, source) as reader:
                for stripe in range(len(reader.tail.stripes) if reader else 0):
                    assert reader is not None
                    batch = reader.read_stripe(stripe, writer.fields)
                    kept = key_filter.apply(reader.name, batch)
                    rows_aborted += kept.rows_aborted
                    rows_deleted += kept.rows_deleted
                    writer.write(reader, stripe, batch, kept.mask)
                    end = reader.tail.stripes[stripe]
                    self.progress(done_bytes + end.offset + end.index_bytes + end.data_bytes)
            done_bytes += source.size_bytes
            self.progress(done_bytes)
        return rows_aborted, rows_deleted

    def _writer(self, way: type[ArrowRows] | type[ExactRows], name: str, output: SealedOutput) -> ArrowRows | ExactRows:
        written, bloom = as_written(self.schema), _bloom_filter_ids(self.schema, self.options.bloom_filter_columns)
        if way is ArrowRows:
            return ArrowRows(name, output, written, self.options, bloom)
        return ExactRows(name, output, written, self.options, bloom, self._zone())

    def _zone(self) -> str:
        zones = self.sources.zones - UTC_NAMES
        return next(iter(zones)) if zones else "UTC"

    def _figures(self, size: int, stripes: int, rows_aborted: int, rows_deleted: int, rows_out: int) -> OutputFile:
        return OutputFile(
            output=self.bucket.output,
            bucket=self.bucket.bucket,
            name=bucket_file_name(self.bucket.bucket) if rows_out else None,
            size_bytes=size,
            stripes=stripes,
            rows_in=self.sources.rows,
            rows_aborted=rows_aborted,
            rows_deleted=rows_deleted,
            rows_repeated=0,
            rows_out=rows_out,
        )


def _writable(options: OrcOptions) -> OrcOptions:
    """The options as ORC's C++ writer takes them: none of this changes what a reader sees.

    A table without row index gets one, because Trino fails on files that say their stride is 0.
    """
    blocks = -(-options.compression_block_bytes // _MEMORY_BLOCK_BYTES)
    return replace(
        options,
        compression_block_bytes=blocks * _MEMORY_BLOCK_BYTES,
        row_index_stride=options.row_index_stride or OrcOptions.row_index_stride,
    )


def _look_at(storage: Storage, bucket: BucketPlan, schema: OrcType) -> _Sources:
    """Read every source's tail before anything is written; refuse here what can be known here."""
    found = _Sources()
    for source in bucket.rows:
        with open_source(storage, source) as reader:
            if reader is None:
                continue
            check_types(reader.name, reader.row_type, schema.children[5])
            found.rows += reader.tail.rows
            found.values = _sum(found.values, reader.tail.values_by_column())
            found.is_exact_in_arrow &= is_exact(reader, schema.children[5])
            found.calendars |= {reader.tail.calendar}
            found.depends_on_calendar |= _depends_on_calendar(reader)
            found.zones |= _zones(reader, found.zones)
    if len(found.calendars) > 1 and found.depends_on_calendar:
        raise UnsupportedTableError(
            join(storage.location, f"bucket {bucket.bucket}"),
            "holds dates before 1582-10-15 in files of different calendars (footers of Hive 3 and Hive 4)",
            "compact this partition with Hive 4",
        )
    return found


def _sum(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if one is None or other is None:
        return None
    return tuple(map(sum, zip_longest(one, other, fillvalue=0)))


def _zones(reader: SourceReader, others: frozenset[str]) -> frozenset[str]:
    if not reader.has_values(TIMESTAMPS):
        return frozenset()
    zones = frozenset("UTC" if zone in UTC_NAMES else zone for zone in reader.writer_time_zones())
    if "" in zones or len(zones | others) > 1:
        raise UnsupportedTableError(
            reader.name,
            f"counts timestamps in the zones {sorted(zones)}, files before it in {sorted(others)}",
            "compact this partition with Hive",
        )
    return zones


def _depends_on_calendar(reader: SourceReader) -> bool:
    ranges = ((Kind.DATE, _GREGORIAN_DAY), (Kind.TIMESTAMP, (_GREGORIAN_DAY + 1) * _DAY_MILLISECONDS))
    return any(
        found.minimum is None or found.minimum < first for kind, first in ranges for found in reader.ranges((kind,))
    )


def _output_calendar(sources: _Sources) -> int:
    # Where calendars differ no value depends on them; Hive 4's own choice is then as good as any.
    return next(iter(sources.calendars)) if len(sources.calendars) == 1 else _CALENDAR_PROLEPTIC


def _bloom_filter_ids(schema: OrcType, columns: tuple[str, ...]) -> set[int]:
    """Column ids of the wanted filters, for the types whose hashes are the same in every implementation of ORC."""
    wanted, ids = {name.lower() for name in columns}, set()
    column_id = 7
    for name, child in zip(schema.children[5].names, schema.children[5].children, strict=True):
        if name.lower() in wanted and child.kind in (*INTEGERS, Kind.STRING):
            ids.add(column_id)
        column_id += sum(1 for _ in child.walk())
    return ids
