"""DAGs that a site makes by ``acid_compaction_dag``: their forms start with what they are given, or it is refused."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import jinja2.nativetypes
import pytest

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.installed_dags import acid_compaction_dag
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.options import OPTIONS
from airflow_provider_acid.run_options import SPARK_SIZES
from tests.unit.provider.stored_dags import stored_and_found

ROOT = Path(__file__).parents[3]
TEN_EXECUTORS = {"num_executors": 10, "executor_cores": "2", "executor_memory": "4g"}


def sweep(**given: Any) -> Any:
    dag: Any = acid_compaction_dag("sweep", **given)
    dag.validate()
    return dag


def rendered(dag: Any) -> Any:
    """The task that compacts, as it is when Airflow executes it with the form as it starts."""
    task = dag.get_task("compact").unmap({"partitions": []})
    context = {"params": dict(dag.params)}
    assert dag.render_template_as_native_obj
    task._do_render_template_fields(task, task.template_fields, context, jinja2.nativetypes.NativeEnvironment(), set())
    return task


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("tables", ["web.*"], ["web.*"]),
        ("tables", "web.*, sales.orders", ["web.*", "sales.orders"]),
        ("exclude", ("web.tmp_*",), ["web.tmp_*"]),
        ("exclude", None, []),
        ("decide_only", True, True),
        ("delta_num_threshold", 20, 20),
        ("candidates", "written", "written"),
        ("time_window", "22:00-06:00", "22:00-06:00"),
        ("time_window", None, None),
        ("max_partitions", 200, 200),
        ("max_gib", 500, 500.0),
        ("max_gib", None, None),
        ("hive_acid_conn_id", "hive_acid_web", "hive_acid_web"),
    ],
)
def test_what_a_sweep_is_given_its_form_starts_with(
    monkeypatch: pytest.MonkeyPatch, name: str, given: object, shown: object
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__MAX_GIB", "7")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__TIME_WINDOW", "01:00-02:00")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__EXCLUDE", "a.b")
    as_configured = dict(sweep().params)
    assert dict(sweep(**{name: given}).params) == {**as_configured, name: shown}
    assert (as_configured["max_gib"], as_configured["time_window"], as_configured["exclude"]) == (
        7.0,
        "01:00-02:00",
        ["a.b"],
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"tabels": ["a.*"]},
            "acid_compaction_dag('sweep'): 'tabels': no parameter of the DAG has that name. Remedy: ",
        ),
        ({"tabels": ["a.*"]}, "Remedy: write 'tables' for 'tabels'"),
        ({"max_gb": 1, "exlude": ()}, "Remedy: write 'exclude' for 'exlude'; write 'max_gib' for 'max_gb'"),
        ({"shedule": "@daily"}, "Remedy: write 'schedule' for 'shedule'"),
        ({"num_executors": 4}, "'num_executors': arguments of Spark's operator. Remedy: give them in spark={…}"),
        ({"conn_id": "x", "conf": {}}, "'conf', 'conn_id': arguments of Spark's operator"),
        ({"tables": []}, "parameter tables of sweep: table selection names no table"),
        ({"tables": "web"}, "parameter tables of sweep: table pattern 'web' is not of the form database.table"),
        ({"max_partitions": 0}, "parameter max_partitions of sweep: is 0. Remedy: give a whole number from 1 to 10000"),
        ({"max_partitions": None}, "parameter max_partitions of sweep: is None"),
        ({"time_window": "night"}, "parameter time_window of sweep: is 'night'"),
        ({"time_zone": "Europe/Berln"}, "parameter time_zone of sweep"),
        ({"candidates": "some"}, "parameter candidates of sweep: is 'some'. Remedy: give all or written"),
        ({"hive_acid_conn_id": None}, "parameter hive_acid_conn_id of sweep: is None"),
        ({"schedule": "@hurly"}, "schedule of sweep: is '@hurly'"),
        ({"schedule": "0 2 * *"}, "schedule of sweep: is '0 2 * *'"),
        (
            {"spark": {"executer_memory": "1g"}},
            "spark of sweep: 'executer_memory': no argument of Spark's operator has that name. "
            "Remedy: write 'executor_memory' for 'executer_memory'",
        ),
        ({"spark": {"application": "x.py"}}, "spark of sweep: 'application'"),
        (
            {"spark": {"executor_memory": "4"}},
            "parameter spark executor_memory of sweep: is '4'. Remedy: give a number",
        ),
        ({"spark": {"num_executors": "many"}}, "parameter spark num_executors of sweep: is 'many'"),
        ({"spark": {"conn_id": ""}}, "parameter spark conn_id of sweep: is ''. Remedy: give a text"),
        ({"spark": {"conf": ["x"]}}, "parameter spark conf of sweep: is no JSON object"),
        ({"spark": {"conf": {"executor.memory": "1g"}}}, "has 'executor.memory', which is no property of Spark's"),
        ({"default_args": {"time_zone": "UTC"}}, "default_args of sweep: have 'time_zone', a field of the form"),
    ],
)
def test_what_cannot_be_used_is_an_import_error_that_names_it(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        sweep(**given)
    assert told in str(refused.value)


def test_no_error_shows_a_property_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    for conf in ({"spark.hadoop.fs.s3a.secret.key": ["hidden"]}, {"fs.s3a.secret.key": "hidden"}, "{'hidden': }"):
        with pytest.raises(ConfigurationError) as refused:
            sweep(spark={"conf": conf})
        assert "hidden" not in str(refused.value)


def test_sizes_of_spark_are_fields_of_the_form_and_reach_the_operator() -> None:
    dag = sweep(spark=TEN_EXECUTORS)
    shown = {"num_executors": 10, "executor_cores": 2, "executor_memory": "4g"}
    assert {name: dag.params[name] for name in SPARK_SIZES} == {**dict.fromkeys(SPARK_SIZES), **shown}
    task = rendered(dag)
    assert {name: getattr(task, name) for name in SPARK_SIZES} == {**dict.fromkeys(SPARK_SIZES, ""), **shown}


@pytest.mark.parametrize("value", ["2.10", "1e3", "010", "None", "true", "a 'b' \"c\"", "[1]", "x\\y"])
def test_a_property_of_spark_arrives_as_it_was_written(value: str) -> None:
    task = rendered(sweep(spark={"conf": {"spark.x": value}, "run_directory": value, "py_files": value}))
    assert (task.conf, task.run_directory, task.py_files) == ({"spark.x": value}, value, value)


def test_what_else_is_said_of_spark_is_the_operators() -> None:
    given = {"conn_id": "spark_night", "archives": "hdfs:///e.tar.gz#e", "yarn_track_via_rm_api": True}
    task = rendered(sweep(spark={**given, "max_active_partitions": 16}))
    assert task.max_active_partitions == 16
    submission = task.submission()
    assert (submission._conn_id, submission._archives) == ("spark_night", "hdfs:///e.tar.gz#e")
    assert submission._yarn_track_via_rm_api


def blocks_of_parameters() -> list[dict[str, Any]]:
    """What docs/deploy.md shows as parameters of the operator."""
    text = (ROOT / "docs/deploy.md").read_text()
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    return [block for block in blocks if "conn_type" not in block]


def test_all_parameters_of_the_operator_that_the_documents_show_may_be_said_of_a_sweeps_spark() -> None:
    blocks = blocks_of_parameters()
    assert len(blocks) >= 3
    for block in blocks:
        sweep(spark=block)


@pytest.mark.parametrize(
    ("given", "summary"),
    [
        ({}, "30 1 * * *"),
        ({"schedule": "@daily"}, "0 0 * * *"),
        ({"schedule": "0 22 * * 1-5"}, "0 22 * * 1-5"),
        ({"schedule": timedelta(hours=6)}, "6:00:00"),
        ({"schedule": None}, None),
    ],
)
def test_a_sweep_runs_when_it_is_told_or_else_as_configured(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], summary: str | None
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SCHEDULE", "30 1 * * *")
    found = stored_and_found(sweep(**given))
    assert found.timetable.can_be_scheduled == (summary is not None)
    if summary is not None:
        assert found.timetable.summary == summary


def test_default_arguments_and_tags_come_to_those_that_all_have() -> None:
    dag = sweep(tags=["sales"], default_args={"pool": "night", "owner": "warehouse", "retries": 7})
    assert {"sales", "hive", "acid", "compaction"} <= {*dag.tags}
    for task in dag.tasks:
        made = task.unmap({"partitions": []}) if hasattr(task, "unmap") else task
        assert (made.pool, made.owner, made.retries) == ("night", "warehouse", 7), task.task_id
        assert made.retry_delay == timedelta(minutes=5)
        assert task.task_id == "done" or made.hive_acid_conn_id == "{{ params.hive_acid_conn_id }}"


def test_several_sweeps_have_nothing_in_common() -> None:
    web = acid_compaction_dag("sweep_web", tables=["web.*"], max_partitions=200, spark={"num_executors": 2})
    sales = acid_compaction_dag("sweep_sales", tables=["sales.*"], max_gib=1, tags=["sales"])
    found = [(dag.dag_id, dag.params["tables"], dag.params["max_partitions"]) for dag in (web, sales)]
    assert found == [("sweep_web", ["web.*"], 200), ("sweep_sales", ["sales.*"], OPTIONS["max_partitions"].default)]
    assert (web.params["num_executors"], sales.params["num_executors"]) == (2, None)
    assert "sales" not in web.tags
    assert {*stored_and_found(web).task_ids} == {"find_due_partitions", "compact", "clean", "done"}


def test_the_operator_of_a_sweep_takes_sparks_connection_from_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SPARK_CONN_ID", "spark_of_the_site")
    assert rendered(sweep()).conn_id == "spark_of_the_site"
    assert rendered(sweep(spark={"conn_id": "its_own"})).conn_id == "its_own"
    assert AcidCompactionOperator(task_id="t", partitions=[]).conn_id == "spark_of_the_site"
