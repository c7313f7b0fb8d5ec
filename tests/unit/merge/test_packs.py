"""Small plans together in one Spark job: each as independent as if it were alone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airflow_provider_acid.exceptions import SparkJobError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver as driver_module
from airflow_provider_acid.merge.app import packs, partition_job, spark_tasks
from airflow_provider_acid.merge.app.bucket_tasks import RunItem, begin_task
from airflow_provider_acid.merge.app.driver import EXIT_DONE, Driver
from airflow_provider_acid.merge.app.packs import SMALL_PLAN_BYTES, SMALL_PLAN_FILES, Pack, Packed, is_small
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.plan.plan import CompactionPlan, OrcOptions, OutputKind
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.run_files import SECRET, RunFiles
from tests.unit.merge.acid_files import STAGING, read_events
from tests.unit.merge.fake_spark import SPARK, FakeSpark, FakeUdf
from tests.unit.merge.test_driver_run import partition

SLOTS = 2


class Jobs:
    """Counts Spark jobs, by what they are said to be about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.subjects: list[str] = []
        monkeypatch.setattr(spark_tasks, "udf", FakeUdf)
        run_tasks = spark_tasks.run_tasks

        def counting(spark: Any, subject: str, tasks: Any, work: Any) -> Any:
            if tasks:
                self.subjects.append(subject)
            return run_tasks(spark, subject, tasks, work)

        for module in (packs, partition_job):
            monkeypatch.setattr(module, "run_tasks", counting)


@pytest.fixture(autouse=True)
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    return Jobs(monkeypatch)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def pack_of(run: Path, count: int, change: Callable[[CompactionPlan], CompactionPlan] = lambda plan: plan) -> Any:
    plans = {number: change(partition(run.parent / f"p{number}", deleted=number).plan()) for number in range(count)}
    return {number: Packed(plan, RunItem(Storages(), str(run), number)) for number, plan in plans.items()}


def run_pack(plans: dict[int, Packed], spark: Any = SPARK) -> dict[int, CompactionResult]:
    pack = Pack(plans)
    pack.run(spark, "group", SLOTS)
    return {number: run_plan(spark, one.plan, one.item, pack) for number, one in plans.items()}


def rows_out(results: dict[int, CompactionResult]) -> dict[int, int | str]:
    """Of each plan how many rows its result has, or its error."""
    return {
        number: found.error if found.error is not None else sum(file.rows_out for file in found.files)
        for number, found in results.items()
    }


def test_all_are_merged_by_one_job_to_the_very_files_that_each_would_get_alone(run: Path, jobs: Jobs) -> None:
    pack = pack_of(run, 3)
    assert rows_out(run_pack(pack)) == {0: 4, 1: 3, 2: 2}
    assert jobs.subjects == ["a pack of 3 partitions"]
    alone = partition(run.parent / "alone", deleted=2)
    run_plan(SPARK, alone.plan(), RunItem(Storages(), str(run), 9))
    files = [place / STAGING / "output/rows/bucket_00000" for place in (run.parent / "p2", run.parent / "alone")]
    assert read_events(files[0]) == read_events(files[1])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_refusal_is_of_one_plan_and_costs_no_other_job(run: Path, jobs: Jobs) -> None:
    pack = pack_of(run, 3)
    (run.parent / "p1/delta_0000001_0000001_0000/bucket_00000").write_bytes(b"ORC")
    found = rows_out(run_pack(pack))
    assert "p1/delta_0000001_0000001_0000/bucket_00000: has 3 bytes" in str(found.pop(1))
    assert found == {0: 4, 2: 2}
    assert len(jobs.subjects) == 1


def test_what_a_task_could_not_do_is_done_by_a_job_of_the_plans_own(
    run: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(document: str, place: int, item: RunItem) -> Any:
        if item.number == 1:
            raise StorageError("the store", "does not answer", "try again")
        return begin_task(document, place, item)

    monkeypatch.setattr(packs, "begin_task", fail_once)
    assert rows_out(run_pack(pack_of(run, 3))) == {0: 4, 1: 3, 2: 2}
    assert jobs.subjects == ["a pack of 3 partitions", "db.t"]


def test_where_the_job_fails_each_plan_gets_one_of_its_own(
    run: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise SparkJobError("a pack", "its Spark job failed", "see the log")

    monkeypatch.setattr(packs, "run_tasks", fail)
    assert rows_out(run_pack(pack_of(run, 3))) == {0: 4, 1: 3, 2: 2}
    assert jobs.subjects == ["db.t"] * 3


def test_a_bucket_that_is_to_be_cut_is_cut_by_jobs_of_its_plans_own(run: Path, jobs: Jobs) -> None:
    pack = pack_of(run, 2, lambda plan: replace(plan, orc=OrcOptions(slice_bytes=1)))
    assert rows_out(run_pack(pack)) == {0: 4, 1: 3}


def test_a_plan_that_was_given_up_is_not_merged(run: Path) -> None:
    pack = pack_of(run, 2)
    shutil.rmtree(run.parent / "p0" / STAGING)
    found = rows_out(run_pack(pack))
    assert "its attempt was given up" in str(found[0])
    assert found[1] == 3
    assert not (run.parent / "p0" / STAGING).exists()


def test_what_a_task_did_not_come_to_in_time_is_done_by_jobs_of_the_plans_own(
    run: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "TASK_SECONDS", -1.0)
    assert rows_out(run_pack(pack_of(run, 3))) == {0: 4, 1: 3, 2: 2}
    assert jobs.subjects == ["a pack of 3 partitions", "db.t", "db.t", "db.t"]


def test_a_task_that_hangs_keeps_the_other_plans_of_its_pack_no_longer_than_the_limit(
    run: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HangingSpark(FakeSpark):
        cancelled = threading.Event()
        hangs = True  # its first job, that of the pack

        def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
            assert group == "group"
            self.cancelled.set()

        def range(self, start: int, end: int, step: int, slices: int) -> FakeSpark:
            if self.hangs:
                self.hangs = False
                self.cancelled.wait(30)
                raise PySparkException("the job was cancelled")
            return super().range(start, end, step, slices)

    monkeypatch.setattr(packs, "PACK_SECONDS", 0.01)
    assert rows_out(run_pack(pack_of(run, 3), HangingSpark())) == {0: 4, 1: 3, 2: 2}
    assert HangingSpark.cancelled.is_set()
    assert jobs.subjects == ["a pack of 3 partitions", "db.t", "db.t", "db.t"]


def test_shares_have_about_as_many_bytes_each() -> None:
    sizes = enumerate([5, 1, 1, 1, 1, 1, 0, 0])
    buckets = [packs._Bucket("", number, RunItem(Storages(), "run", 0), size) for number, size in sizes]
    shares = packs._shares(buckets, 2)
    assert sorted(sum(bucket.input_bytes for bucket in share) for share in shares) == [4, 6]
    assert sorted(bucket.place for share in shares for bucket in share) == list(range(8))
    assert len(packs._shares(buckets[:1], 16)) == 1


@pytest.mark.parametrize(("more_bytes", "more_files", "expected"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_a_plan_is_small_by_the_bytes_and_the_files_that_its_tasks_read(
    tmp_path: Path, more_bytes: int, more_files: int, expected: bool
) -> None:
    plan = partition(tmp_path / "p").plan()
    (bucket,) = plan.buckets
    (file,) = bucket.rows
    deleted_bytes = bucket.input_bytes - file.size_bytes
    large = replace(file, size_bytes=SMALL_PLAN_BYTES - deleted_bytes + more_bytes)
    empty = [replace(file, size_bytes=0)] * (SMALL_PLAN_FILES - len(bucket.deletes) - 1 + more_files)
    rows = (large, *empty)
    assert is_small(replace(plan, buckets=(replace(bucket, rows=rows),))) is expected
    assert bucket.output is OutputKind.ROWS


def test_the_driver_packs_the_small_plans_that_it_finds_together(
    run: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "PACK_PLANS", 3)
    RunFiles(run).put_batch()
    for number in range(7):
        RunFiles(run).put_plan(number, partition(run.parent / f"p{number}").plan())
    with RunFiles(run).ending_when_answered(*range(7)):
        assert Driver(SPARK, str(run), Storages(), SECRET).run() == EXIT_DONE
    assert {number: RunFiles(run).result(number).error for number in range(7)} == dict.fromkeys(range(7))
    assert sorted(jobs.subjects) == ["a pack of 3 partitions", "a pack of 3 partitions", "db.t"]
