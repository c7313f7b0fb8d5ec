"""The housekeeping operator and its DAG: settings arrive, the report leaves, the cleaner gets what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import jinja2.nativetypes
import jsonschema
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, XComArg

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.report import Chore, Deed, HousekeepingReport
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.installed_dags.housekeeping import PARAMS, dag
from airflow_provider_acid.operators import housekeeping as operator_module
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.unit.provider.stored_dags import stored_and_found

ENTITY = Entity("sales", "orders", "p=1")
REPORT = HousekeepingReport((Deed(ENTITY, Chore.REMOVED, "_acid_compaction_1"),), (), (ENTITY,))


class FakeHousekeeper:
    """Remembers what it was told, and finds :data:`REPORT`."""

    told: dict[str, Any] = {}

    def __init__(self, client: object, queue: object, settings: CompactionSettings, **limits: object) -> None:
        self.told.update(settings=settings, queue=queue, **limits)

    def sweep(self, selection: TableSelection) -> HousekeepingReport:
        self.told["selection"] = selection
        return REPORT


class FakeEndpoint:
    """A metastore whose queue is a word."""

    storages = Storages((HdfsOptions(web_addresses=("namenode:9870",)),))

    @contextmanager
    def connect(self) -> Iterator[tuple[object, str]]:
        yield SimpleNamespace(), "the metastore's queue"


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(operator_module, "Housekeeper", FakeHousekeeper)
    monkeypatch.setattr(AcidMetastoreHook, "endpoint", lambda hook: FakeEndpoint())
    monkeypatch.setattr(FakeHousekeeper, "told", {})
    return FakeHousekeeper.told


def operator(**parameters: Any) -> AcidHousekeepingOperator:
    return AcidHousekeepingOperator(task_id="keep_house", **{"tables": ["sales.*"], **parameters})


def test_the_report_is_logged_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    assert operator().execute({}) == REPORT.to_json()
    log = capsys.readouterr().out
    for line in REPORT.lines():
        assert line.strip() in log


def test_its_limits_are_hives_and_the_metastores_own_queue_and_storages_are_used(told: dict[str, Any]) -> None:
    operator().execute({})
    assert told["settings"].worker_timeout_seconds == 86_400
    assert told["queue"] == "the metastore's queue"
    assert told["settings"].storages == FakeEndpoint.storages
    assert (told["forgotten_seconds"], told["max_partitions"]) == (21_600, 1000)
    assert told["repair_twins"] is False


def test_an_emptied_field_of_the_form_leaves_no_table_out(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__EXCLUDE", "sales.configured")
    operator(exclude=None).execute({})
    assert told["selection"] == TableSelection(("sales.*",))


def test_values_of_templates_are_understood(told: dict[str, Any]) -> None:
    operator(
        tables="sales.*, web.*",
        exclude="['sales.x']",
        worker_timeout_seconds="60",
        forgotten_after_seconds="0",
        max_partitions="5",
        repair_twins="true",
    ).execute({})
    assert told["selection"] == TableSelection(("sales.*", "web.*"), ("sales.x",))
    assert told["settings"].worker_timeout_seconds == 60
    assert (told["forgotten_seconds"], told["max_partitions"]) == (0, 5)
    assert told["repair_twins"] is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", []),
        ("tables", "orders"),
        ("worker_timeout_seconds", -1),
        ("forgotten_after_seconds", "soon"),
        ("max_partitions", 0),
        ("repair_twins", "perhaps"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused_before_anything_is_done(
    told: dict[str, Any], name: str, value: object
) -> None:
    with pytest.raises(AirflowFailException):
        operator(**{name: value}).execute({})
    assert told == {}


def test_every_templated_field_is_an_attribute() -> None:
    task = operator()
    assert [name for name in task.template_fields if not hasattr(task, name)] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", []),
        ("tables", "sales.*"),
        ("exclude", [1]),
        ("worker_timeout_seconds", -1),
        ("forgotten_after_seconds", "6"),
        ("max_partitions", 0),
        ("repair_twins", "perhaps"),
        ("cleaning_deadline_seconds", -1),
        ("hive_acid_conn_id", ""),
    ],
)
def test_the_form_refuses_what_the_tasks_would_refuse(name: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, PARAMS[name].schema)


def render(text: object) -> object:
    params = {name: param.value for name, param in PARAMS.items()}
    return jinja2.nativetypes.NativeEnvironment().from_string(str(text)).render(params=params)


def test_every_setting_comes_from_the_form_in_hours() -> None:
    house: Any = dag.get_task("keep_house")
    clean: Any = dag.get_task("clean_forgotten")
    assert {name: render(getattr(house, name)) for name in house.template_fields} == {
        "hive_acid_conn_id": "hive_acid_default",
        "tables": ["*.*"],
        "exclude": [],
        "worker_timeout_seconds": 86_400,
        "forgotten_after_seconds": 21_600,
        "max_partitions": 1000,
        "repair_twins": False,
    }
    assert render(clean.cleaning_deadline_seconds) == 1800.0


def test_the_cleaner_gets_the_forgotten_partitions() -> None:
    clean: Any = dag.get_task("clean_forgotten")
    assert isinstance(clean.partitions, XComArg)
    ((found, key),) = clean.partitions.iter_references()
    source: Any = found
    assert (source.task_id, key, source.multiple_outputs) == ("keep_house", "partitions", True)
    assert clean.upstream_task_ids == {"keep_house"}
    assert clean.deferrable


def test_one_run_at_a_time_none_for_the_past_and_the_dag_survives_being_stored() -> None:
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert set(stored_and_found(dag).task_ids) == set(dag.task_ids)
