"""A bucket is cut into as many slices as keep Spark's slots at work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import bucket_tasks, spark_tasks
from airflow_provider_acid.merge.app.driver import EXIT_DONE, Driver
from airflow_provider_acid.plan.plan import OrcOptions
from tests.harness.run_files import SECRET, RunFiles
from tests.unit.merge.acid_files import Partition, delete, insert
from tests.unit.merge.fake_spark import SPARK, FakeSpark, FakeUdf
from tests.unit.merge.striped_files import write_in_stripes
from tests.unit.merge.test_driver_run import result, start


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "udf", FakeUdf)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def test_a_bucket_is_cut_into_as_many_slices_as_spark_has_slots(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(run)
    made = Partition(tmp_path / "p")
    write_in_stripes(made, "delta_0000001_0000001_0000", [insert(1, row_id, 0) for row_id in range(600)])
    made.write("delete_delta_0000002_0000002_0000", [delete(1, row_id, 2) for row_id in range(0, 600, 100)])
    plan = made.plan(orc=OrcOptions(slice_bytes=sum(source.size_bytes for source in made.rows[0]) // 3))
    RunFiles(run).put_plan(0, plan)
    monkeypatch.setattr(FakeSpark, "defaultParallelism", 4)
    slices: list[int] = []
    write: Callable[..., Any] = vars(bucket_tasks)["write_part"]

    def written(*arguments: Any) -> Any:
        slices.append(arguments[-1])
        return write(*arguments)

    monkeypatch.setattr(bucket_tasks, "write_part", written)
    with RunFiles(run).ending_when_answered(0):
        assert Driver(SPARK, str(run), Storages(), SECRET).run() == EXIT_DONE
    assert sorted(slices) == [0, 1, 2, 3]
    assert [file.rows_out for file in result(run, 0).files] == [594]
