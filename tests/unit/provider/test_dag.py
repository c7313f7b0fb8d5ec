"""The installed DAG: its form, how it is stored, what is mapped over what, and what makes a run fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2.nativetypes
import jsonschema
import pytest
from airflow.providers.common.compat.sdk import DAG, TriggerRule, XComArg

from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.example_dags.acid_compaction import PARAMS, dag
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from tests.unit.provider.stored_dags import stored_and_found

ROOT = Path(__file__).parents[3]
DAG_FILE = ROOT / "dags" / "acid_compaction.py"
NUMBERS = {"integer", "number"}


def test_every_field_of_the_trigger_form_is_explained_and_bounded() -> None:
    for name, param in PARAMS.items():
        schema = param.schema
        assert schema.get("title"), name
        assert param.description, name
        assert schema["type"] in {"array", "boolean", "string", *NUMBERS}, name
        assert schema["type"] != "string" or schema["enum"], name
        assert schema["type"] not in NUMBERS or "minimum" in schema, name
        assert schema["type"] != "array" or schema["items"] == {"type": "string"}, name
        param.resolve()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", "sales.*"),
        ("tables", [1]),
        ("tables", []),
        ("exclude", [1]),
        ("delta_num_threshold", -1),
        ("delta_num_threshold", 1.5),
        ("delta_pct_threshold", -0.1),
        ("override_no_auto_compaction", "yes"),
        ("max_partitions", 0),
        ("batch_partitions", 0),
        ("cleaning_deadline_hours", -1),
        ("minor_lock_wait_seconds", -1),
        ("minor_lock_timeout_action", "wait"),
    ],
)
def test_the_form_refuses_what_the_tasks_would_refuse(name: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, PARAMS[name].schema)


def test_the_form_starts_with_hives_thresholds() -> None:
    thresholds = CompactionSettings().thresholds
    assert PARAMS["delta_num_threshold"].value == thresholds.delta_count
    assert PARAMS["delta_pct_threshold"].value == thresholds.delta_size_ratio


def test_no_more_batches_than_airflow_maps_over() -> None:
    assert PARAMS["max_partitions"].schema["maximum"] <= 1024  # [core] max_map_length, with batches of one partition


def render(text: object, **names: Any) -> object:
    environment = jinja2.nativetypes.NativeEnvironment()
    return environment.from_string(str(text)).render(**names)


def test_every_setting_of_the_sensor_comes_from_the_form() -> None:
    sensor: Any = dag.get_task("find_due_partitions")
    params = {name: param.value for name, param in PARAMS.items()}
    for name in (
        "tables",
        "exclude",
        "delta_num_threshold",
        "delta_pct_threshold",
        "override_no_auto_compaction",
        "max_partitions",
        "batch_partitions",
    ):
        assert render(getattr(sensor, name), params=params) == params[name], name


def test_the_deadline_comes_from_the_form_in_hours() -> None:
    cleaning: Any = dag.get_task("clean")
    deadline = cleaning.partial_kwargs["deadline_seconds"]
    assert render(deadline, params={"cleaning_deadline_hours": 0.5}) == 1800.0


def test_compaction_and_cleaning_are_mapped_over_the_batches() -> None:
    for name in ("compact", "clean"):
        task: Any = dag.get_task(name)
        (argument,) = task.expand_input.value.values()
        assert isinstance(argument, XComArg)
        assert [operator.task_id for operator, _ in argument.iter_references()] == ["find_due_partitions"]


def test_a_batch_is_shown_by_its_size_and_table() -> None:
    partitions = [{"database": "d", "table": "orders", "partition": "p=1"}] * 3
    for name, operator in (("compact", AcidCompactionOperator), ("clean", AcidCleanerOperator)):
        task: Any = dag.get_task(name)
        shown = render(task.partial_kwargs["map_index_template"], task=operator(task_id="x", partitions=partitions))
        assert shown == "3 partitions from d.orders"


def test_batches_are_cleaned_although_another_failed_and_the_run_is_judged_by_all() -> None:
    assert dag.get_task("clean").trigger_rule == TriggerRule.ALL_DONE
    (leaf,) = [task for task in dag.tasks if not task.downstream_task_ids]
    assert (leaf.task_id, leaf.trigger_rule) == ("done", TriggerRule.NONE_FAILED)
    assert leaf.upstream_task_ids == {"compact", "clean"}


def test_one_run_at_a_time_and_none_for_the_past() -> None:
    assert (dag.max_active_runs, dag.catchup) == (1, False)


def test_the_dag_survives_being_stored() -> None:
    restored = stored_and_found(dag)
    assert set(restored.task_ids) == set(dag.task_ids)
    values = {name: restored.params.get_param(name).value for name in restored.params}
    assert values == {name: param.value for name, param in PARAMS.items()}
    for task in dag.tasks:
        again = restored.get_task(task.task_id)
        assert again.downstream_task_ids == task.downstream_task_ids
        assert (again.trigger_rule, again.retries) == (task.trigger_rule, task.retries)
        assert hasattr(again, "expand_input") == (task.task_id in {"compact", "clean"})


def test_arguments_that_are_known_later_are_kept_as_they_are() -> None:
    with DAG("other", schedule=None):
        due = AcidCompactionSensor(task_id="due", tables="{{ params.tables }}")
        compact = AcidCompactionOperator(task_id="compact", partitions=due.output)
        clean = AcidCleanerOperator(task_id="clean", partitions=compact.output, deadline_seconds="{{ params.x }}")
    assert isinstance(compact.partitions, XComArg)
    assert isinstance(clean.partitions, XComArg)
    assert (due.tables, clean.deadline_seconds) == ("{{ params.tables }}", "{{ params.x }}")
    assert compact.upstream_task_ids == {"due"}
    assert clean.upstream_task_ids == {"compact"}


@pytest.mark.parametrize("operator", [AcidCompactionSensor, AcidCompactionOperator, AcidCleanerOperator])
def test_every_templated_field_is_an_attribute(operator: Any) -> None:
    required: dict[str, Any] = {"tables": []} if operator is AcidCompactionSensor else {"partitions": []}
    task = operator(task_id="t", **required)
    assert [name for name in operator.template_fields if not hasattr(task, name)] == []
