"""One file of rows: a bucket's files in key order, without aborted and deleted rows.

No sort is needed: every ACID file is sorted by (originalTransaction, bucket, rowId) and insert deltas hold rows of
their own write ids only, so base, then deltas is the order already (checked while writing). The rules for rows are
those of Hive's ``OrcRawRecordMerger`` with a ``ValidCompactorWriteIdList``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.answers import Merged, Part, Progress, attempt_path
from airflow_provider_acid.merge.files.delete_events import events_of_bucket
from airflow_provider_acid.merge.files.sealed_output import sealed_output
from airflow_provider_acid.merge.files.source_files import open_in_order
from airflow_provider_acid.merge.keys.acid_keys import INSERT, Visibility, pair_of
from airflow_provider_acid.merge.keys.deleted_keys import ALL_PAIRS, Pairs, deleted_keys
from airflow_provider_acid.merge.orc.output_options import writable
from airflow_provider_acid.merge.orc.schema import acid_schema
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows, NotExactError
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.merge.rows.merge_sources import Sources, look_at
from airflow_provider_acid.merge.stitch.bucket_rows import RowsOutput, Way, Written
from airflow_provider_acid.merge.stitch.stitch_rows import Stitching, stitch_rows, stitching_of
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows, join_parts, write_slice
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, CopiedStripes

_T = TypeVar("_T")

_FEW_ROWS = 131_072
"""Which one writer may write, whatever it holds of them in memory; see :mod:`~.held_texts`."""


class _NoRowsLeftError(Exception):
    """Ends the writing of a file that would be empty; the storage then drops it."""


def begin_rows(
    storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress, slots: int
) -> Merged | SlicedRows:
    """Merge a bucket's files with rows, or say how it is cut; see :func:`~.merge.begin_bucket`."""
    sources = look_at(storage, bucket, acid_schema(plan.columns), plan.is_for_hive_3)
    output = _output(storage, plan, bucket, bucket_file_name(bucket.bucket), sources, progress)
    options = output.options
    if 0 < options.slice_bytes < sum(source.size_bytes for source in bucket.rows):
        stitching = stitching_of(output)
        if stitching.rewritten_bytes > options.slice_bytes:
            return SlicedRows.of(sources, stitching, options.slice_bytes, slots)
        return _merge_by(output, stitching)
    are_small = sources.largest_stripe_bytes < options.small_stripe_bytes
    if (are_small or options.stripe_copy is CopiedStripes.NEVER) and sources.rows <= _FEW_ROWS:
        return _exactly(sources, partial(_decode_all, output))
    return _merge_by(output, stitching_of(output))


def write_part(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, sliced: SlicedRows, number: int) -> Part:
    """Write and verify one slice of a bucket into a file below ``attempts``.

    :param number: of the slice.
    :raises CorruptFileError: a source is not the file that was looked at.
    :raises VerificationError: the written file does not hold what it must.
    """
    stripes = [stripe for segment in sliced.of_slice(number) for stripe in segment.stripes]
    pairs = Pairs(pair_of(stripes[0].first_key), pair_of(stripes[-1].last_key))
    name = f"{bucket_file_name(bucket.bucket)}.slice_{number:04d}"
    sources = sliced.sources_of_slice(number)
    output = _output(storage, plan, bucket, name, sources, lambda done_bytes: None, pairs)
    return _exactly(sources, partial(write_slice, output, sliced, number))


def join_rows(
    storage: Storage,
    plan: CompactionPlan,
    bucket: BucketPlan,
    sliced: SlicedRows,
    parts: Sequence[Part],
    progress: Progress,
) -> Merged:
    """Put a bucket's file together of its parts, which stay, and verify it.

    :param parts: of all slices, in their order.
    :raises CorruptFileError: a source or a part is not the file it was.
    :raises VerificationError: the written file does not hold what it must.
    """
    output = _output(storage, plan, bucket, bucket_file_name(bucket.bucket), sliced.sources, progress)
    return join_parts(output, sliced, parts)


def _output(
    storage: Storage,
    plan: CompactionPlan,
    bucket: BucketPlan,
    name: str,
    sources: Sources,
    progress: Progress,
    pairs: Pairs = ALL_PAIRS,
) -> RowsOutput:
    visibility = Visibility.of(plan.high_water_mark, plan.aborted_write_ids)
    events = events_of_bucket(storage, plan, bucket, visibility)
    deleted = deleted_keys((batch for _, batch in events), visibility, pairs)
    # Readers look for values as they convert them, filters hold them as they are.
    filtered = tuple(column for column in plan.orc.bloom_filter_columns if column.lower() not in sources.converted)
    path, options = attempt_path(plan, name), replace(writable(plan.orc), bloom_filter_columns=filtered)
    return RowsOutput(storage, options, bucket, path, sources, visibility, deleted, progress)


def _exactly(sources: Sources, merge: Callable[[Way], _T]) -> _T:
    """Merge through Arrow, or where that holds a value not exactly, row by row."""
    if sources.is_exact_in_arrow:
        with suppress(NotExactError):
            return merge(ArrowRows)
    return merge(ExactRows)


def _merge_by(output: RowsOutput, stitching: Stitching) -> Merged:
    if stitching.copies_any or output.sources.rows > _FEW_ROWS:
        return _exactly(output.sources, partial(stitch_rows, output, stitching))
    return _exactly(output.sources, partial(_decode_all, output))


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
                for batch in reader.read_batches(stripe, writer.fields):
                    kept = key_filter.apply(reader.name, batch)
                    rows_aborted += kept.rows_aborted
                    rows_deleted += kept.rows_deleted
                    writer.write(reader, stripe, batch, kept.mask)
                end = reader.tail.stripes[stripe]
                output.progress(done_bytes + end.offset + end.index_bytes + end.data_bytes)
            done_bytes += source.size_bytes
            output.progress(done_bytes)
    return rows_aborted, rows_deleted
