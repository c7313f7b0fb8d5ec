"""The section ``[hive_acid]``: one table of defaults, which are Hive's, and every option is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from airflow.providers_manager import ProvidersManager

from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.config import (
    check_interval_seconds,
    configured_settings,
    fails_on_unmatched_patterns,
    health_location,
    job_queue,
    sweep_options,
    task_retries,
)
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.options import DEFAULTS, OPTIONS
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CopiedStripes

READ: dict[str, tuple[str, Callable[[], object], object]] = {
    "delta_num_threshold": ("7", lambda: configured_settings().thresholds.delta_count, 7),
    "delta_pct_threshold": ("0.7", lambda: configured_settings().thresholds.delta_size_ratio, 0.7),
    "aborted_txn_threshold": ("7", lambda: configured_settings().thresholds.aborted_transactions, 7),
    "aborted_txn_time_threshold": ("-1", lambda: configured_settings().thresholds.aborted_age_seconds, -1),
    "candidates": ("written", lambda: configured_settings().candidates, Candidates.WRITTEN),
    "check_interval": ("7.5", check_interval_seconds, 7.5),
    "exclusive_locations": (
        "s3a://a/*, /b",
        lambda: configured_settings().exclusive_locations,
        ("s3a://a/*", "/b"),
    ),
    "listing_threads": ("7", lambda: configured_settings().listing_threads, 7),
    "stripe_copy": ("never", lambda: configured_settings().policy(HIVE_4).stripe_copy, CopiedStripes.NEVER),
    "small_stripe_share": ("0.25", lambda: configured_settings().policy(HIVE_4).small_stripe_share, 0.25),
    "slice_bytes": ("7", lambda: configured_settings().policy(HIVE_4).slice_bytes, 7),
    "worker_timeout": ("7", lambda: configured_settings().worker_timeout_seconds, 7.0),
    "cleaner_retention_time": ("7", lambda: configured_settings().retention_seconds, 7.0),
    "cleaner_lock_wait_seconds": ("7", lambda: configured_settings().cleaning_lock_wait_seconds, 7.0),
    "cleaner_lock_timeout_action": (
        "delete",
        lambda: configured_settings().cleaning_lock_timeout_action,
        CleaningLockAction.DELETE,
    ),
    "serve_foreign_requests": ("True", lambda: configured_settings().serve_foreign_requests, True),
    "max_num_delta": ("7", lambda: configured_settings().policy(HIVE_4).max_deltas, 7),
    "minor_publish_lock": (
        "False",
        lambda: configured_settings().policy(HIVE_4).minor_publication,
        MinorPublication.NEVER,
    ),
    "minor_lock_wait_seconds": ("7", lambda: configured_settings().publish_lock_wait_seconds, 7.0),
    "minor_lock_timeout_action": (
        "refuse",
        lambda: configured_settings().publish_lock_timeout_action,
        LockTimeoutAction.REFUSE,
    ),
    "readers_honour_visibility": (
        "True",
        lambda: configured_settings().policy(HIVE_4).minor_publication,
        MinorPublication.LOCK_FREE,
    ),
    "minor_pairs_on_hive_3": ("True", lambda: configured_settings().policy(HIVE_3).pairs_by_rename, True),
    "mm_allow_originals": ("True", lambda: configured_settings().policy(HIVE_4).insert_only_originals, True),
    "health_location": (" file:/health ", health_location, "file:/health"),
    "job_queue": ("nightly", job_queue, "nightly"),
    "task_retries": ("0", task_retries, 0),
    "fail_on_unmatched_patterns": ("True", fails_on_unmatched_patterns, True),
    "tables": ("a.*, b.c", lambda: sweep_options().tables, ("a.*", "b.c")),
    "exclude": ("['a.x', 'a.y']", lambda: sweep_options().exclude, ("a.x", "a.y")),
    "schedule": ("30 1 * * *", lambda: sweep_options().schedule, "30 1 * * *"),
    "time_window": ("22:00-06:00", lambda: sweep_options().time_window, "22:00-06:00"),
    "time_zone": ("Europe/Berlin", lambda: sweep_options().time_zone, "Europe/Berlin"),
    "max_partitions": ("7", lambda: sweep_options().max_partitions, 7),
    "max_gib": ("0.5", lambda: sweep_options().max_gib, 0.5),
    "batch_partitions": ("7", lambda: sweep_options().batch_partitions, 7),
    "cleaning_deadline_hours": ("0.5", lambda: sweep_options().cleaning_deadline_hours, 0.5),
}
"""By option: another value, who reads it, and what comes of it."""


def test_without_configuration_the_defaults_are_those_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in OPTIONS:
        monkeypatch.delenv(f"AIRFLOW__HIVE_ACID__{option.name.upper()}", raising=False)
    assert configured_settings() == CompactionSettings()
    assert (check_interval_seconds(), job_queue(), task_retries()) == (300.0, None, 2)


@pytest.mark.parametrize("name", READ)
def test_an_option_is_read_when_it_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, read, expected = READ[name]
    assert read() != expected
    monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", text)
    assert read() == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("candidates", "due"),
        ("minor_lock_timeout_action", "wait"),
        ("minor_lock_wait_seconds", "-1"),
        ("max_num_delta", "0"),
        ("listing_threads", "0"),
        ("stripe_copy", "sometimes"),
        ("small_stripe_share", "-0.1"),
        ("slice_bytes", "0"),
        ("delta_num_threshold", "-1"),
        ("delta_num_threshold", "ten"),
        ("delta_pct_threshold", "nan"),
        ("delta_pct_threshold", "a tenth"),
        ("aborted_txn_threshold", "1.5"),
        ("serve_foreign_requests", "perhaps"),
        ("worker_timeout", "-1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_options_name(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", text)
    with pytest.raises(ConfigurationError, match=rf"\[hive_acid\] {name}"):
        configured_settings()


@pytest.mark.parametrize("name", ["", " ", "None"])
def test_without_a_schedule_it_runs_only_by_hand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SCHEDULE", name)
    assert sweep_options().schedule is None


def test_no_option_is_forgotten() -> None:
    assert {option.name for option in OPTIONS} == READ.keys()


def test_the_issues_defaults_are_hives() -> None:
    assert {
        option.name: option.default
        for option in OPTIONS
        if option.name
        in {
            "delta_num_threshold",
            "delta_pct_threshold",
            "aborted_txn_threshold",
            "check_interval",
            "max_num_delta",
            "worker_timeout",
        }
    } == {
        "delta_num_threshold": "10",
        "delta_pct_threshold": "0.1",
        "aborted_txn_threshold": "1000",
        "check_interval": "300",
        "max_num_delta": "500",
        "worker_timeout": "86400",
    }


def test_airflow_knows_the_section_and_its_defaults() -> None:
    manager = ProvidersManager()  # type: ignore[no-untyped-call]  # Airflow's has no type hints
    options = dict(manager.provider_configs)["airflow-provider-acid"]["hive_acid"]["options"]
    assert {name: option["default"] for name, option in options.items()} == DEFAULTS
