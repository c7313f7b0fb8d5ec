"""The Spark job without Spark: merges the buckets of a plan one after the other in this process."""

from __future__ import annotations

from airflow_provider_acid.acid.plan import CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.filesystem import storage_for
from airflow_provider_acid.spark_jobs.merge import merge_bucket
from airflow_provider_acid.spark_jobs.merged import Merged
from airflow_provider_acid.spark_jobs.partition_job import carry_out


def run_plainly(plan: CompactionPlan) -> CompactionResult:
    """Carries out a plan and seals its staging directory exactly as the Spark application does.

    A refusal or a damaged file ends in the result's ``error``, as it does there.
    """
    return carry_out(plan, lambda: _merge_buckets(plan))


def _merge_buckets(plan: CompactionPlan) -> list[Merged]:
    storage = storage_for(plan.location)
    return [written for bucket in plan.buckets for written in merge_bucket(storage, plan, bucket, _ignore_progress)]


def _ignore_progress(done_bytes: int) -> None:
    pass
