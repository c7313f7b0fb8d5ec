"""Operator and cleaner leave a record of what came of their work, and never fail by it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.health.history import HistoryRecord, TaskPlace
from airflow_provider_acid.health.json_lines import from_lines
from airflow_provider_acid.hooks.health import record_task_history
from tests.unit.provider import test_cleaning, test_compaction_operator
from tests.unit.provider.fake_spark import FakeSpark
from tests.unit.provider.test_cleaning import CLEANED, FAILED, WAITING, clock, finds
from tests.unit.provider.test_compaction_operator import end_with, spark

__all__ = ["clock", "spark"]

pytestmark = [
    pytest.mark.usefixtures("hive_4"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    location = tmp_path / "health"
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", str(location))
    return location


def records(location: Path) -> list[HistoryRecord]:
    files = sorted(location.rglob("*.jsonl"))
    return [record for file in files for record in from_lines(HistoryRecord, file.read_bytes(), file.name)]


def found(location: Path) -> list[tuple[str, str | None, str]]:
    return [(record.kind.value, record.entity.partition, record.state) for record in records(location)]


def test_every_outcome_of_a_batch_is_on_record_also_where_the_task_fails(
    location: Path, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = end_with(monkeypatch, test_compaction_operator.OK, test_compaction_operator.FAILED)
    with pytest.raises(AirflowException, match="failed because"):
        test_compaction_operator.operator(partitions=ends).execute({})
    assert found(location) == [("compaction", "p=1", "compacted"), ("compaction", "p=2", "failed")]


def test_a_cleaning_is_on_record_once_it_has_ended(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (CLEANED, WAITING), (CLEANED,))
    test_cleaning.operator().execute({})
    assert found(location) == [("cleaning", "p=1", "cleaned"), ("cleaning", "p=1", "cleaned")]


def test_a_failed_cleaning_is_on_record_too(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (FAILED, CLEANED))
    with pytest.raises(AirflowException, match="no disk"):
        test_cleaning.operator().execute({})
    assert [state for _, _, state in found(location)] == ["failed", "cleaned"]


def test_a_record_names_the_task(location: Path) -> None:
    ti = SimpleNamespace(dag_id="dag", run_id="run", task_id="task", map_index=3)
    context: Any = {"ti": ti}
    cleaning = Cleaning(Entity("d", "t"), 1, CLEANED, "done")
    record_task_history("hive_acid_default", context, lambda make: make.of_cleanings([cleaning]))
    assert [record.task for record in records(location)] == [TaskPlace("dag", "run", "task", 3)]


def test_without_a_location_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finds(monkeypatch, (CLEANED, CLEANED))
    test_cleaning.operator().execute({})
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_is_gone_by_then_is_a_warning(location: Path, caplog: pytest.LogCaptureFixture) -> None:
    record_task_history("no_such_connection", {}, lambda make: [])
    assert "the history is not written for the page" in caplog.text
