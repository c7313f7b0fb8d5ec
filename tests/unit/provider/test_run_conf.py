"""A run's conf with a key that no parameter has fails the DAG's first task at once, and says which was meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.installed_dags import compact_table as acid_compact_table
from airflow_provider_acid.installed_dags import compaction as acid_compaction
from airflow_provider_acid.installed_dags import doctor as acid_doctor
from airflow_provider_acid.installed_dags import housekeeping as acid_housekeeping
from airflow_provider_acid.installed_dags import undo as acid_undo
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys

FIRST = {
    "find_due_partitions": acid_compaction.dag,
    "plan": acid_compact_table.dag,
    "look": acid_doctor.dag,
    "keep_house": acid_housekeeping.dag,
    "undo": acid_undo.dag,
}


def start(task_id: str, conf: dict[str, Any] | None) -> None:
    """What Airflow does before it executes the task."""
    dag: Any = FIRST[task_id]
    context: Any = {"dag": dag, "dag_run": SimpleNamespace(conf=conf)}
    dag.get_task(task_id)._pre_execute_hook(context)


@pytest.mark.parametrize("task_id", FIRST)
def test_it_is_the_first_task_that_looks(task_id: str) -> None:
    dag: Any = FIRST[task_id]
    looking = [task.task_id for task in dag.tasks if getattr(task, "_pre_execute_hook", None) is refuse_unknown_keys]
    assert looking == [task.task_id for task in dag.tasks if not task.upstream_task_ids] == [task_id]


@pytest.mark.parametrize(
    ("task_id", "conf", "reason", "remedy"),
    [
        ("find_due_partitions", {"table": ["d.*"]}, "'table'", "write 'tables' for 'table'"),
        ("find_due_partitions", {"Tables": ["d.*"]}, "'Tables'", "write 'tables' for 'Tables'"),
        (
            "find_due_partitions",
            {"tables": ["d.*"], "decideonly": True},
            "'decideonly'",
            "write 'decide_only' for 'decideonly'",
        ),
        (
            "find_due_partitions",
            {"max_gb": 1, "delta_num_treshold": 3},
            "'delta_num_treshold', 'max_gb'",
            "write 'delta_num_threshold' for 'delta_num_treshold'; write 'max_gib' for 'max_gb'",
        ),
        (
            "keep_house",
            {"worker_timeout": 1},
            "'worker_timeout'",
            "write 'worker_timeout_seconds' for 'worker_timeout'",
        ),
        (
            "plan",
            {"q": 1},
            "'q'",
            "use some of database, decide_only, driver_memory, executor_cores, executor_memory, hive_acid_conn_id, "
            "num_executors, partition, table, total_executor_cores, type",
        ),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_parameter_named(
    task_id: str, conf: dict[str, Any], reason: str, remedy: str
) -> None:
    with pytest.raises(AirflowFailException) as failure:
        start(task_id, conf)
    told = f"{reason}: no parameter of the DAG has that name. Remedy: {remedy}."
    assert str(failure.value) == f"conf of the run of {FIRST[task_id].dag_id}: {told}"


@pytest.mark.parametrize("task_id", FIRST)
@pytest.mark.parametrize("key", ["spark_conf", "spark_conn_id", "conf", "conn_id", "spark", "jars", "archives"])
def test_who_starts_a_run_says_nothing_of_spark_but_sizes(task_id: str, key: str) -> None:
    """By properties such as spark.driver.extraJavaOptions anybody who may start a run would run code."""
    with pytest.raises(AirflowFailException, match=f"conf of the run of .*'{key}': no parameter of the DAG has that"):
        start(task_id, {key: {"spark.driver.extraJavaOptions": "-javaagent:x"}})


@pytest.mark.parametrize("task_id", FIRST)
def test_what_the_form_sends_and_what_airflow_adds_is_known(task_id: str) -> None:
    dag: Any = FIRST[task_id]
    start(task_id, None)
    start(task_id, {})
    start(task_id, {**dict.fromkeys(dag.params), "openlineage": {"parentRunId": "x"}})
