"""The Spark job without Spark: merges the buckets of a plan one after the other in this process."""

from __future__ import annotations

from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.merge.app.partition_job import carry_out
from airflow_provider_acid.merge.buckets import begin_bucket
from airflow_provider_acid.merge.files.answers import Merged, Progress
from airflow_provider_acid.merge.merge_rows import join_rows, write_part
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult


def run_plainly(plan: CompactionPlan, storages: Storages | None = None) -> CompactionResult:
    """Carries out a plan and seals its staging directory exactly as the Spark application does.

    A refusal or a damaged file ends in the result's ``error``, as it does there.

    :param storages: as a site has set them; None for its machines' own file systems.
    """
    storages = storages or Storages()
    return carry_out(storages, plan, lambda: _merge_buckets(storages, plan))


def merge_bucket(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> tuple[Merged, ...]:
    """A bucket from beginning to end, its slices one after the other."""
    begun = begin_bucket(storage, plan, bucket, progress)
    if not isinstance(begun, SlicedRows):
        return begun
    parts = [write_part(storage, plan, bucket, begun, number) for number in range(len(begun.slices))]
    merged = join_rows(storage, plan, bucket, begun, parts, progress)
    storage.delete([part.path for part in parts])
    return (merged,)


def _merge_buckets(storages: Storages, plan: CompactionPlan) -> list[Merged]:
    storage = storages.open(plan.location)
    return [written for bucket in plan.buckets for written in merge_bucket(storage, plan, bucket, _ignore_progress)]


def _ignore_progress(done_bytes: int) -> None:
    pass
