"""One file of rows: a bucket's files in key order, without aborted and deleted rows.

No sort is needed: every ACID file is sorted by (originalTransaction, bucket, rowId) and insert deltas hold rows of
their own write ids only, so base, then deltas is the order already (checked while writing). The rules for rows are
those of Hive's ``OrcRawRecordMerger`` with a ``ValidCompactorWriteIdList``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.acid.plan import BucketPlan, CompactionPlan, CopiedStripes
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.spark_jobs.acid_keys import INSERT, Visibility
from airflow_provider_acid.spark_jobs.arrow_rows import ArrowRows, NotExactError
from airflow_provider_acid.spark_jobs.delete_events import events_of_bucket
from airflow_provider_acid.spark_jobs.exact_rows import ExactRows
from airflow_provider_acid.spark_jobs.key_filter import deleted_keys
from airflow_provider_acid.spark_jobs.merge_sources import look_at
from airflow_provider_acid.spark_jobs.merged import Merged, Progress, attempt_path
from airflow_provider_acid.spark_jobs.orc_schema import acid_schema
from airflow_provider_acid.spark_jobs.output_options import writable
from airflow_provider_acid.spark_jobs.rows_output import RowsOutput, Way, Written
from airflow_provider_acid.spark_jobs.sealed_output import sealed_output
from airflow_provider_acid.spark_jobs.source_files import open_in_order
from airflow_provider_acid.spark_jobs.stitch_rows import stitch_rows, stitching_of


class _NoRowsLeftError(Exception):
    """Ends the writing of a file that would be empty; the storage then drops it."""


def merge_rows(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> Merged:
    """Merge a bucket's files with rows; see :func:`~airflow_provider_acid.spark_jobs.merge.merge_bucket`."""
    schema, options = acid_schema(plan.columns), writable(plan.orc)
    path = attempt_path(plan, bucket_file_name(bucket.bucket))
    sources = look_at(storage, bucket, schema, plan.is_for_hive_3)
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    events = events_of_bucket(storage, plan, bucket, visibility)
    deleted = deleted_keys((batch for _, batch in events), visibility)
    output = RowsOutput(storage, options, bucket, schema, path, sources, visibility, deleted, progress)
    merge = _way_to_merge(output)
    if sources.is_exact_in_arrow:
        with suppress(NotExactError):
            return merge(ArrowRows)
    return merge(ExactRows)


def _way_to_merge(output: RowsOutput) -> Callable[[Way], Merged]:
    options, decode_all = output.options, partial(_decode_all, output)
    if options.stripe_copy is CopiedStripes.NEVER or output.sources.largest_stripe_bytes < options.small_stripe_bytes:
        return decode_all
    stitching = stitching_of(output)
    return partial(stitch_rows, output, stitching) if stitching else decode_all


def _decode_all(output: RowsOutput, way: Way) -> Merged:
    """Write every row that stays anew, and verify the file."""
    rows_aborted = rows_deleted = 0
    try:
        with output.storage.create(output.path) as file, sealed_output(output.name, file) as sealed:
            writer = output.writer(way, sealed)
            rows_aborted, rows_deleted = _write(output, writer)
            writer.close()
            if writer.keys.rows == 0:
                raise _NoRowsLeftError
            keys = writer.keys.last_keys(sealed.stripe_rows())
            sealed.seal(output.schema, keys, INSERT, writer.keys.rows, output.calendar)
    except _NoRowsLeftError:
        return output.nothing_left(rows_aborted, rows_deleted)
    return output.verified(way, Written(keys, rows_aborted, rows_deleted))


def _write(output: RowsOutput, writer: ArrowRows | ExactRows) -> tuple[int, int]:
    rows_aborted = rows_deleted = done_bytes = 0
    key_filter = output.key_filter()
    with closing(open_in_order(output.storage, output.bucket.rows)) as sources:
        for source, reader in sources:
            for stripe in range(len(reader.tail.stripes) if reader else 0):
                assert reader is not None
                batch = reader.read_stripe(stripe, writer.fields)
                kept = key_filter.apply(reader.name, batch)
                rows_aborted += kept.rows_aborted
                rows_deleted += kept.rows_deleted
                writer.write(reader, stripe, batch, kept.mask)
                end = reader.tail.stripes[stripe]
                output.progress(done_bytes + end.offset + end.index_bytes + end.data_bytes)
            done_bytes += source.size_bytes
            output.progress(done_bytes)
    return rows_aborted, rows_deleted
