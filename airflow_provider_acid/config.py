"""The ``[hive_acid]`` section of Airflow's configuration, read when a task runs and never at import."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import conf

from airflow_provider_acid.acid.thresholds import Thresholds
from airflow_provider_acid.compaction.settings import CompactionSettings

SECTION = "hive_acid"


def configured_settings() -> CompactionSettings:
    """The settings that hold where an operator or sensor names none of its own; Hive's defaults elsewhere."""
    return CompactionSettings(
        thresholds=Thresholds(
            delta_count=conf.getint(SECTION, "delta_num_threshold", fallback=10),
            delta_size_ratio=conf.getfloat(SECTION, "delta_pct_threshold", fallback=0.1),
            aborted_transactions=conf.getint(SECTION, "aborted_txn_threshold", fallback=1000),
            aborted_age_seconds=conf.getint(SECTION, "aborted_txn_time_threshold", fallback=43_200),
        ),
        serve_foreign_requests=conf.getboolean(SECTION, "serve_foreign_requests", fallback=False),
        worker_timeout_seconds=conf.getfloat(SECTION, "worker_timeout", fallback=86_400.0),
        retention_seconds=conf.getfloat(SECTION, "cleaner_retention_time", fallback=0.0),
    )


def check_interval_seconds() -> float:
    """Time between two evaluations (``hive.compactor.check.interval``)."""
    return float(conf.getfloat(SECTION, "check_interval", fallback=300.0))


def job_queue() -> str | None:
    """The queue of the cluster that Spark applications go to (``hive.compactor.job.queue``); None for its default."""
    return conf.get(SECTION, "job_queue", fallback="") or None
