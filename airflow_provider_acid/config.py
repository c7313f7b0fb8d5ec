"""The ``[hive_acid]`` section of Airflow's configuration, read when it is needed and never at import.

The defaults of :mod:`options` are given to every look-up, because a task's process need not have read what the
providers say about themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airflow.exceptions import AirflowTimetableInvalid
from airflow.providers.common.compat.sdk import AirflowConfigException, conf

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.options import DEFAULTS, OPTIONS, SECTION
from airflow_provider_acid.parameters import (
    as_boolean,
    as_integer,
    as_names,
    as_number,
    as_optional_text,
    as_word,
)
from airflow_provider_acid.plan.plan import CopiedStripes
from airflow_provider_acid.plan.thresholds import Thresholds

MOST_PARTITIONS = 1000
"""Of one run and of one batch of ``acid_compaction``: Airflow maps over a few more, ``[core] max_map_length``."""


@dataclass(frozen=True)
class SweepOptions:
    """What ``acid_compaction`` does by itself, beside the settings: the defaults of its form, and its schedule.

    :param schedule: a cron expression or preset; None for only by hand.
    """

    tables: tuple[str, ...]
    exclude: tuple[str, ...]
    schedule: str | None
    time_window: str | None
    time_zone: str
    max_partitions: int
    max_gib: float | None
    batch_partitions: int
    cleaning_deadline_hours: float


def configured_settings() -> CompactionSettings:
    """The settings that hold where an operator or sensor names none of its own; Hive's defaults elsewhere.

    :raises ConfigurationError: an option has a value that cannot be used.
    """
    return CompactionSettings(
        thresholds=Thresholds(
            delta_count=as_integer("[hive_acid] delta_num_threshold", _integer("delta_num_threshold"), minimum=0),
            delta_size_ratio=as_number("[hive_acid] delta_pct_threshold", _number("delta_pct_threshold")),
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
        worker_timeout_seconds=as_number("[hive_acid] worker_timeout", _number("worker_timeout")),
        retention_seconds=_number("cleaner_retention_time"),
        cleaning_lock_wait_seconds=as_number(
            "[hive_acid] cleaner_lock_wait_seconds", _number("cleaner_lock_wait_seconds")
        ),
        cleaning_lock_timeout_action=as_word(
            "[hive_acid] cleaner_lock_timeout_action", _text("cleaner_lock_timeout_action"), CleaningLockAction
        ),
        exclusive_locations=tuple(as_names("[hive_acid] exclusive_locations", _text("exclusive_locations"))),
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


def sweep_options() -> SweepOptions:
    """What the DAG file of ``acid_compaction`` is made of.

    :raises ConfigurationError: an option has a value that cannot be used: Airflow shows it as an import error.
    """
    time_window, time_zone = as_optional_text(_text("time_window")), _text("time_zone").strip()
    with _naming("time_window and time_zone"):
        TimeWindow.of(time_window or "00:00-23:59", time_zone)
    names = {name: as_names(f"[hive_acid] {name}", _text(name)) for name in ("tables", "exclude")}
    with _naming("tables and exclude"):
        selection = TableSelection.of(names["tables"], names["exclude"])
    max_gib = as_optional_text(_text("max_gib"))
    return SweepOptions(
        tables=selection.include,
        exclude=selection.exclude,
        schedule=_schedule(),
        time_window=time_window,
        time_zone=time_zone,
        max_partitions=as_integer("[hive_acid] max_partitions", _integer("max_partitions"), maximum=MOST_PARTITIONS),
        max_gib=None if max_gib is None else as_number("[hive_acid] max_gib", max_gib, minimum=0.001),
        batch_partitions=as_integer(
            "[hive_acid] batch_partitions", _integer("batch_partitions"), maximum=MOST_PARTITIONS
        ),
        cleaning_deadline_hours=as_number("[hive_acid] cleaning_deadline_hours", _number("cleaning_deadline_hours")),
    )


@contextmanager
def _naming(options: str) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"[hive_acid] {options}", f"{error.subject} {error.reason}", error.remedy) from error


def _schedule() -> str | None:
    # Only DAG files need it, and it is no light import.
    from airflow.timetables.trigger import CronTriggerTimetable

    text = as_optional_text(_text("schedule"))
    if text is None:
        return None
    try:
        CronTriggerTimetable(text, timezone="UTC").validate()
    except AirflowTimetableInvalid as error:
        raise ConfigurationError(
            "[hive_acid] schedule", f"is {text!r} ({error})", "write a cron expression, e.g. 30 1 * * *, or None"
        ) from error
    return text


def fails_on_unmatched_patterns() -> bool:
    """Whether a pattern that matches no table is a failure."""
    return _truth("fail_on_unmatched_patterns")


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
    with _readable(name):
        return bool(conf.getboolean(SECTION, name, fallback=DEFAULTS[name]))


def _integer(name: str) -> int:
    with _readable(name):
        return int(conf.getint(SECTION, name, fallback=DEFAULTS[name]))


def _number(name: str) -> float:
    with _readable(name):
        return float(conf.getfloat(SECTION, name, fallback=DEFAULTS[name]))


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (AirflowConfigException, ValueError) as error:
        kind = next(option.type for option in OPTIONS if option.name == name)
        raise ConfigurationError(
            f"[hive_acid] {name}",
            f"is {_text(name)!r}, which is no {kind}",
            "correct it in Airflow's configuration, or take it out",
        ) from error
