"""One task's work: a bucket of a plan becomes its output files, whatever kind of table and compaction it belongs to."""

from __future__ import annotations

from airflow_provider_acid.acid.plan import BucketPlan, CompactionPlan, OutputKind
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.spark_jobs.insert_only import copy_files
from airflow_provider_acid.spark_jobs.merge_deletes import merge_deletes
from airflow_provider_acid.spark_jobs.merge_rows import merge_rows
from airflow_provider_acid.spark_jobs.merged import Merged, Progress


def merge_bucket(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> tuple[Merged, ...]:
    """Merge a bucket's files into new files below the staging directory's ``attempts``, and verify them.

    :param storage: of the plan's location.
    :param progress: called with the bytes of the sources that are merged so far.
    :raises CorruptFileError: a source cannot be read exactly, is not the planned one, or breaks a rule.
    :raises UnsupportedTableError: a type, or a kind of file, that this release does not compact.
    :raises VerificationError: a written file does not hold what it must.
    """
    if plan.format.is_insert_only:
        return copy_files(storage, plan, bucket, progress)
    if bucket.output is OutputKind.DELETES:
        return (merge_deletes(storage, plan, bucket, progress),)
    return (merge_rows(storage, plan, bucket, progress),)
