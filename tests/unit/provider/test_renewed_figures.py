"""Operator and cleaner leave the figures of what they changed as they are then, and never fail by it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.health import renew_figures
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from tests.unit.compaction.evaluated_tables import EvaluatedTables, entity
from tests.unit.provider import test_cleaning, test_compaction_operator
from tests.unit.provider.fake_spark import FakeSpark
from tests.unit.provider.test_cleaning import CLEANED, FAILED, KEPT, WAITING, FakeCleaner, clock, finds
from tests.unit.provider.test_compaction_operator import end_with, spark
from tests.unit.provider.test_history_records import location

__all__ = ["clock", "location", "spark"]

pytestmark = [
    pytest.mark.usefixtures("hive_4"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

BASE, DELTA = "base_0000003_v0000009", "delta_0000001_0000001_0000"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables ``t`` with partitions and ``u`` without, each compacted and not yet cleaned."""
    warehouse = tmp_path / "warehouse"
    for place in (*(f"t/p={number}" for number in range(1, 6)), "u"):
        for directory in (BASE, DELTA):
            folder = warehouse / place / directory
            folder.mkdir(parents=True)
            (folder / "bucket_00000").write_bytes(b"12345")
    site = EvaluatedTables({"t": 5, "u": None}, Storages(), warehouse=f"file:{warehouse}")
    monkeypatch.setattr(MetastoreEndpoint, "open", lambda endpoint: site.client)
    monkeypatch.setattr(MetastoreEndpoint, "open_queue", lambda endpoint, client, checked=None: site.queue)
    return warehouse


def figures(location: Path) -> dict[tuple[object, object], tuple[object, ...]]:
    found = HealthReader(lambda: Storages().open(str(location))).health().partitions.to_pylist()
    names = ("state", "deltas", "base_bytes", "obsolete_bytes")
    return {(row["table"], row["partition"]): tuple(row[name] for name in names) for row in found}


def test_what_a_batch_published_is_looked_at_again_also_where_the_task_fails(
    location: Path, warehouse: Path, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = end_with(monkeypatch, *OutcomeState)
    with pytest.raises(AirflowException, match="2 of 5 partitions failed"):
        test_compaction_operator.operator(partitions=ends).execute({})
    published = ("healthy", 0, 5, 5)
    assert [state.value for state in OutcomeState][:2] == ["compacted", "nothing_to_merge"]
    assert figures(location) == {("t", "p=1"): published, ("t", "p=2"): published}
    assert len(list(location.rglob("*.parquet"))) == 1


def test_what_was_cleaned_is_looked_at_again_and_what_waits_is_not(
    location: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = FakeCleaner.clean

    def clean_t(cleaner: FakeCleaner, entities: Any) -> Any:
        done = clean(cleaner, entities)
        shutil.rmtree(warehouse / "t" / "p=1" / DELTA, ignore_errors=True)
        return tuple(item if item.state is CLEANED else replace(item, deleted=()) for item in done)

    monkeypatch.setattr(FakeCleaner, "clean", clean_t)
    finds(monkeypatch, (CLEANED, FAILED))
    with pytest.raises(AirflowException, match="no disk"):
        test_cleaning.operator().execute({})
    assert figures(location) == {("t", "p=1"): ("healthy", 0, 5, 0)}
    finds(monkeypatch, (CLEANED, WAITING), (CLEANED, CLEANED))
    test_cleaning.operator().execute({})
    assert set(figures(location)) == {("t", "p=1"), ("u", "")}


@pytest.mark.parametrize(
    ("state", "deleted", "has_changed"),
    [
        (CLEANED, (), True),
        (CLEANED, ("delta_1_1",), True),
        (WAITING, ("delta_1_1",), True),
        (KEPT, ("delta_1_1",), True),
        (WAITING, (), False),
        (KEPT, (), False),
        (FAILED, (), False),
    ],
)
def test_a_cleaning_changes_a_partition_where_it_deleted_or_completed_something(
    state: CleaningState, deleted: tuple[str, ...], has_changed: bool
) -> None:
    assert Cleaning(entity("t", 1), 1, state, "", deleted).has_changed == has_changed


def test_a_metastore_that_is_gone_by_then_fails_no_task(
    location: Path, warehouse: Path, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(endpoint: MetastoreEndpoint) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(MetastoreEndpoint, "open", refuse)
    (outcome,) = test_compaction_operator.operator().execute({})
    assert outcome["state"] == "compacted"
    assert "the figures of partitions are not renewed for the page: no route to host" in caplog.text


def test_a_connection_that_is_gone_by_then_is_a_warning(location: Path, caplog: pytest.LogCaptureFixture) -> None:
    renew_figures("no_such_connection", [entity("t", 1)])
    assert "the figures of partitions are not renewed for the page" in caplog.text


def test_without_a_location_the_metastore_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SimpleNamespace(count=0)

    def endpoint(hook: object) -> None:
        asked.count += 1

    monkeypatch.setattr(AcidMetastoreHook, "endpoint", endpoint)
    renew_figures("hive_acid_default", [entity("t", 1)])
    assert asked.count == 0
