"""The ``[hive_acid]`` section of Airflow's configuration, read when it is needed and never at import.

The defaults of :mod:`options` are given to every look-up, because a task's process need not have read what the
providers say about themselves.
"""

from __future__ import annotations

from dataclasses import replace

from airflow.providers.common.compat.sdk import conf

from airflow_provider_acid.acid.candidates import Candidates
from airflow_provider_acid.acid.plan import CopiedStripes
from airflow_provider_acid.acid.thresholds import Thresholds
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.options import DEFAULTS, SECTION
from airflow_provider_acid.parameters import as_boolean, as_integer, as_number, as_word


def configured_settings() -> CompactionSettings:
    """The settings that hold where an operator or sensor names none of its own; Hive's defaults elsewhere.

    :raises ConfigurationError: an option has a value that cannot be used.
    """
    return CompactionSettings(
        thresholds=Thresholds(
            delta_count=_integer("delta_num_threshold"),
            delta_size_ratio=_number("delta_pct_threshold"),
            aborted_transactions=_integer("aborted_txn_threshold"),
            aborted_age_seconds=_integer("aborted_txn_time_threshold"),
        ),
        candidates=as_word("[hive_acid] candidates", _text("candidates"), Candidates),
        serve_foreign_requests=_truth("serve_foreign_requests"),
        max_deltas=as_integer("[hive_acid] max_num_delta", _integer("max_num_delta")),
        publish_lock=_truth("minor_publish_lock"),
        publish_lock_wait_seconds=as_number("[hive_acid] minor_lock_wait_seconds", _number("minor_lock_wait_seconds")),
        publish_lock_timeout_action=as_word(
            "[hive_acid] minor_lock_timeout_action", _text("minor_lock_timeout_action"), LockTimeoutAction
        ),
        readers_honour_visibility=_truth("readers_honour_visibility"),
        minor_pairs_on_hive_3=_truth("minor_pairs_on_hive_3"),
        insert_only_originals=_truth("mm_allow_originals"),
        worker_timeout_seconds=_number("worker_timeout"),
        retention_seconds=_number("cleaner_retention_time"),
        cleaning_lock_wait_seconds=as_number(
            "[hive_acid] cleaner_lock_wait_seconds", _number("cleaner_lock_wait_seconds")
        ),
        cleaning_lock_timeout_action=as_word(
            "[hive_acid] cleaner_lock_timeout_action", _text("cleaner_lock_timeout_action"), CleaningLockAction
        ),
        listing_threads=as_integer("[hive_acid] listing_threads", _integer("listing_threads")),
        stripe_copy=as_word("[hive_acid] stripe_copy", _text("stripe_copy"), CopiedStripes),
        small_stripe_share=as_number("[hive_acid] small_stripe_share", _number("small_stripe_share")),
        slice_bytes=as_integer("[hive_acid] slice_bytes", _integer("slice_bytes")),
    )


def evaluation_settings(
    *,
    delta_num_threshold: object = None,
    delta_pct_threshold: object = None,
    candidates: object = None,
    override_no_auto_compaction: object = False,
    serve_foreign_requests: object = None,
) -> CompactionSettings:
    """The configured settings, with those of one evaluation where they are given (None: not); all may be texts.

    One rule for the sensor in its worker and for its trigger, so that both mean the same by "due".

    :raises ConfigurationError: one of them cannot be used.
    """
    settings = configured_settings()
    thresholds = settings.thresholds
    if delta_num_threshold is not None:
        count = as_integer("delta_num_threshold", delta_num_threshold, minimum=0)
        thresholds = replace(thresholds, delta_count=count)
    if delta_pct_threshold is not None:
        ratio = as_number("delta_pct_threshold", delta_pct_threshold)
        thresholds = replace(thresholds, delta_size_ratio=ratio)
    if candidates is not None:
        settings = replace(settings, candidates=as_word("candidates", candidates, Candidates))
    if serve_foreign_requests is not None:
        serve = as_boolean("serve_foreign_requests", serve_foreign_requests)
        settings = replace(settings, serve_foreign_requests=serve)
    override = as_boolean("override_no_auto_compaction", override_no_auto_compaction)
    return replace(settings, thresholds=thresholds, override_no_auto_compaction=override)


def check_interval_seconds() -> float:
    """Time between two evaluations (``hive.compactor.check.interval``)."""
    return _number("check_interval")


def job_queue() -> str | None:
    """The queue of the cluster that Spark applications go to (``hive.compactor.job.queue``); None for its default."""
    return _text("job_queue") or None


def health_location() -> str:
    """Where the files for the page in Airflow's UI lie; empty for nowhere."""
    return _text("health_location").strip()


def task_retries() -> int:
    """How often the tasks of the installed DAGs are tried again."""
    return _integer("task_retries")


def _text(name: str) -> str:
    return str(conf.get(SECTION, name, fallback=DEFAULTS[name]))


def _truth(name: str) -> bool:
    return bool(conf.getboolean(SECTION, name, fallback=DEFAULTS[name]))


def _integer(name: str) -> int:
    return int(conf.getint(SECTION, name, fallback=DEFAULTS[name]))


def _number(name: str) -> float:
    return float(conf.getfloat(SECTION, name, fallback=DEFAULTS[name]))
