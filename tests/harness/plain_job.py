"""The Spark job without Spark: merges the buckets of a plan one after the other in this process."""

from __future__ import annotations

from airflow_provider_acid.acid.plan import CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.spark_jobs.merge import merge_bucket
from airflow_provider_acid.spark_jobs.merged import Merged
from airflow_provider_acid.spark_jobs.partition_job import carry_out


def run_plainly(plan: CompactionPlan, storages: Storages | None = None) -> CompactionResult:
    """Carries out a plan and seals its staging directory exactly as the Spark application does.

    A refusal or a damaged file ends in the result's ``error``, as it does there.

    :param storages: as a site has set them; None for its machines' own file systems.
    """
    storages = storages or Storages()
    return carry_out(storages, plan, lambda: _merge_buckets(storages, plan))


def _merge_buckets(storages: Storages, plan: CompactionPlan) -> list[Merged]:
    storage = storages.open(plan.location)
    return [written for bucket in plan.buckets for written in merge_bucket(storage, plan, bucket, _ignore_progress)]


def _ignore_progress(done_bytes: int) -> None:
    pass
