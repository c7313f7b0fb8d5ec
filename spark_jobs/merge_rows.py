"""One file of rows: a bucket's files in key order, without aborted and deleted rows.

No sort is needed: every ACID file is sorted by (originalTransaction, bucket, rowId) and insert deltas hold rows of
their own write ids only, so base, then deltas is the order already (checked while writing). The rules for rows are
those of Hive's ``OrcRawRecordMerger`` with a ``ValidCompactorWriteIdList``.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.acid.plan import BucketPlan, CompactionPlan, OrcOptions
from airflow_provider_acid.acid.result import OutputFile
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.acid_keys import INSERT, Visibility
from airflow_provider_acid.spark_jobs.arrow_rows import ArrowRows, NotExactError
from airflow_provider_acid.spark_jobs.delete_events import events_of_bucket
from airflow_provider_acid.spark_jobs.exact_rows import ExactRows
from airflow_provider_acid.spark_jobs.key_filter import DeletedKeys, KeyFilter, deleted_keys
from airflow_provider_acid.spark_jobs.merge_sources import Sources, look_at, output_calendar
from airflow_provider_acid.spark_jobs.merged import Merged, Progress, attempt_path
from airflow_provider_acid.spark_jobs.orc_nan_statistics import without_nan_statistics
from airflow_provider_acid.spark_jobs.orc_schema import OrcType, acid_schema, as_written
from airflow_provider_acid.spark_jobs.output_options import bloom_filter_ids, writable
from airflow_provider_acid.spark_jobs.sealed_output import SealedOutput, sealed_output
from airflow_provider_acid.spark_jobs.source_files import open_in_order
from airflow_provider_acid.spark_jobs.verify import Expected, RowsCheck, verify_output


class _NoRowsLeftError(Exception):
    """Ends the writing of a file that would be empty; the storage then drops it."""


def merge_rows(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> Merged:
    """Merge a bucket's files with rows; see :func:`~airflow_provider_acid.spark_jobs.merge.merge_bucket`."""
    schema = acid_schema(plan.columns)
    path = attempt_path(plan, bucket_file_name(bucket.bucket))
    sources = look_at(storage, bucket, schema, plan.is_for_hive_3)
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    events = events_of_bucket(storage, plan, bucket, visibility)
    deleted = deleted_keys((batch for _, batch in events), visibility)
    merge = _Merge(storage, writable(plan.orc), bucket, schema, path, sources, visibility, deleted, progress)
    if sources.is_exact_in_arrow:
        with suppress(NotExactError):
            return merge.run(ArrowRows)
    return merge.run(ExactRows)


@dataclass(frozen=True)
class _Merge:
    storage: Storage
    options: OrcOptions
    bucket: BucketPlan
    schema: OrcType
    path: str
    sources: Sources
    visibility: Visibility
    deleted: DeletedKeys
    progress: Progress

    def run(self, way: type[ArrowRows] | type[ExactRows]) -> Merged:
        """Write and verify the file one of the two ways."""
        rows_aborted = rows_deleted = 0
        calendar = output_calendar(self.sources.calendars)
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
                output.seal(self.schema, keys, INSERT, writer.keys.rows, calendar)
        except _NoRowsLeftError:
            return Merged(None, self._figures(0, 0, rows_aborted, rows_deleted, 0))
        expected = Expected(
            schema=self.schema,
            operation=INSERT,
            rows=self.sources.rows - rows_aborted - rows_deleted,
            # Statistics do not say which values went with the rows that were dropped.
            values=None if rows_aborted or rows_deleted else self.sources.values,
            last_keys=keys,
            calendar=calendar,
        )
        keys_left = KeyFilter(self.bucket.bucket, self.visibility, self.deleted)
        check = RowsCheck(keys_left, None if way is ArrowRows else self.sources.zone)
        path = without_nan_statistics(self.storage, self.path)
        size = verify_output(self.storage, path, self.options, expected, check)
        return Merged(path, self._figures(size, len(keys), rows_aborted, rows_deleted, expected.rows))

    def _copy(self, writer: ArrowRows | ExactRows) -> tuple[int, int]:
        rows_aborted = rows_deleted = done_bytes = 0
        key_filter = KeyFilter(self.bucket.bucket, self.visibility, self.deleted)
        with closing(open_in_order(self.storage, self.bucket.rows)) as sources:
            for source, reader in sources:
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
        written, bloom = as_written(self.schema), bloom_filter_ids(self.schema, self.options.bloom_filter_columns)
        if way is ArrowRows:
            return ArrowRows(name, output, written, self.options, bloom)
        return ExactRows(name, output, written, self.options, bloom, self.sources.zone)

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
