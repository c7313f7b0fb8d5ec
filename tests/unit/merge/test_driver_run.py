"""What the driver makes of a run directory, with plans carried out by a stand-in for Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import bucket_tasks, partition_job, spark_tasks
from airflow_provider_acid.merge.app import driver as driver_module
from airflow_provider_acid.merge.app.bucket_tasks import RunItem, begin_task
from airflow_provider_acid.merge.app.driver import EXIT_ABANDONED, EXIT_DONE, Driver
from airflow_provider_acid.merge.app.driver_run import DriverRun
from airflow_provider_acid.merge.app.packs import Pack
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.plan.plan import (
    FORMAT_VERSION,
    BucketPlan,
    CompactionPlan,
    CopiedStripes,
    OrcOptions,
    OutputKind,
    SourceFile,
)
from airflow_provider_acid.plan.result import CompactionResult, OutputFile
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.run_files import SECRET, RunFiles
from tests.unit.merge.acid_files import STAGING, Partition, delete, insert, read_events
from tests.unit.merge.fake_spark import SPARK, FakeSpark, FakeUdf


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "udf", FakeUdf)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def start(run: Path, idle_timeout_seconds: float = 60) -> None:
    RunFiles(run).put_batch(idle_timeout_seconds)


def drive(run: Path, *items: int) -> int:
    """Until all of these have results."""
    with RunFiles(run).ending_when_answered(*items):
        return Driver(SPARK, str(run), Storages(), SECRET).run()


def partition(path: Path, deleted: int = 1) -> Partition:
    made = Partition(path)
    made.write("delta_0000001_0000001_0000", [insert(1, row_id, 0) for row_id in range(4)])
    made.write("delete_delta_0000002_0000002_0000", [delete(1, row_id, 2) for row_id in range(deleted)])
    return made


def item_of(run: Path) -> RunItem:
    return RunItem(Storages(), str(run), 0)


def result(run: Path, item: int) -> CompactionResult:
    return RunFiles(run).result(item)


def test_every_plan_gets_a_result_and_a_failure_stays_alone(run: Path, tmp_path: Path) -> None:
    start(run)
    for item in range(2):
        made = partition(tmp_path / f"p{item}")
        RunFiles(run).put_plan(item, made.plan())
    (tmp_path / "p0/delta_0000001_0000001_0000/bucket_00000").write_bytes(b"ORC")
    assert drive(run, 0, 1) == EXIT_DONE
    error = result(run, 0).error
    assert error is not None
    assert f"{tmp_path}/p0/delta_0000001_0000001_0000/bucket_00000: has 3 bytes" in error
    assert result(run, 1).error is None
    assert [file.rows_out for file in result(run, 1).files] == [3]


def test_an_error_nobody_foresaw_is_its_own_plans_alone(run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    start(run)
    for item in range(2):
        RunFiles(run).put_plan(item, partition(tmp_path / f"p{item}").plan())

    def explode(spark: Any, plan: CompactionPlan, item: RunItem, pack: Pack | None) -> CompactionResult:
        if item.number == 0:
            raise ZeroDivisionError("bad luck")
        return run_plan(spark, plan, item, pack)

    monkeypatch.setattr(driver_module, "run_plan", explode)
    assert drive(run, 0, 1) == EXIT_DONE
    assert "ZeroDivisionError: bad luck" in str(result(run, 0).error)
    assert result(run, 1).error is None


def test_a_plan_with_a_result_is_not_carried_out_again(run: Path, tmp_path: Path) -> None:
    start(run)
    made = partition(tmp_path / "p")
    RunFiles(run).put_plan(0, made.plan())
    RunFiles(run).put_result(0, CompactionResult("attempt", "digest", Entity("db", "t"), None, (), 0.0))
    assert drive(run, 0) == EXIT_DONE
    assert list((tmp_path / "p" / STAGING / "output/rows").iterdir()) == []


def test_the_driver_leaves_when_the_counter_stands_still(run: Path) -> None:
    start(run, idle_timeout_seconds=0.2)
    (run / "operator.alive.7").write_text("7")
    assert Driver(SPARK, str(run), Storages(), SECRET).run() == EXIT_ABANDONED
    assert not run.exists(), "the operator that would remove it is gone"


def test_the_driver_stays_while_the_counter_moves(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(run, idle_timeout_seconds=60)
    polls: list[float] = []
    clock = iter(range(0, 10_000, 50))

    def sleep(seconds: float) -> None:
        polls.append(seconds)
        (run / f"operator.alive.{len(polls)}").touch()
        if len(polls) == 20:
            RunFiles(run).put_end()

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert Driver(SPARK, str(run), Storages(), SECRET).run() == EXIT_DONE
    assert len(polls) == 20


def test_a_run_directory_of_another_release_is_refused(run: Path) -> None:
    RunFiles(run).put_batch(version=FORMAT_VERSION + 1)
    with pytest.raises(ConfigurationError, match=f"batch.json: has format version {FORMAT_VERSION + 1}"):
        DriverRun(LocalStorage(str(run)), SECRET).batch()


def test_an_empty_base_has_its_markers(run: Path, tmp_path: Path) -> None:
    made = partition(tmp_path / "p", deleted=4)
    found = run_plan(SPARK, made.plan(), item_of(run))
    assert found.error is None
    assert [(file.rows_in, file.rows_deleted, file.rows_out, file.size_bytes) for file in found.files] == [(4, 4, 0, 0)]
    output = tmp_path / "p" / STAGING / "output/rows"
    assert sorted(file.name for file in output.iterdir()) == ["_metadata_acid", "_orc_acid_version"]
    assert (tmp_path / "p" / STAGING / "result.json").exists()


def test_output_that_is_there_already_is_not_touched(run: Path, tmp_path: Path) -> None:
    made = partition(tmp_path / "p")
    assert run_plan(SPARK, made.plan(), item_of(run)).error is None
    before = sorted((tmp_path / "p" / STAGING / "output/rows").iterdir())
    assert "holds the output of another run of the same attempt" in str(
        run_plan(SPARK, made.plan(), item_of(run)).error
    )
    assert sorted((tmp_path / "p" / STAGING / "output/rows").iterdir()) == before


def test_a_staging_directory_that_a_successor_removed_is_not_made_again(run: Path, tmp_path: Path) -> None:
    made = partition(tmp_path / "p")
    shutil.rmtree(tmp_path / "p" / STAGING)
    error = str(run_plan(SPARK, made.plan(), item_of(run)).error)
    assert "plan.json: does not exist, its attempt was given up" in error
    assert not (tmp_path / "p" / STAGING).exists()


def test_a_staging_directory_that_vanishes_while_merging_is_not_made_again(
    run: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    made = partition(tmp_path / "p")

    def vanish(document: str, place: int, item: RunItem) -> Any:
        answer = begin_task(document, place, item)
        shutil.rmtree(tmp_path / "p" / STAGING)
        return answer

    monkeypatch.setattr(partition_job, "begin_task", vanish)
    assert run_plan(SPARK, made.plan(), item_of(run)).error is not None
    assert not (tmp_path / "p" / STAGING).exists()


def test_a_task_that_runs_twice_does_not_double_a_file(run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    made = partition(tmp_path / "p")
    document = made.plan().to_json()

    def twice(document: str, place: int, item: RunItem) -> Any:
        begin_task(document, place, item)
        return begin_task(document, place, item)

    monkeypatch.setattr(partition_job, "begin_task", twice)
    found = run_plan(SPARK, CompactionPlan.from_json(document), item_of(run))
    assert found.error is None
    output = tmp_path / "p" / STAGING / "output/rows"
    assert sorted(file.name for file in output.iterdir()) == ["_metadata_acid", "_orc_acid_version", "bucket_00000"]
    size = (output / "bucket_00000").stat().st_size
    assert found.files == (OutputFile(OutputKind.ROWS, 0, "bucket_00000", size, 1, 4, 0, 1, 0, 3),)


@pytest.mark.parametrize(("quiet_seconds", "is_told"), [(0.0, True), (3600.0, False)])
def test_a_task_tells_how_far_it_is_unless_it_is_quick(
    quiet_seconds: float, is_told: bool, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_tasks, "_QUIET_SECONDS", quiet_seconds)
    begin_task(partition(tmp_path / "p").plan().to_json(), 0, item_of(run))
    assert (run / "0000.bucket.0.100").exists() is is_told
    assert bool(list(run.iterdir())) is is_told


def test_a_bucket_in_slices_leaves_its_file_alone(run: Path, tmp_path: Path) -> None:
    made = sliced_partition(tmp_path / "p")
    found = run_plan(SPARK, made.plan(orc=OrcOptions(slice_bytes=1)), item_of(run))
    assert found.error is None
    assert [(file.bucket, file.rows_in, file.rows_deleted, file.stripes) for file in found.files] == [
        (0, 8, 2, 2),
        (1, 4, 0, 1),
    ]
    assert made.attempts() == []
    output = tmp_path / "p" / STAGING / "output/rows"
    assert sorted(file.name for file in output.iterdir()) == [
        "_metadata_acid",
        "_orc_acid_version",
        "bucket_00000",
        "bucket_00001",
    ]
    assert [event[1:4:2] for event in read_events(output / "bucket_00000")] == [
        (write_id, row_id) for write_id in (1, 2) for row_id in (1, 2, 3)
    ]


def test_parts_that_cannot_be_removed_do_not_end_a_compaction(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sliced_partition(tmp_path / "p")

    def refuse(self: LocalStorage, names: list[str]) -> None:
        raise StorageError(str(names), "cannot be deleted", "look")

    monkeypatch.setattr(LocalStorage, "delete", refuse)
    assert run_plan(SPARK, sliced_plan(made), item_of(run)).error is None
    assert [name.split(".")[:2] for name in made.attempts()] == [
        ["bucket_00000", "slice_0000"],
        ["bucket_00000", "slice_0001"],
    ]


@pytest.mark.parametrize("task", ["begin_task", "slice_task", "join_task"])
def test_a_refusal_of_any_task_is_the_plans_error(
    task: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sliced_partition(tmp_path / "p")
    refused = bucket_tasks.Refusal("the bucket: is not liked. Remedy: another one")
    monkeypatch.setattr(partition_job, task, lambda *arguments: refused)
    more = {"begin_task": " (1 more tasks failed)", "slice_task": " (1 more tasks failed)", "join_task": ""}
    assert run_plan(SPARK, sliced_plan(made), item_of(run)).error == refused.text + more[task]
    assert not (tmp_path / "p" / STAGING / "result.json").exists()


@pytest.mark.parametrize("lost", [slice(1, None), slice(0, 1), slice(0, 0)])
def test_an_answer_that_is_lost_is_the_plans_error(
    lost: slice, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sliced_partition(tmp_path / "p")
    collect = FakeSpark.collect
    monkeypatch.setattr(FakeSpark, "collect", lambda self: collect(self)[lost])
    error = str(run_plan(SPARK, made.plan(), item_of(run)).error)
    assert "answers of 2 tasks" in error
    assert not (tmp_path / "p" / STAGING / "result.json").exists()


def test_slices_tell_when_they_are_written(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(run)
    monkeypatch.setattr(bucket_tasks, "_QUIET_SECONDS", 0.0)
    made = sliced_partition(tmp_path / "p")
    assert run_plan(SPARK, sliced_plan(made), item_of(run)).error is None
    assert {"0000.slice.0.0.0", "0000.slice.0.1.0"} <= {file.name for file in run.iterdir()}


def test_a_bucket_is_as_far_as_its_slices_or_its_task_say(run: Path) -> None:
    start(run)
    for kind in ("bucket.0.10", "slice.0.0.64", "slice.0.7.32", "slice.1.0.64", "bucket.2.50"):
        (run / f"0003.{kind}").touch()
    seen = DriverRun(LocalStorage(str(run)), SECRET).look()

    def read_mebibytes(bucket: int, mebibytes: int) -> int:
        file = SourceFile("base_0000001/bucket", mebibytes << 20)
        return seen.read_bytes(3, BucketPlan(OutputKind.ROWS, bucket, (file,), ())) >> 20

    assert [read_mebibytes(0, size) for size in (2000, 200, 50)] == [200, 96, 50]
    assert [read_mebibytes(1, 100), read_mebibytes(2, 100), read_mebibytes(3, 100)] == [64, 50, 0]


def sliced_partition(path: Path) -> Partition:
    """Two stripes, and a row of each deleted; a second bucket that is not cut."""
    made = Partition(path)
    for write_id in (1, 2):
        made.write(
            f"delta_000000{write_id}_000000{write_id}_0000", [insert(write_id, row_id, 0) for row_id in range(4)]
        )
    made.write("delta_0000003_0000003_0000", [insert(3, row_id, 0, bucket=1) for row_id in range(4)], bucket=1)
    made.write("delete_delta_0000004_0000004_0000", [delete(write_id, 0, 4) for write_id in (1, 2)])
    return made


def sliced_plan(made: Partition) -> CompactionPlan:
    # The second bucket's stripe is copied, and so not cut, in whichever mode these tests run.
    return made.plan(orc=OrcOptions(slice_bytes=1), stripe_copy=CopiedStripes.AUTO)


def test_a_failing_spark_job_is_the_plans_error(run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    made = partition(tmp_path / "p")

    def fail(self: FakeSpark) -> list[dict[str, str]]:
        raise PySparkException("Traceback:\n  in worker\nStorageError: /data: cannot be read\n  at java.Thread\n")

    monkeypatch.setattr(FakeSpark, "collect", fail)
    error = run_plan(SPARK, made.plan(), item_of(run)).error
    assert error is not None
    assert error.startswith("db.t: its Spark job failed (StorageError: /data: cannot be read). Remedy: ")
    assert not (tmp_path / "p" / STAGING / "result.json").exists()


def test_a_minor_compaction_makes_a_delta_and_a_delete_delta(run: Path, tmp_path: Path) -> None:
    """W-16"""
    found = run_plan(SPARK, partition(tmp_path / "p").minor_plan(), item_of(run))
    assert found.error is None
    assert [(file.output, file.bucket, file.rows_out) for file in found.files] == [
        (OutputKind.DELETES, 0, 1),
        (OutputKind.ROWS, 0, 4),
    ]
    output = tmp_path / "p" / STAGING / "output"
    names = {kind: sorted(file.name for file in (output / kind).iterdir()) for kind in ("rows", "deletes")}
    assert names == dict.fromkeys(("rows", "deletes"), ["_orc_acid_version", "bucket_00000"])
    assert read_events(output / "rows/bucket_00000") == [insert(1, row_id, 0) for row_id in range(4)]
    assert read_events(output / "deletes/bucket_00000") == [delete(1, 0, 2)]


def test_executors_need_neither_airflow_nor_pyspark_nor_numpy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('airflow', 'pyspark', 'numpy', 'pandas', 'thrift'): sys.modules[name] = None\n"
        "import airflow_provider_acid.merge.buckets, airflow_provider_acid.merge.app.driver_run\n"
        "print([name for name in sys.modules if name.startswith('airflow.')])\n"
    )
    environment = {"PYTHONPATH": ":".join(place for place in sys.path if place), "PATH": ""}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (process.stdout.strip(), process.stderr) == ("[]", "")
