"""With which Spark a batch works: as its task says, else as ``[hive_acid]`` says, else as Spark is configured."""

from __future__ import annotations

import json
import os
import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, TaskGroup

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.operators.configured_spark import ConfiguredSparkOperator
from airflow_provider_acid.operators.submission import submission
from tests.unit.provider.fake_spark import FakeSpark
from tests.unit.provider.test_compaction_operator import FakeBatch, operator

# Airflow's hook leaves the pipe to spark-submit to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SIZES = {
    "num_executors": ("4", "--num-executors"),
    "executor_cores": ("2", "--executor-cores"),
    "total_executor_cores": ("8", "--total-executor-cores"),
    "executor_memory": ("3g", "--executor-memory"),
    "driver_memory": ("512m", "--driver-memory"),
}
"""By option: a value, and how spark-submit is told."""


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    fake = FakeSpark(tmp_path)
    monkeypatch.setenv("PATH", f"{fake.folder}{os.pathsep}{os.environ['PATH']}")
    for name, host in (("SPARK_DEFAULT", "local[1]"), ("SPARK_SITE", "local[2]"), ("SPARK_TASK", "local[3]")):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({"conn_type": "spark", "host": host}))
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(connected_batch, "CompactionBatch", FakeBatch)
    monkeypatch.setattr(FakeBatch, "made", [])
    return fake


def configure(monkeypatch: pytest.MonkeyPatch, **options: str) -> None:
    for name, text in options.items():
        monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", text)


def submitted(spark: FakeSpark, **parameters: Any) -> list[str]:
    """What spark-submit is told by a task of these parameters."""
    operator(**parameters).execute({})
    return spark.calls()[-1]


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_the_tasks_else_the_sites_else_sparks(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, flag = SIZES[name]
    assert flag not in submitted(spark)
    configure(monkeypatch, **{name: text})
    told = submitted(spark)
    assert told[told.index(flag) + 1] == text
    another = "7" if text.isdigit() else "7t"
    told = submitted(spark, **{name: another})
    assert told[told.index(flag) + 1] == another
    assert flag not in submitted(spark, **{name: ""})


def test_the_connection_is_the_tasks_else_the_sites(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    masters = ["--master", "local[1]"], ["--master", "local[2]"], ["--master", "local[3]"]
    assert submitted(spark)[:2] == masters[0]
    configure(monkeypatch, spark_conn_id="spark_site")
    assert submitted(spark)[:2] == masters[1]
    assert submitted(spark, conn_id="spark_task")[:2] == masters[2]


def test_a_property_is_the_tasks_else_the_sites_key_by_key(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, spark_conf='{"spark.a": "site", "spark.b": "{{ 1 }}", "spark.yarn.maxAppAttempts": 3}')
    told = submitted(spark, conf={"spark.a": "task", "spark.c": "task"})
    properties = {told[place + 1] for place, word in enumerate(told) if word == "--conf"}
    assert properties >= {"spark.a=task", "spark.b={{ 1 }}", "spark.c=task", "spark.yarn.maxAppAttempts=3"}
    assert "spark.a=site" not in properties


@pytest.mark.parametrize(
    ("parameters", "configured", "most"),
    [
        ({"num_executors": "3", "executor_cores": "2"}, {}, 12),
        ({"num_executors": "3", "executor_cores": None}, {}, 6),
        ({"num_executors": None, "executor_cores": "2"}, {}, 4),
        ({"num_executors": "", "executor_cores": ""}, {"num_executors": "3"}, 4),
        ({}, {"num_executors": "3", "executor_cores": "2"}, 12),
        ({"executor_cores": 4}, {"num_executors": "3", "executor_cores": "2"}, 24),
        ({"total_executor_cores": "5"}, {}, 10),
        ({}, {"total_executor_cores": "5"}, 10),
    ],
)
def test_so_many_partitions_are_in_work_at_once_whoever_says_the_sizes(
    spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    parameters: dict[str, Any],
    configured: dict[str, str],
    most: int,
) -> None:
    configure(monkeypatch, **configured)
    submitted(spark, **parameters)
    assert FakeBatch.made[0].max_active == most


@pytest.mark.parametrize(
    ("parameters", "configured", "told"),
    [
        ({"executor_memory": "4g --conf spark.jars=x"}, {}, "parameter executor_memory: is '4g --conf"),
        ({"executor_memory": "4"}, {}, "parameter executor_memory: is '4'. Remedy: give a number and its unit"),
        ({"num_executors": "many"}, {}, "parameter num_executors: is 'many'"),
        (
            {"num_executors": 10_001},
            {},
            "parameter num_executors: is 10001. Remedy: give a whole number from 1 to 10000",
        ),
        ({}, {"executor_cores": "0"}, r"parameter \[hive_acid\] executor_cores: is '0'"),
        ({}, {"spark_conf": "{"}, r"parameter \[hive_acid\] spark_conf: is no JSON object"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_begins(
    spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    parameters: dict[str, Any],
    configured: dict[str, str],
    told: str,
) -> None:
    configure(monkeypatch, **configured)
    with pytest.raises(AirflowFailException, match=f"^{told}"):
        operator(**parameters).execute({})
    assert (FakeBatch.made, spark.calls()) == ([], [])


def test_all_that_sparks_operator_takes_is_taken_also_as_a_default_of_the_dag(spark: FakeSpark) -> None:
    of_spark = {*signature(SparkSubmitOperator.__init__).parameters}
    assert len(of_spark) > 30
    assert of_spark - {*signature(ConfiguredSparkOperator.__init__).parameters} == set()
    defaults = {"deploy_mode": "client", "verbose": True, "durable": True}
    with DAG("of_defaults", schedule=None, default_args=defaults) as dag, TaskGroup("group"):
        operator().execute({})
    assert dag.task_ids == ["group.compact"]
    (told,) = spark.calls()
    assert told[told.index("--deploy-mode") + 1] == "client"
    assert "--verbose" in told


def test_what_the_installed_spark_provider_does_not_know_is_told_by_its_name() -> None:
    with pytest.raises(ConfigurationError, match="argument of_tomorrow: is not known to the Spark provider"):
        submission("compact", {"of_tomorrow": 1, "verbose": True})
    assert submission("compact", {"of_tomorrow": None, "verbose": True})._verbose


def test_of_a_submission_within_a_task_airflow_does_not_warn(
    spark: FakeSpark, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """It warns of every operator that is executed by anybody but itself, here rightly of the task."""
    operator().execute({})
    warned = re.findall(r"(\w+)\.execute cannot be called outside", caplog.text + capsys.readouterr().out)
    assert {*warned} == {"AcidCompactionOperator"}
