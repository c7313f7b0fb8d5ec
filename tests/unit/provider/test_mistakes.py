"""A mistake in a task's parameters is told once: of a literal when the DAG file is read, of all else by the task.

Then the task fails at once, before the metastore is asked anything.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.doctor import AcidDoctorOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator
from airflow_provider_acid.operators.undo import AcidUndoOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

PARTITION = {"database": "d", "table": "t"}
RIGHT: dict[Any, dict[str, Any]] = {
    AcidCompactionSensor: {"tables": ["d.*"], "mode": "poke"},
    AcidTablePlanOperator: {"database": "d", "table": "t"},
    AcidCompactionOperator: {"partitions": [PARTITION]},
    AcidCleanerOperator: {"partitions": [PARTITION]},
    AcidUndoOperator: {"database": "d", "table": "t"},
    AcidHousekeepingOperator: {"tables": ["d.*"]},
    AcidDoctorOperator: {"tables": ["d.*"]},
}


class Mistake(NamedTuple):
    task: Any
    parameter: str
    value: object
    told: str


MISTAKES = [
    Mistake(AcidCompactionSensor, "tables", ["orders"], "table pattern 'orders' is not of the form database.table"),
    Mistake(AcidCompactionSensor, "tables", [], "table selection names no table"),
    Mistake(AcidCompactionSensor, "exclude", ["d.tmp", "old"], "table pattern 'old' is not of the form database.table"),
    Mistake(AcidCompactionSensor, "candidates", "writen", "is 'writen'. Remedy: give all or written"),
    Mistake(AcidCompactionSensor, "delta_num_threshold", "few", "is 'few'"),
    Mistake(AcidCompactionSensor, "delta_pct_threshold", "a tenth", "is 'a tenth'"),
    Mistake(AcidCompactionSensor, "time_window", "25:00-3:00", "time window '25:00-3:00' cannot be read"),
    Mistake(AcidCompactionSensor, "time_zone", "Europe/Berln", "time zone 'Europe/Berln' is not known"),
    Mistake(AcidCompactionSensor, "max_gib", "lots", "is 'lots'"),
    Mistake(AcidCompactionSensor, "max_partitions", 20_000, "is 20000. Remedy: give a whole number from 1 to 10000"),
    Mistake(AcidCompactionSensor, "batch_partitions", 5000, "is 5000. Remedy: give a whole number from 1 to 1000"),
    Mistake(AcidCompactionSensor, "decide_only", "perhaps", "is 'perhaps'"),
    Mistake(AcidTablePlanOperator, "database", "sales_*", "database 'sales_*': is not the name of one"),
    Mistake(AcidTablePlanOperator, "table", "d.t", "table 'd.t': is not the name of one"),
    Mistake(AcidTablePlanOperator, "partition", "2026-01-01", "partition '2026-01-01': is not of the form key=value"),
    Mistake(AcidTablePlanOperator, "type", "majr", "is 'majr'. Remedy: give auto or minor or major"),
    Mistake(AcidTablePlanOperator, "max_partitions", 0, "is 0"),
    Mistake(AcidCompactionOperator, "partitions", [{"database": "d", "tabel": "t"}], "'tabel'"),
    Mistake(AcidCompactionOperator, "partitions", [{**PARTITION, "type": "majr"}], "type 'majr' of a partition"),
    Mistake(AcidCompactionOperator, "partitions", [PARTITION, PARTITION], "names d.t 2 times"),
    Mistake(AcidCompactionOperator, "minor_lock_timeout_action", "wait", "is 'wait'. Remedy: give major or refuse"),
    Mistake(AcidCompactionOperator, "max_num_delta", 0, "is 0"),
    Mistake(AcidCompactionOperator, "max_active_partitions", "many", "is 'many'"),
    Mistake(AcidCompactionOperator, "idle_timeout_seconds", "soon", "is 'soon'"),
    Mistake(AcidCompactionOperator, "executor_memory", "4 gigs", "is '4 gigs'"),
    Mistake(AcidCompactionOperator, "num_executors", 0, "is 0"),
    Mistake(AcidCompactionOperator, "conf", {"yarn.tags": "x"}, "has 'yarn.tags', which is no property of Spark's"),
    Mistake(AcidCompactionOperator, "time_zone", "Europe/Berln", "time zone 'Europe/Berln' is not known"),
    Mistake(AcidCleanerOperator, "partitions", ["d.t"], "an item: is 'd.t'"),
    Mistake(AcidCleanerOperator, "cleaning_deadline_seconds", "soon", "is 'soon'"),
    Mistake(AcidUndoOperator, "table", "t*", "table 't*': is not the name of one"),
    Mistake(AcidUndoOperator, "partition", "2026-01-01", "partition '2026-01-01': is not of the form key=value"),
    Mistake(AcidUndoOperator, "decide_only", "perhaps", "is 'perhaps'"),
    Mistake(AcidHousekeepingOperator, "tables", ["orders"], "table pattern 'orders' is not of the form"),
    Mistake(AcidHousekeepingOperator, "repair_twins", "perhaps", "is 'perhaps'"),
    Mistake(AcidHousekeepingOperator, "max_partitions", 0, "is 0"),
    Mistake(AcidHousekeepingOperator, "forgotten_after_seconds", "long", "is 'long'"),
    Mistake(AcidDoctorOperator, "tables", ["orders"], "table pattern 'orders' is not of the form"),
    Mistake(AcidDoctorOperator, "executors", "perhaps", "is 'perhaps'"),
    Mistake(AcidDoctorOperator, "fail_on", "eror", "is 'eror'. Remedy: give problem or warning or never"),
]
EACH = pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda one: f"{one.task.__name__}({one.parameter}={one.value!r})".replace("Acid", "")
)
TEMPLATE = "{{ params.x }}"


@pytest.fixture(autouse=True)
def _connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks the metastore hears that nobody is there, which is no failure at once."""
    nobody = {"conn_type": "hive_acid", "host": "127.0.0.1", "port": 1}
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(nobody))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))


def check(failure: pytest.ExceptionInfo[AirflowFailException], mistake: Mistake) -> None:
    told = str(failure.value)
    assert mistake.told in told
    assert mistake.parameter in told
    assert " Remedy: " in told


@EACH
def test_a_literal_is_refused_when_the_dag_file_is_read(mistake: Mistake) -> None:
    with pytest.raises(AirflowFailException) as failure:
        mistake.task(task_id="t", **{**RIGHT[mistake.task], mistake.parameter: mistake.value})
    check(failure, mistake)


@EACH
def test_what_a_template_gives_fails_the_task_at_once_before_anything_is_asked(mistake: Mistake) -> None:
    task = mistake.task(task_id="t", **{**RIGHT[mistake.task], mistake.parameter: TEMPLATE})
    setattr(task, mistake.parameter, mistake.value)
    with pytest.raises(AirflowFailException) as failure:
        task.execute({})
    check(failure, mistake)


def test_a_mapped_task_with_a_wrong_literal_is_not_tried_again() -> None:
    with DAG("d", schedule=None):
        mapped = AcidCompactionOperator.partial(task_id="t", minor_lock_timeout_action="wait").expand(
            partitions=[[PARTITION]]
        )
    with pytest.raises(AirflowFailException, match="minor_lock_timeout_action: is 'wait'"):
        mapped.unmap({"partitions": [PARTITION]})


@pytest.mark.parametrize("value", [TEMPLATE, [TEMPLATE], "{% if a %}a.b{% endif %}", ["a.b", TEMPLATE]])
def test_what_is_no_literal_is_left_to_the_task(value: object) -> None:
    assert AcidCompactionSensor(task_id="s", tables=value).tables == value  # type: ignore[arg-type]
