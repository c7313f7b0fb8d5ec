"""The section ``[hive_acid]``: one table of defaults, which are Hive's, and every option is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager

from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.config import configured_settings, option, schedule
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator
from airflow_provider_acid.operators.undo import AcidUndoOperator
from airflow_provider_acid.option import REQUIRED, Place
from airflow_provider_acid.options import OPTIONS, parameters_of
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CopiedStripes
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from tests.harness.options_table import DOCUMENT, options_table

READ: dict[str, tuple[str, Callable[[], object], object]] = {
    "delta_num_threshold": ("7", lambda: configured_settings().thresholds.delta_num_threshold, 7),
    "delta_pct_threshold": ("0.7", lambda: configured_settings().thresholds.delta_pct_threshold, 0.7),
    "aborted_txn_threshold": ("7", lambda: configured_settings().thresholds.aborted_txn_threshold, 7),
    "aborted_txn_time_threshold": ("-1", lambda: configured_settings().thresholds.aborted_txn_time_threshold, -1),
    "candidates": ("written", lambda: configured_settings().candidates, Candidates.WRITTEN),
    "check_interval_seconds": ("7.5", lambda: option("check_interval_seconds"), 7.5),
    "exclusive_locations": (
        "s3a://a/*, /b",
        lambda: configured_settings().exclusive_locations,
        ("s3a://a/*", "/b"),
    ),
    "served_pools": ("etl, night", lambda: configured_settings().served_pools, ("etl", "night")),
    "listing_threads": ("7", lambda: configured_settings().listing_threads, 7),
    "stripe_copy": ("never", lambda: configured_settings().policy(HIVE_4).stripe_copy, CopiedStripes.NEVER),
    "small_stripe_share": ("0.25", lambda: configured_settings().policy(HIVE_4).small_stripe_share, 0.25),
    "slice_bytes": ("7", lambda: configured_settings().policy(HIVE_4).slice_bytes, 7),
    "worker_timeout_seconds": ("7", lambda: configured_settings().worker_timeout_seconds, 7.0),
    "cleaner_retention_seconds": ("7", lambda: configured_settings().cleaner_retention_seconds, 7.0),
    "keep_replaced_hours": ("7", lambda: configured_settings().keep_replaced_seconds, 25_200.0),
    "cleaner_lock_wait_seconds": ("7", lambda: configured_settings().cleaner_lock_wait_seconds, 7.0),
    "cleaner_lock_timeout_action": (
        "delete",
        lambda: configured_settings().cleaner_lock_timeout_action,
        CleaningLockAction.DELETE,
    ),
    "serve_foreign_requests": ("False", lambda: configured_settings().serve_foreign_requests, False),
    "max_num_delta": ("7", lambda: configured_settings().policy(HIVE_4).max_num_delta, 7),
    "minor_publish_lock": (
        "False",
        lambda: configured_settings().policy(HIVE_4).minor_publication,
        MinorPublication.NEVER,
    ),
    "minor_lock_wait_seconds": ("7", lambda: configured_settings().minor_lock_wait_seconds, 7.0),
    "minor_lock_timeout_action": (
        "refuse",
        lambda: configured_settings().minor_lock_timeout_action,
        LockTimeoutAction.REFUSE,
    ),
    "readers_honour_visibility": (
        "True",
        lambda: configured_settings().policy(HIVE_4).minor_publication,
        MinorPublication.LOCK_FREE,
    ),
    "minor_pairs_on_hive_3": ("True", lambda: configured_settings().policy(HIVE_3).minor_pairs_on_hive_3, True),
    "mm_allow_originals": ("True", lambda: configured_settings().policy(HIVE_4).mm_allow_originals, True),
    "health_location": (" file:/health ", lambda: option("health_location"), "file:/health"),
    "spark_conn_id": ("spark_yarn", lambda: option("spark_conn_id"), "spark_yarn"),
    "spark_conf": (
        '{"spark.a": "x", "spark.b": 7, "spark.c": true}',
        lambda: option("spark_conf"),
        {"spark.a": "x", "spark.b": "7", "spark.c": "true"},
    ),
    "num_executors": ("4", lambda: option("num_executors"), 4),
    "executor_cores": ("2", lambda: option("executor_cores"), 2),
    "total_executor_cores": ("8", lambda: option("total_executor_cores"), 8),
    "executor_memory": ("512m", lambda: option("executor_memory"), "512m"),
    "driver_memory": ("2G", lambda: option("driver_memory"), "2G"),
    "job_queue": ("nightly", lambda: option("job_queue"), "nightly"),
    "task_retries": ("0", lambda: option("task_retries"), 0),
    "fail_on_unmatched_patterns": ("False", lambda: option("fail_on_unmatched_patterns"), False),
    "tables": ("a.*, b.c", lambda: option("tables"), ("a.*", "b.c")),
    "exclude": ("['a.x', 'a.y']", lambda: option("exclude"), ("a.x", "a.y")),
    "schedule": ("30 1 * * *", schedule, "30 1 * * *"),
    "time_window": ("22:00-06:00", lambda: option("time_window"), "22:00-06:00"),
    "time_zone": ("Europe/Berlin", lambda: option("time_zone"), "Europe/Berlin"),
    "max_partitions": ("7", lambda: option("max_partitions"), 7),
    "max_gib": ("0.5", lambda: option("max_gib"), 0.5),
    "batch_partitions": ("7", lambda: option("batch_partitions"), 7),
    "cleaning_deadline_seconds": ("0.5", lambda: option("cleaning_deadline_seconds"), 0.5),
}
"""By option: another value, who reads it, and what comes of it."""

CONFIGURED = [name for name, found in OPTIONS.items() if Place.CONFIG in found.places]


def test_without_configuration_the_defaults_are_those_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPTIONS:
        monkeypatch.delenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", raising=False)
    assert configured_settings() == CompactionSettings()
    assert {name: option(name) for name in CONFIGURED} == {name: OPTIONS[name].default for name in CONFIGURED}


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
        ("worker_timeout_seconds", "-1"),
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
    assert schedule() is None


def test_no_option_is_forgotten() -> None:
    assert set(CONFIGURED) == READ.keys()


def test_the_issues_defaults_are_hives() -> None:
    assert {option.hive: option.default_text for option in OPTIONS.values() if option.hive} == {
        "hive.compactor.delta.num.threshold": "10",
        "hive.compactor.delta.pct.threshold": "0.1",
        "hive.compactor.aborted.txn.threshold": "1000",
        "hive.compactor.aborted.txn.time.threshold": "43200",
        "hive.compactor.check.interval": "300",
        "hive.compactor.max.num.delta": "500",
        "hive.mm.allow.originals": "False",
        "hive.compactor.worker.timeout": "86400",
        "hive.compactor.cleaner.retention.time.seconds": "0",
        "hive.compactor.job.queue": "",
    }


def test_airflow_knows_the_section_and_its_defaults() -> None:
    manager = ProvidersManager()  # type: ignore[no-untyped-call]  # Airflow's has no type hints
    options = dict(manager.provider_configs)["airflow-provider-acid"]["hive_acid"]["options"]
    assert {name: option["default"] for name, option in options.items()} == {
        name: OPTIONS[name].default_text for name in CONFIGURED
    }


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.default is not REQUIRED])
def test_a_default_written_as_text_is_read_as_the_default(name: str) -> None:
    assert OPTIONS[name].kind.parse(name, OPTIONS[name].default_text) == OPTIONS[name].default


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("worker_timeout", "write worker_timeout_seconds, or take it out"),
        ("cleaner_retention_time", "write cleaner_retention_seconds, or take it out"),
        ("delta_num_treshold", "write delta_num_threshold, or take it out"),
        ("colour", "take it out; docs/options.md has all"),
        ("skip_when_nothing_due", "take it out; docs/options.md has all"),
    ],
)
def test_a_name_that_is_no_option_is_refused_with_the_one_that_was_perhaps_meant(
    name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", "1")
    with pytest.raises(ConfigurationError, match=rf"\[hive_acid\] {name}: is no option") as refused:
        configured_settings()
    assert refused.value.remedy == remedy


@pytest.mark.parametrize(
    ("name", "default"), [("check_interval", "300"), ("worker_timeout", "86400"), ("cleaner_retention_time", "0")]
)
def test_what_airflow_wrote_into_its_configuration_for_a_former_release_says_nothing(
    name: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", default)
    assert configured_settings() == CompactionSettings()


@pytest.mark.parametrize(
    ("place", "task"),
    [
        (Place.SENSOR, AcidCompactionSensor),
        (Place.TABLE_PLAN, AcidTablePlanOperator),
        (Place.COMPACTION, AcidCompactionOperator),
        (Place.CLEANER, AcidCleanerOperator),
        (Place.HOUSEKEEPING, AcidHousekeepingOperator),
        (Place.UNDO, AcidUndoOperator),
    ],
)
def test_every_option_of_a_task_is_a_parameter_and_templated(place: Place, task: Any) -> None:
    names = set(parameters_of(place))
    assert names <= {name for made_of in task.__mro__ for name in inspect.signature(made_of.__init__).parameters}
    assert names <= set(task.template_fields)


def test_the_documents_have_the_table_of_options() -> None:
    """``python -m tests.harness.options_table`` writes it anew."""
    assert DOCUMENT.read_text().endswith(options_table() + "\n")
