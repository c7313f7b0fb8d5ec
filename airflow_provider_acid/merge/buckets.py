"""A bucket of a plan becomes its output files, whatever kind of table and compaction it belongs to.

Mostly that is one task. Where more than ``slice_bytes`` of a bucket's stripes must be decoded, its task only looks at
it, others write the slices, and one more joins them.
"""

from __future__ import annotations

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.answers import Merged, Progress
from airflow_provider_acid.merge.insert_only import copy_files
from airflow_provider_acid.merge.merge_deletes import merge_deletes
from airflow_provider_acid.merge.merge_rows import begin_rows
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, OutputKind


def begin_bucket(
    storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress, slots: int = 1
) -> tuple[Merged, ...] | SlicedRows:
    """Merge a bucket's files into new files below the staging directory's ``attempts``, and verify them.

    :param storage: of the plan's location.
    :param progress: called with the bytes of the sources that are merged so far.
    :param slots: how many tasks run at a time.
    :returns: the files; or, of a bucket too large for one task, how it is cut, and nothing is written: then
        :func:`~.merge_rows.write_part` is to be called for every slice, and :func:`~.merge_rows.join_rows` at the end.
    :raises CorruptFileError: a source cannot be read exactly, is not the planned one, or breaks a rule.
    :raises UnsupportedTableError: a type, or a kind of file, that this release does not compact.
    :raises VerificationError: a written file does not hold what it must.
    """
    if plan.format.is_insert_only:
        return copy_files(storage, plan, bucket, progress)
    if bucket.output is OutputKind.DELETES:
        return (merge_deletes(storage, plan, bucket, progress),)
    begun = begin_rows(storage, plan, bucket, progress, slots)
    return begun if isinstance(begun, SlicedRows) else (begun,)
