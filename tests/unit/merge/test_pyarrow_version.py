"""A pyarrow that a damaged file could crash is refused by name, before a table's file is read."""

from __future__ import annotations

import configparser
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import partition_job, spark_tasks
from airflow_provider_acid.merge.app.bucket_tasks import (
    Parts,
    Refusal,
    RunItem,
    Slice,
    begin_task,
    join_task,
    slice_task,
)
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.merge.app.pyarrow_version import LEAST_MAJOR_VERSION, check_pyarrow
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.result import Fault
from tests.unit.merge.acid_files import STAGING, Partition, insert
from tests.unit.merge.fake_spark import SPARK, FakeUdf

ROOT = Path(__file__).parents[3]
TOO_OLD = (
    "pyarrow 18.1.0: is older than 19, and a damaged file could crash its process. "
    "Remedy: install pyarrow 19 or later for Spark's driver and executors."
)


@pytest.fixture
def made(tmp_path: Path) -> Partition:
    partition = Partition(tmp_path / "p")
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 0)])
    return partition


@pytest.fixture
def item(tmp_path: Path) -> RunItem:
    (tmp_path / "run").mkdir()
    return RunItem(Storages(), str(tmp_path / "run"), 0)


@pytest.fixture
def _old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyarrow, "__version__", "18.1.0")


def test_the_least_version_is_that_of_the_packages_metadata_and_of_the_documents() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    assert f"pyarrow>={LEAST_MAJOR_VERSION}" in parser["options"]["install_requires"].split()
    for name in ("README.md", "docs/deploy.md"):
        stated = re.findall(r"`pyarrow` (\d+) or later", (ROOT / name).read_text())
        assert {int(version) for version in stated} == {LEAST_MAJOR_VERSION}, name


@pytest.mark.parametrize("version", ["19.0.0", "19.0.1", "26.0.1", "100.0.0", "27.0.0.dev12+gabc"])
def test_a_newer_pyarrow_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyarrow, "__version__", version)
    check_pyarrow()


@pytest.mark.parametrize("version", ["9.0.0", "16.1.0", "18.1.0"])
def test_an_older_pyarrow_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyarrow, "__version__", version)
    with pytest.raises(
        ConfigurationError, match=f"^pyarrow {version}: is older than 19, .* install pyarrow 19 or later"
    ):
        check_pyarrow()


@pytest.mark.usefixtures("_old")
def test_every_task_of_an_executor_refuses_before_it_opens_the_partition(made: Partition, item: RunItem) -> None:
    document = replace(made.plan(), location="nowhere://to-be-opened").to_json()
    sliced: Any = object.__new__(SlicedRows)
    answers = [
        begin_task(document, 0, item),
        slice_task(document, Slice(0, sliced, 0), item),
        join_task(document, Parts(0, sliced, ()), item),
    ]
    assert answers == [Refusal(TOO_OLD, Fault.ENVIRONMENT)] * 3


@pytest.mark.usefixtures("_old")
def test_the_driver_refuses_before_it_starts_a_job(made: Partition, item: RunItem) -> None:
    no_spark: Any = None
    found = run_plan(no_spark, made.plan(), item)
    assert (found.error, found.files) == (TOO_OLD, ())
    assert list((made.path / STAGING / "output/rows").iterdir()) == []


@pytest.mark.usefixtures("_old")
def test_an_executors_refusal_is_the_partitions_error(
    made: Partition, item: RunItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_job, "check_pyarrow", lambda: None)
    monkeypatch.setattr(spark_tasks, "udf", FakeUdf)
    assert run_plan(SPARK, made.plan(), item).error == TOO_OLD
