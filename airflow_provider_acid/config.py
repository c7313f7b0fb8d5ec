"""The ``[hive_acid]`` section of Airflow's configuration, read when it is needed and never at import.

The defaults of :mod:`options` are given to every look-up, because a task's process need not have read what the
providers say about themselves.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import conf

from airflow_provider_acid.acid.thresholds import Thresholds
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.options import DEFAULTS, SECTION


def configured_settings() -> CompactionSettings:
    """The settings that hold where an operator or sensor names none of its own; Hive's defaults elsewhere."""
    return CompactionSettings(
        thresholds=Thresholds(
            delta_count=_integer("delta_num_threshold"),
            delta_size_ratio=_number("delta_pct_threshold"),
            aborted_transactions=_integer("aborted_txn_threshold"),
            aborted_age_seconds=_integer("aborted_txn_time_threshold"),
        ),
        serve_foreign_requests=conf.getboolean(
            SECTION, "serve_foreign_requests", fallback=DEFAULTS["serve_foreign_requests"]
        ),
        worker_timeout_seconds=_number("worker_timeout"),
        retention_seconds=_number("cleaner_retention_time"),
    )


def check_interval_seconds() -> float:
    """Time between two evaluations (``hive.compactor.check.interval``)."""
    return _number("check_interval")


def job_queue() -> str | None:
    """The queue of the cluster that Spark applications go to (``hive.compactor.job.queue``); None for its default."""
    return conf.get(SECTION, "job_queue", fallback=DEFAULTS["job_queue"]) or None


def task_retries() -> int:
    """How often the tasks of the installed DAGs are tried again."""
    return _integer("task_retries")


def _integer(name: str) -> int:
    return int(conf.getint(SECTION, name, fallback=DEFAULTS[name]))


def _number(name: str) -> float:
    return float(conf.getfloat(SECTION, name, fallback=DEFAULTS[name]))
