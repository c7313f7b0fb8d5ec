"""The installed DAG: its form, how it is stored, what is mapped over what, and what makes a run fail."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2.nativetypes
import jsonschema
import pytest
from airflow.providers.common.compat.sdk import DAG, TriggerRule, XComArg

from airflow_provider_acid import installed_dags
from airflow_provider_acid.compaction.evaluate.demand import DemandedType
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.installed_dags import compact_table as acid_compact_table
from airflow_provider_acid.installed_dags import doctor as acid_doctor
from airflow_provider_acid.installed_dags import housekeeping as acid_housekeeping
from airflow_provider_acid.installed_dags import undo as acid_undo
from airflow_provider_acid.installed_dags.compaction import dag
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.run_options import SPARK_SIZES
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from tests.unit.provider.stored_dags import stored_and_found

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "airflow_provider_acid/installed_dags/compaction.py"
NUMBERS = {"integer", "number"}
PARAMS: dict[str, Any] = {name: dag.params.get_param(name) for name in dag.params}

FORMS = {
    "acid_compaction": PARAMS,
    "acid_compact_table": acid_compact_table.PARAMS,
    "acid_doctor": acid_doctor.PARAMS,
    "acid_housekeeping": acid_housekeeping.PARAMS,
    "acid_undo": acid_undo.PARAMS,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_field_of_the_trigger_form_is_explained_and_bounded(form: str) -> None:
    for name, param in FORMS[form].items():
        schema = param.schema
        assert schema.get("title"), name
        assert param.description, name
        (kind, *null) = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        assert null in ([], ["null"]), name
        assert kind in {"array", "boolean", "string", *NUMBERS}, name
        # Airflow asks for something in each field that may not be null.
        assert kind != "string" or null or schema.get("enum") or schema.get("minLength"), name
        assert kind != "array" or null or schema.get("minItems"), name
        assert kind not in NUMBERS or {"minimum", "exclusiveMinimum"} & schema.keys(), name
        assert kind != "array" or schema["items"] == {"type": "string"}, name
        if name != "table":
            param.resolve()


OPEN = ""
"""Airflow's own section, of the fields that name none: it alone is open at first."""


@pytest.mark.parametrize(
    ("form", "sections"),
    [
        ("acid_compaction", [OPEN, "What is due", "Time and budget", "Spark", "Locks and cleaning"]),
        ("acid_compact_table", [OPEN, "Spark"]),
        ("acid_housekeeping", [OPEN, "Times and amounts"]),
    ],
)
def test_the_first_section_of_the_form_is_open_and_each_field_is_with_its_like(form: str, sections: list[str]) -> None:
    of_fields = [param.schema.get("section", OPEN) for param in FORMS[form].values()]
    assert [section for section, _ in groupby(of_fields)] == sections
    # Airflow 2 makes ids of them, which it looks up by selectors and joins with commas.
    assert [section for section in sections if not re.fullmatch("[A-Za-z ]*", section)] == []


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
        ("cleaning_deadline_seconds", -1),
        ("minor_lock_wait_seconds", -1),
        ("minor_lock_timeout_action", "wait"),
        ("max_gib", 0),
        ("num_executors", 0),
        ("num_executors", 10_001),
        ("num_executors", "4"),
        ("executor_cores", 1.5),
        ("total_executor_cores", -1),
        ("executor_memory", "4"),
        ("executor_memory", "4g --conf spark.jars=x"),
        ("executor_memory", "much"),
        ("driver_memory", "-1g"),
        ("time_window", "22-6"),
        ("time_window", "22:00-24:00"),
        ("time_zone", ""),
        ("decide_only", "yes"),
        ("fail_on_unmatched_patterns", "yes"),
    ],
)
def test_the_form_refuses_what_the_tasks_would_refuse(name: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, PARAMS[name].schema)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partition", 5),
        ("type", "full"),
        ("type", None),
        ("table", ""),
        ("database", ""),
        ("decide_only", 1),
        ("hive_acid_conn_id", ""),
    ],
)
def test_the_form_of_one_table_refuses_what_its_task_would_refuse(name: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, acid_compact_table.PARAMS[name].schema)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time_window", (None, "", "22:00-06:00", "00:00-23:59")),
        ("exclude", (None, [], ["a.b"])),
        ("max_gib", (None, 0.5)),
        ("num_executors", (None, 4)),
        ("executor_cores", (None, 2)),
        ("total_executor_cores", (None, 8)),
        ("executor_memory", (None, "", "512m", "4g", "4G", "4gb")),
        ("driver_memory", (None, "", "1t")),
    ],
)
def test_what_may_be_empty_may_be_left_empty(name: str, values: tuple[object, ...]) -> None:
    for value in values:
        jsonschema.validate(value, PARAMS[name].schema)


def test_sensor_and_operator_have_the_same_time_window() -> None:
    sensor: Any = dag.get_task("find_due_partitions")
    compact: Any = dag.get_task("compact").unmap({"partitions": []})
    for name in ("time_window", "time_zone"):
        assert getattr(sensor, name) == getattr(compact, name) == f"{{{{ params.{name} }}}}"


def test_the_form_of_one_table_has_these_fields_which_the_page_fills_in() -> None:
    expected = {"database": "string", "table": "string", "partition": ["string", "null"], "type": "string"}
    expected |= {"decide_only": "boolean", "hive_acid_conn_id": "string"}
    expected |= {name: ["integer", "null"] for name in ("num_executors", "executor_cores", "total_executor_cores")}
    expected |= {name: ["string", "null"] for name in ("executor_memory", "driver_memory")}
    assert {name: param.schema["type"] for name, param in acid_compact_table.PARAMS.items()} == expected
    assert acid_compact_table.PARAMS["type"].schema["enum"] == [kind.value for kind in DemandedType]
    assert not acid_compact_table.dag.timetable.can_be_scheduled


def test_every_setting_of_the_plan_of_one_table_comes_from_the_form_as_text() -> None:
    plan: Any = acid_compact_table.dag.get_task("plan")
    assert not acid_compact_table.dag.render_template_as_native_obj
    for name in acid_compact_table.PARAMS.keys() - {*SPARK_SIZES}:
        # An operator of Airflow has a method decide_only.
        assert getattr(plan, "decide_only" if name == "decide_only" else name) == f"{{{{ params.{name} }}}}"


@pytest.mark.parametrize(("given", "shown"), [(None, ""), ("", ""), (4, "4"), ("4g", "4g")])
def test_every_size_of_spark_comes_from_the_form_and_an_empty_one_is_none(given: object, shown: str) -> None:
    for of_form in (dag, acid_compact_table.dag):
        compact: Any = of_form.get_task("compact")
        for name in SPARK_SIZES:
            text = jinja2.Environment(autoescape=False).from_string(compact.partial_kwargs[name])
            assert text.render(params={name: given}) == shown, name


@pytest.mark.parametrize(
    "of_form",
    [dag, *(one.dag for one in (acid_compact_table, acid_doctor, acid_housekeeping, acid_undo))],
    ids=lambda dag: dag.dag_id,
)
def test_all_tasks_work_on_the_metastore_of_the_form(of_form: Any) -> None:
    for task in of_form.tasks:
        made = task.unmap({"partitions": []}) if hasattr(task, "unmap") else task
        assert task.task_id == "done" or made.hive_acid_conn_id == "{{ params.hive_acid_conn_id }}", task.task_id


def test_a_dag_file_of_one_line_installs_them_all() -> None:
    assert {*installed_dags.__all__} == {*FORMS, "acid_compaction_dag"}
    assert {name: getattr(installed_dags, name).dag_id for name in FORMS} == {name: name for name in FORMS}


def test_the_form_starts_with_hives_thresholds() -> None:
    thresholds = CompactionSettings().thresholds
    assert PARAMS["delta_num_threshold"].value == thresholds.delta_num_threshold
    assert PARAMS["delta_pct_threshold"].value == thresholds.delta_pct_threshold


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
        "fail_on_unmatched_patterns",
        "candidates",
        "max_partitions",
        "max_gib",
        "batch_partitions",
        "time_window",
        "time_zone",
        "decide_only",
    ):
        assert render(getattr(sensor, name), params=params) == params[name], name


def test_the_deadline_comes_from_the_form() -> None:
    cleaning: Any = dag.get_task("clean")
    assert cleaning.partial_kwargs["cleaning_deadline_seconds"] == "{{ params.cleaning_deadline_seconds }}"


def test_compaction_and_cleaning_are_mapped_over_the_batches() -> None:
    for name in ("compact", "clean"):
        task: Any = dag.get_task(name)
        (argument,) = task.expand_input.value.values()
        assert isinstance(argument, XComArg)
        assert [operator.task_id for operator, _ in argument.iter_references()] == ["find_due_partitions"]


def test_a_batch_is_shown_by_its_size_and_table() -> None:
    partitions = [{"database": "d", "table": "orders", "partition": f"p={number}"} for number in range(3)]
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


@pytest.mark.parametrize("stored_dag", [dag, acid_compact_table.dag], ids=lambda dag: dag.dag_id)
def test_the_dag_survives_being_stored(stored_dag: Any) -> None:
    restored = stored_and_found(stored_dag)
    assert set(restored.task_ids) == set(stored_dag.task_ids)
    for name, param in FORMS[stored_dag.dag_id].items():
        field = restored.params.get_param(name)
        assert (field.schema, field.description) == (param.schema, param.description), name
        if param.has_value:
            assert field.value == param.value, name
    for task in stored_dag.tasks:
        again = restored.get_task(task.task_id)
        assert again.downstream_task_ids == task.downstream_task_ids
        assert (again.trigger_rule, again.retries) == (task.trigger_rule, task.retries)
        assert hasattr(again, "expand_input") == (task.task_id in {"compact", "clean"})


def test_arguments_that_are_known_later_are_kept_as_they_are() -> None:
    with DAG("other", schedule=None):
        due = AcidCompactionSensor(task_id="due", tables="{{ params.tables }}")
        compact = AcidCompactionOperator(task_id="compact", partitions=due.output)
        clean = AcidCleanerOperator(task_id="clean", partitions=compact.output, poll_seconds="{{ params.x }}")
    assert isinstance(compact.partitions, XComArg)
    assert isinstance(clean.partitions, XComArg)
    assert (due.tables, clean.poll_seconds) == ("{{ params.tables }}", "{{ params.x }}")
    assert compact.upstream_task_ids == {"due"}
    assert clean.upstream_task_ids == {"compact"}


@pytest.mark.parametrize("operator", [AcidCompactionSensor, AcidCompactionOperator, AcidCleanerOperator])
def test_every_templated_field_is_an_attribute(operator: Any) -> None:
    required: dict[str, Any] = {"tables": ["d.*"]} if operator is AcidCompactionSensor else {"partitions": []}
    task = operator(task_id="t", **required)
    assert [name for name in operator.template_fields if not hasattr(task, name)] == []
