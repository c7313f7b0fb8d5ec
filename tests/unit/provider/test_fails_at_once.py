"""What no other try can mend fails a task at once, in every task; what may pass is left to Airflow's retries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

from airflow_provider_acid import exceptions
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedTableError,
)
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.doctor import AcidDoctorOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator
from airflow_provider_acid.operators.undo import AcidUndoOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from tests.unit.provider.waiting import ended

pytestmark = pytest.mark.usefixtures("hive_4")

PARTITIONS = [{"database": "d", "table": "t"}]
TASKS: dict[str, Callable[[], Any]] = {
    "sensor": lambda: AcidCompactionSensor(task_id="t", tables=["d.t"], mode="poke"),
    "deferrable sensor": lambda: AcidCompactionSensor(task_id="t", tables=["d.t"], mode="poke", deferrable=True),
    "plan": lambda: AcidTablePlanOperator(task_id="t", database="d", table="t"),
    "operator": lambda: AcidCompactionOperator(task_id="t", partitions=PARTITIONS),
    "cleaner": lambda: AcidCleanerOperator(task_id="t", partitions=PARTITIONS),
    "doctor": lambda: AcidDoctorOperator(task_id="t", tables=["d.*"]),
    "undo": lambda: AcidUndoOperator(task_id="t", database="d", table="t"),
    "housekeeping": lambda: AcidHousekeepingOperator(task_id="t", tables=["d.*"]),
}
PERMANENT = {
    "RefusedError",
    "UnsupportedTableError",
    "UnknownNameError",
    "NotEnoughHistoryError",
    "CorruptFileError",
    "LastCopyError",
    "MetastoreAccessError",
    "MetastoreVersionError",
    "ObjectNotFoundError",
    "MisnamedError",
    "ConfigurationError",
    "UnsupportedStorageError",
    "ForbiddenError",
}


@pytest.fixture(autouse=True)
def _metastore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))


def test_these_errors_no_other_try_can_mend() -> None:
    kinds = {name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type)}
    found = {name for name, kind in kinds.items() if issubclass(kind, AcidError) and kind.is_permanent}
    assert found == PERMANENT


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("connection", "reason"),
    [
        ({"host": ""}, "names no host"),
        ({"host": "a:b"}, "'a:b' is no address"),
        ({"host": "a", "extra": {"timeout_seconds": "soon"}}, "timeout_seconds is 'soon'"),
        ({"host": "a", "extra": {"tsl": True}}, "tsl in its extra is no field"),
        ({"host": "a", "extra": {"storage": "{"}}, "storage options"),
        ({"host": "a", "extra": {"storage": {"hfds": {}}}}, "storage options"),
    ],
)
def test_a_connection_that_cannot_be_used_fails_every_task_at_once(
    monkeypatch: pytest.MonkeyPatch, task: str, connection: dict[str, Any], reason: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", **connection}))
    with pytest.raises(AirflowFailException, match=f"{reason}.* Remedy: "):
        TASKS[task]().execute({})


@pytest.mark.parametrize("task", TASKS)
def test_a_connection_that_nobody_made_fails_every_task_at_once(monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    def find(conn_id: str) -> None:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(AcidMetastoreHook, "get_connection", staticmethod(find))
    with pytest.raises(AirflowFailException, match=r"^connection hive_acid_default: does not exist\. Remedy: make one"):
        TASKS[task]().execute({})


@pytest.mark.parametrize("type", ["generic", "mysqll"])
def test_a_database_connection_of_another_type_fails_the_task_at_once(
    monkeypatch: pytest.MonkeyPatch, type: str
) -> None:
    metastore = {"conn_type": "hive_acid", "host": "not.asked", "extra": {"metastore_db_conn_id": "hive_db"}}
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(metastore))
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_DB", json.dumps({"conn_type": type, "host": "db", "schema": "hive"}))
    with pytest.raises(AirflowFailException, match=f"^connection hive_db: is of type '{type}'. Remedy: "):
        TASKS["sensor"]().execute({})


@pytest.mark.parametrize("task", ["sensor", "deferrable sensor", "plan"])
@pytest.mark.parametrize(
    "error",
    [
        ObjectNotFoundError("table d.t", "does not exist", "correct the name in the table list"),
        UnsupportedTableError("table d.t", "is not an ACID table", "leave it"),
    ],
)
def test_a_table_that_is_named_and_is_missing_or_unfit_fails_the_task_at_once(
    monkeypatch: pytest.MonkeyPatch, task: str, error: AcidError
) -> None:
    monkeypatch.setattr(Initiator, "evaluate", lambda *_: throw(error))
    with pytest.raises(AirflowFailException) as failure:
        TASKS[task]().execute({})
    assert str(failure.value) == str(error)


@pytest.mark.parametrize("task", ["sensor", "deferrable sensor", "plan"])
@pytest.mark.parametrize("kind", [MetastoreError, MetastoreUnavailableError, StorageError])
def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch, task: str, kind: type[AcidError]) -> None:
    monkeypatch.setattr(Initiator, "evaluate", lambda *_: throw(kind("metastore", "does not answer", "wait")))
    with pytest.raises(kind, match="does not answer"):
        TASKS[task]().execute({})


def test_a_soft_failing_sensor_does_not_skip_a_mistake_in_its_parameters() -> None:
    sensor = AcidCompactionSensor(task_id="t", tables="{{ params.tables }}", mode="poke", soft_fail=True)
    sensor.tables = ["orders"]
    with pytest.raises(AirflowFailException, match="is not of the form database.table"):
        sensor.execute({})


@pytest.mark.parametrize("task", ["deferrable sensor", "cleaner"])
@pytest.mark.parametrize(("state", "at_once"), [("mistake", True), ("error", False)])
def test_a_wait_that_ended_by_a_mistake_is_not_begun_again(task: str, state: str, at_once: bool) -> None:
    with pytest.raises(AirflowException, match="^no host$") as failure:
        TASKS[task]().execute_complete({}, ended(state, "no host"))
    assert isinstance(failure.value, AirflowFailException) is at_once


@pytest.mark.parametrize("task", ["deferrable sensor", "cleaner"])
def test_a_mistake_that_shows_after_a_wait_fails_the_task_at_once(monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    monkeypatch.setattr(
        AcidMetastoreHook, "endpoint", lambda _: throw(ConfigurationError("connection", "is gone", "make it"))
    )
    with pytest.raises(AirflowFailException, match="^connection: is gone"):
        TASKS[task]().execute_complete({}, ended("ready"))


def throw(error: Exception) -> None:
    raise error
