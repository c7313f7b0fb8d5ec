"""Whatever ends the application: no job and no plan goes on, and no merge that hangs is waited for."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver as driver_module
from airflow_provider_acid.merge.app.bucket_tasks import RunItem
from airflow_provider_acid.merge.app.driver import EXIT_ABANDONED, EXIT_DONE, Driver
from airflow_provider_acid.merge.app.driver_run import DriverRun
from airflow_provider_acid.plan.exchange import BATCH_FILE
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.run_files import SECRET, RunFiles
from tests.unit.merge.acid_files import Partition, insert
from tests.unit.merge.fake_spark import FakeSpark

WAIT_SECONDS = 60
UNREACHABLE = StorageError("the store", "does not answer", "try again")


class CountingSpark(FakeSpark):
    """Counts how often all jobs were cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        self.cancelled += 1


class Merges:
    """Merges that hang until they are released, and what is done between two looks at the run directory."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.in_work, self.released = threading.Event(), threading.Event()
        self.looks = 0
        self.between_looks: Callable[[int], None] = lambda looks: None

    def run_plan(self, spark: Any, plan: CompactionPlan, item: RunItem, *_: Any) -> CompactionResult:
        self.begun.append(item.number)
        self.in_work.set()
        assert self.released.wait(WAIT_SECONDS)
        return CompactionResult(plan.attempt, plan.digest, plan.entity, None, (), 0.0)

    def wait(self, driver: Driver) -> None:
        self.looks += 1
        self.between_looks(self.looks)


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> Iterator[Merges]:
    made = Merges()
    monkeypatch.setattr(driver_module, "run_plan", made.run_plan)
    monkeypatch.setattr(driver_module, "PACK_PLANS", 1)
    monkeypatch.setattr(driver_module, "_MAX_CONCURRENT_PLANS", 1)
    monkeypatch.setattr(Driver, "_wait", lambda driver: made.wait(driver))
    yield made
    made.released.set()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two plans; as one is in work at a time, the second waits until the first is done."""
    folder = tmp_path / "run"
    folder.mkdir()
    RunFiles(folder).put_batch()
    made = Partition(tmp_path / "p")
    made.write("delta_0000001_0000001_0000", [insert(1, 0, 0)])
    for item in range(2):
        RunFiles(folder).put_plan(item, made.plan())
    return folder


def driver(run: Path, spark: FakeSpark) -> Driver:
    return Driver(cast("SparkSession", spark), str(run), Storages(), SECRET)


def remove(run: Path) -> None:
    shutil.rmtree(run)


def remove_all_but_what_a_task_wrote(run: Path) -> None:
    """As where there are no directories: a late task brings its own file back."""
    (run / BATCH_FILE).unlink()
    (run / "0000.bucket.0.50").touch()


@pytest.mark.parametrize("vanish", [remove, remove_all_but_what_a_task_wrote])
def test_a_run_directory_that_vanishes_in_mid_merge_ends_it_at_once_as_abandoned(
    run: Path, merges: Merges, vanish: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(looks: int) -> None:
        assert merges.in_work.wait(WAIT_SECONDS)
        vanish(run)

    merges.between_looks = gone
    spark = CountingSpark()
    assert driver(run, spark).run() == EXIT_ABANDONED
    assert (merges.looks, spark.cancelled, merges.released.is_set()) == (1, 1, False)
    assert f"{run}: was removed, nobody waits for results" in capsys.readouterr().out
    check_that_nothing_else_begins(merges)


def test_a_run_directory_that_is_gone_before_it_begins_is_abandoned(tmp_path: Path, merges: Merges) -> None:
    (tmp_path / "_acid_runs").mkdir()
    assert driver(tmp_path / "_acid_runs" / "run", CountingSpark()).run() == EXIT_ABANDONED
    assert (merges.looks, merges.begun) == (0, [])


@pytest.mark.parametrize("error", [ZeroDivisionError("bad luck"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["look", "_report", "plan"])
def test_an_error_nobody_foresaw_ends_it_with_all_that_was_begun(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException
) -> None:
    def explode(*_: Any) -> Any:
        raise error

    def spoil(looks: int) -> None:
        assert merges.in_work.wait(WAIT_SECONDS)
        monkeypatch.setattr(Driver if place.startswith("_") else DriverRun, place, explode)
        (run / "0002.plan.json").write_bytes((run / "0000.plan.json").read_bytes())

    merges.between_looks = spoil
    spark = CountingSpark()
    with pytest.raises(type(error)):
        driver(run, spark).run()
    assert (merges.looks, spark.cancelled, merges.released.is_set()) == (1, 1, False)
    check_that_nothing_else_begins(merges)


def test_jobs_are_cancelled_when_the_operator_is_silent(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    spark = CountingSpark()
    assert driver(run, spark).run() == EXIT_ABANDONED
    assert (spark.cancelled, run.exists(), merges.released.is_set()) == (1, False, False)


@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "hanging"])
def test_a_spark_that_is_gone_or_hangs_does_not_keep_it(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    class DeadSpark(CountingSpark):
        def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
            super().cancelAllJobs()
            if hangs:
                merges.released.wait(WAIT_SECONDS)
            raise ConnectionRefusedError

    monkeypatch.setattr(driver_module, "_LAST_CALL_SECONDS", 0.1)
    merges.between_looks = lambda looks: remove(run)
    spark = DeadSpark()
    assert driver(run, spark).run() == EXIT_ABANDONED
    assert (spark.cancelled, merges.released.is_set()) == (1, False)


@pytest.mark.parametrize(("owner", "call"), [(DriverRun, "look"), (DriverRun, "plan"), (LocalStorage, "list")])
def test_a_storage_that_does_not_answer_for_a_while_costs_nothing(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch, owner: type, call: str
) -> None:
    right, calls = getattr(owner, call), []

    def fail_twice(*arguments: Any) -> Any:
        calls.append(call)
        if len(calls) <= 2:
            raise UNREACHABLE
        return right(*arguments)

    monkeypatch.setattr(owner, call, fail_twice)
    merges.released.set()
    merges.between_looks = lambda looks: wait_for(merges) if looks > 2 else None
    with RunFiles(run).ending_when_answered(0, 1):
        assert driver(run, CountingSpark()).run() == EXIT_DONE
    assert (run / "0000.result.json").exists()
    assert len(calls) > 2


def test_a_result_that_cannot_be_written_is_written_later(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[int] = []
    write = DriverRun.write_result

    def fail_once(self: DriverRun, item: int, result: CompactionResult) -> None:
        if not refused:
            refused.append(item)
            raise UNREACHABLE
        write(self, item, result)

    monkeypatch.setattr(DriverRun, "write_result", fail_once)
    merges.released.set()
    merges.between_looks = lambda looks: wait_for(merges)
    with RunFiles(run).ending_when_answered(0, 1):
        assert driver(run, CountingSpark()).run() == EXIT_DONE
    assert refused == [0]
    assert (run / "0000.result.json").exists()
    assert "tries again: the store: does not answer" in capsys.readouterr().out


def test_a_storage_that_stays_silent_is_an_operator_that_does(
    run: Path, merges: Merges, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise UNREACHABLE

    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(DriverRun, "look", fail)
    spark = CountingSpark()
    assert driver(run, spark).run() == EXIT_ABANDONED
    assert (merges.looks, merges.begun, spark.cancelled) == (2, [], 1)


def test_a_result_that_cannot_be_told_is_tried_again_after_a_pause_and_not_at_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that is done would else end each wait for a plan at once."""
    pauses: list[float] = []
    tries = 0

    def write_result(self: DriverRun, item: int, result: CompactionResult, write: Any = DriverRun.write_result) -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise UNREACHABLE
        write(self, item, result)

    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(DriverRun, "write_result", write_result)
    monkeypatch.setattr(driver_module, "run_plan", lambda spark, plan, *_: CompactionResult.failed(plan, "no", 0.0))
    RunFiles(run).put_batch()
    with RunFiles(run).ending_when_answered(0, 1):
        assert driver(run, CountingSpark()).run() == EXIT_DONE
    assert pauses.count(0.5) >= 3


def wait_for(merges: Merges) -> None:
    assert merges.in_work.wait(WAIT_SECONDS)


def check_that_nothing_else_begins(merges: Merges) -> None:
    """Of two plans one was in work; the other is not begun when that is over."""
    before = [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
    merges.released.set()
    for thread in before:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
    assert merges.begun == [0]


@pytest.mark.parametrize("document", ["\udcff\udcfe", "{}", "[" * 200_000], ids=["no UTF-8", "of no version", "deep"])
def test_a_plan_that_cannot_be_read_costs_its_partition_alone(
    run: Path, merges: Merges, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    RunFiles(run).put_batch()
    RunFiles(run).put_plan(0, document.encode(errors="surrogateescape"))
    merges.released.set()
    with RunFiles(run).ending_when_answered(0, 1):
        assert driver(run, CountingSpark()).run() == EXIT_DONE
    assert merges.begun == [1]
    refused, done = (RunFiles(run).result(item).error for item in range(2))
    assert refused is not None
    assert done is None
    assert f"0000 is left: {refused}" in capsys.readouterr().out
