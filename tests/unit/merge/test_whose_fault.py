"""Whose fault it is that a plan was not carried out: the partition's, the environment's, or nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airflow_provider_acid.exceptions import ForbiddenError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import bucket_tasks, spark_tasks
from airflow_provider_acid.merge.app.bucket_tasks import RunItem
from airflow_provider_acid.merge.app.packs import Pack, Packed
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.plan.result import CompactionResult, Fault
from tests.unit.merge.acid_files import Partition, insert
from tests.unit.merge.fake_spark import SPARK, FakeSpark, FakeUdf

LACKING = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/tmp/airflow_provider_acid_spark.zip/airflow_provider_acid/merge/files/verify.py", line 12, in <module>
    import pyorc
ModuleNotFoundError: No module named 'pyorc'
"""
OTHER_PYTHON = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11.\n"
NO_PYTHON = 'java.io.IOException: Cannot run program "/opt/none/bin/python": error=2, No such file or directory\n\tat x'
DIED = "org.apache.spark.SparkException: Job aborted: ExecutorLostFailure (executor 3 exited)"


class FailingSpark(FakeSpark):
    """Whose jobs fail, and are counted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.jobs = 0

    def range(self, start: int, end: int, step: int, slices: int) -> FakeSpark:
        self.jobs += 1
        raise PySparkException(self.text)


@pytest.fixture(autouse=True)
def _tasks_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "udf", FakeUdf)


@pytest.fixture
def item(tmp_path: Path) -> RunItem:
    (tmp_path / "run").mkdir()
    return RunItem(Storages(), str(tmp_path / "run"), 0)


def made(folder: Path) -> Partition:
    partition = Partition(folder)
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    return partition


@pytest.mark.parametrize(
    ("text", "told", "fault"),
    [
        (LACKING, "(ModuleNotFoundError: No module named 'pyorc')", Fault.ENVIRONMENT),
        (OTHER_PYTHON, "Python in worker has different version: 3.9", Fault.ENVIRONMENT),
        (NO_PYTHON, 'Cannot run program "/opt/none/bin/python": error=2', Fault.ENVIRONMENT),
        (DIED, "its Spark job failed", Fault.UNKNOWN),
    ],
)
def test_executors_that_can_merge_nothing_are_the_environments_fault(
    tmp_path: Path, item: RunItem, text: str, told: str, fault: Fault
) -> None:
    spark: Any = FailingSpark(text)
    found = run_plan(spark, made(tmp_path / "t").plan(), item)
    assert found.error is not None
    assert told in found.error
    assert found.fault is fault


def test_of_many_small_partitions_none_asks_such_executors_again(tmp_path: Path, item: RunItem) -> None:
    spark: Any = FailingSpark(LACKING)
    plans = {number: Packed(made(tmp_path / f"p{number}").plan(), replace(item, number=number)) for number in range(3)}
    pack = Pack(plans)
    pack.run(spark, "group", 2)
    found = [run_plan(spark, one.plan, one.item, pack) for one in plans.values()]
    assert [one.fault for one in found] == [Fault.ENVIRONMENT] * 3
    assert spark.jobs == 1


def damage(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = partition.path.glob("delta_*/bucket_*")
    file.write_bytes(b"x" * file.stat().st_size)


def silence(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin_bucket(*_: object) -> None:
        raise StorageError("disk", "does not answer", "try again")

    monkeypatch.setattr(bucket_tasks, "begin_bucket", begin_bucket)


def forbid(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin_bucket(*_: object) -> None:
        raise ForbiddenError("disk", "cannot be written (Permission denied)", "check permissions")

    monkeypatch.setattr(bucket_tasks, "begin_bucket", begin_bucket)


@pytest.mark.parametrize(
    ("change", "fault"), [(damage, Fault.PARTITION), (silence, Fault.UNKNOWN), (forbid, Fault.ENVIRONMENT)]
)
def test_a_damaged_file_is_its_partitions_fault_a_missing_right_is_not_and_a_silent_store_may_pass(
    tmp_path: Path, item: RunItem, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None], fault: Fault
) -> None:
    partition = made(tmp_path / "t")
    plan = partition.plan()
    change(partition, monkeypatch)
    found = run_plan(SPARK, plan, item)
    assert found.error is not None
    assert found.fault is fault
    assert CompactionResult.from_json(found.to_json()) == found
