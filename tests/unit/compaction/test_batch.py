"""Many partitions and one application: each is begun, watched and finished on its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionPlan, CompactionType
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock
from airflow_provider_acid.compaction.batch import CompactionBatch
from airflow_provider_acid.compaction.finishing import Finished
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run_directory import RunDirectory
from airflow_provider_acid.compaction.worker import Worker
from airflow_provider_acid.exceptions import MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.spark_jobs import run_directory as job
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.spark_jobs.acid_files import Partition, insert

PATIENCE_SECONDS = 30.0


class Transaction:
    """Stays ours until it is told to be lost."""

    def __init__(self) -> None:
        self.is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise OwnershipLostError("transaction 7", "was aborted", "start the attempt again")


class FakeWorker:
    """Begins everything but what it is told not to, and remembers."""

    def __init__(self, plan: CompactionPlan) -> None:
        self._plan = plan
        self.outcomes: dict[str, OutcomeState] = {}
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most_active = 0
        self.transactions: dict[str, Transaction] = {}
        self.adopted: set[str] = set()
        self.looks_at_lock: dict[str, int] = {}
        self.locked: set[str] = set()
        self.crash: Exception | None = None

    def begin(self, due: DuePartition) -> ActiveCompaction | Outcome:
        if self.crash is not None and due.entity.table == "crash":
            raise self.crash
        self.begun.append(due.entity.table)
        if due.entity.table in self.outcomes:
            self.ended.append(due.entity.table)
            return Outcome(due.entity, self.outcomes[due.entity.table], "at once")
        self.most_active = max(self.most_active, len(self.begun) - len(self.ended))
        transaction = self.transactions.setdefault(due.entity.table, Transaction())
        plan = CompactionPlan(**{**vars(self._plan), "entity": due.entity, "type": due.type})
        adopted = result_of(plan) if due.entity.table in self.adopted and due.type is CompactionType.MINOR else None
        no_claim: Any = None
        storage = LocalStorage(plan.location)
        return ActiveCompaction(no_claim, cast(Any, transaction), storage, plan, plan.location, adopted, 0)

    def finish(self, active: ActiveCompaction, result: CompactionResult) -> Finished:
        if self.looks_at_lock.get(active.entity.table, 0) and active.plan.type is CompactionType.MINOR:
            return AwaitsLock(active, result, 0.0, 0.0)
        self.ended.append(active.entity.table)
        if result.error is not None:
            return Outcome(active.entity, OutcomeState.FAILED, result.error)
        return Outcome(active.entity, OutcomeState.COMPACTED, f"merged ({active.plan.type.value})")

    def resume(self, waiting: AwaitsLock) -> Finished:
        table = waiting.active.entity.table
        self.looks_at_lock[table] -= 1
        if self.looks_at_lock[table]:
            return waiting
        if table in self.locked:
            self.ended.append(table)
            return DuePartition(waiting.active.entity, CompactionType.MAJOR, "no lock")
        return self.finish(waiting.active, waiting.result)

    def keep(self, active: ActiveCompaction) -> None:
        pass

    def abandon(self, active: ActiveCompaction, message: str) -> Outcome:
        self.ended.append(active.entity.table)
        return Outcome(active.entity, OutcomeState.FAILED, message)


def result_of(plan: CompactionPlan, error: str | None = None) -> CompactionResult:
    return CompactionResult(plan.attempt, plan.entity, error, (), 0.0)


class Setting:
    """A batch of tables, its fake worker, and an application that answers as told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        partition = Partition(path / "t")
        partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
        self.worker = FakeWorker(partition.plan())
        self.run: RunDirectory | None = None

    def batch(self, *tables: str, max_active: int = 2, worker_timeout_seconds: float = 3600.0) -> CompactionBatch:
        due = [DuePartition(Entity("db", table), CompactionType.MINOR, "due") for table in tables]

        @contextmanager
        def open_worker() -> Iterator[Worker]:
            yield cast(Worker, self.worker)

        def make_run_directory(first: ActiveCompaction, count: int) -> RunDirectory:
            self.run = RunDirectory(Storages(), str(self.path), "run", count)
            return self.run

        batch = CompactionBatch(
            due,
            open_worker,
            make_run_directory,
            max_active=max_active,
            poll_seconds=0.01,
            worker_timeout_seconds=worker_timeout_seconds,
        )
        batch.start()
        return batch

    def wait_until_one_ended(self) -> None:
        patience = threading.Event()
        for _ in range(int(PATIENCE_SECONDS / 0.01)):
            if self.worker.ended:
                return
            patience.wait(0.01)
        raise AssertionError("no partition ended")

    def answer(self, run: RunDirectory, answer: Callable[[CompactionPlan], CompactionResult]) -> None:
        """Be the application until every item has a word on it."""
        application = job.RunDirectory(LocalStorage(run.location))
        items = application.batch().partitions
        done: set[int] = set()
        patience = threading.Event()
        for _ in range(int(PATIENCE_SECONDS / 0.01)):
            seen = application.look()
            for item in seen.plans - done - seen.results:
                application.write_result(item, answer(application.plan(item)))
                done.add(item)
            if len(seen.skips | done) >= items:
                return
            patience.wait(0.01)
        raise AssertionError(f"only {done} of {items}")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def states(batch: CompactionBatch) -> dict[str, str]:
    return {outcome.entity.table: outcome.state.value for outcome in batch.join()}


def test_one_failure_leaves_the_others_alone_and_no_more_than_allowed_are_open(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", "d", "e", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, lambda plan: result_of(plan, "corrupt" if plan.entity.table == "c" else None))
    batch.application_ended()
    assert states(batch) == {"a": "compacted", "b": "compacted", "c": "failed", "d": "compacted", "e": "compacted"}
    assert setting.worker.most_active == 2
    assert list(setting.path.glob("_acid_runs*")) == []


def test_no_application_is_needed_where_nothing_is_to_be_merged(setting: Setting) -> None:
    setting.worker.outcomes = {"a": OutcomeState.SKIPPED, "b": OutcomeState.REFUSED}
    batch = setting.batch("a", "b")
    assert batch.wait_until_planned() is None
    assert states(batch) == {"a": "skipped", "b": "refused"}
    assert setting.run is None


def test_items_without_a_plan_are_skipped_for_the_application_also_those_before_the_first_plan(
    setting: Setting,
) -> None:
    setting.worker.outcomes = {"a": OutcomeState.SKIPPED, "c": OutcomeState.NOTHING_TO_MERGE}
    batch = setting.batch("a", "b", "c")
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "skipped", "b": "compacted", "c": "nothing_to_merge"}


def test_a_dead_attempts_output_is_finished_without_the_application(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    batch = setting.batch("a")
    assert batch.wait_until_planned() is None
    assert states(batch) == {"a": "compacted"}


def test_what_the_application_left_undone_is_abandoned_and_the_rest_is_not_begun(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=2)
    batch.wait_until_planned()
    batch.application_ended()
    found = {outcome.entity.table: (outcome.state.value, outcome.message) for outcome in batch.join()}
    assert found == {
        "a": ("failed", "the Spark application ended without a result for this partition"),
        "b": ("failed", "the Spark application ended without a result for this partition"),
        "c": ("failed", "the Spark application ended before this partition was begun"),
    }
    assert setting.worker.begun == ["a", "b"]


def test_a_result_that_was_written_before_the_application_ended_counts(setting: Setting) -> None:
    batch = setting.batch("a", max_active=1)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "compacted"}


def test_a_lost_transaction_ends_its_partition_and_no_other(setting: Setting) -> None:
    setting.worker.transactions["a"] = Transaction()
    setting.worker.transactions["a"].is_lost = True
    batch = setting.batch("a", "b")
    run = batch.wait_until_planned()
    assert run is not None
    setting.wait_until_one_ended()
    setting.answer(run, result_of)
    batch.application_ended()
    found = {outcome.entity.table: (outcome.state.value, outcome.message) for outcome in batch.join()}
    assert found == {
        "a": ("failed", "transaction 7: was aborted. Remedy: start the attempt again."),
        "b": ("compacted", "merged (minor)"),
    }


def test_a_merge_that_takes_longer_than_a_worker_may_is_abandoned(setting: Setting) -> None:
    """W-15"""
    batch = setting.batch("a", worker_timeout_seconds=0.0)
    assert batch.wait_until_planned() is not None
    setting.wait_until_one_ended()
    batch.application_ended()
    assert "was not merged within 0 s" in messages(batch)["a"]


def messages(batch: CompactionBatch) -> dict[str, str]:
    return {outcome.entity.table: outcome.message for outcome in batch.join()}


def test_who_waits_for_a_lock_keeps_nobody_else_waiting(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 20}
    batch = setting.batch("a", "b", "c", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abc", "merged (minor)")
    assert setting.worker.ended == ["b", "c", "a"]
    assert setting.worker.most_active == 2


def test_a_minor_without_its_lock_is_begun_anew_as_a_major_in_the_same_application(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 3}
    setting.worker.locked = {"a"}
    batch = setting.batch("a", "b", max_active=1)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": "merged (major)", "b": "merged (minor)"}
    assert setting.worker.begun == ["a", "a", "b"]


def test_an_adopted_minor_without_its_lock_brings_up_the_application_after_all(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    setting.worker.looks_at_lock = {"a": 2}
    setting.worker.locked = {"a"}
    batch = setting.batch("a")
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": "merged (major)"}


def test_who_waits_for_a_lock_is_waited_for_when_the_application_has_ended(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    setting.worker.looks_at_lock = {"a": 20}
    batch = setting.batch("a", "b")
    batch.wait_until_planned()
    batch.application_ended()
    assert messages(batch) == {
        "a": "merged (minor)",
        "b": "the Spark application ended without a result for this partition",
    }


def test_a_stopped_task_waits_for_no_lock(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 1_000_000}
    setting.worker.adopted = {"a"}
    batch = setting.batch("a")
    patience = threading.Event()
    while not setting.worker.begun:
        patience.wait(0.01)
    batch.stop()
    batch.wait(PATIENCE_SECONDS)
    assert messages(batch) == {"a": "the task was stopped"}
    assert setting.worker.ended == ["a"]


def test_a_stopped_task_gives_everything_back(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=1)
    assert batch.wait_until_planned() is not None
    batch.stop()
    batch.wait(PATIENCE_SECONDS)
    assert {outcome.message for outcome in batch.join()} == {
        "the task was stopped",
        "the task was stopped before this partition was begun",
    }
    assert sorted(setting.worker.ended) == ["a"]


def test_an_error_that_is_no_partitions_own_is_raised_after_everything_was_given_back(setting: Setting) -> None:
    setting.worker.crash = MetastoreUnavailableError("metastore", "does not answer", "start it")
    batch = setting.batch("a", "crash")
    batch.wait_until_planned()
    batch.application_ended()
    with pytest.raises(MetastoreUnavailableError, match="does not answer"):
        batch.join()
    assert setting.worker.ended == ["a"]


def test_a_sign_of_life_goes_before_each_step_that_may_take_minutes(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But before there is a run directory."""
    told: list[str] = []
    answered = threading.Event()
    setting.worker.adopted = {"d"}
    setting.worker.looks_at_lock = {"a": 2, "b": 2}

    def tell(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def told_before(*args: Any) -> Any:
            told.append(name)
            return original(*args)

        monkeypatch.setattr(owner, name, told_before)

    def poll(run: RunDirectory, original: Any = RunDirectory.poll) -> Any:
        assert answered.wait(PATIENCE_SECONDS)
        return original(run)

    tell(RunDirectory, "beat")
    for name in ("begin", "finish", "resume"):
        tell(setting.worker, name)
    monkeypatch.setattr(RunDirectory, "poll", poll)
    batch = setting.batch("a", "b", "c", "d", max_active=4)
    run = batch.wait_until_planned()
    assert run is not None
    application = job.RunDirectory(LocalStorage(run.location))
    for item in range(3):
        application.write_result(item, result_of(application.plan(item)))
    answered.set()
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abcd", "merged (minor)")
    steps = [(before, step) for before, step in zip(told, told[1:], strict=False) if step != "beat"]
    # The fake worker finishes what it resumes itself.
    assert set(steps) == {("beat", "begin"), ("beat", "finish"), ("beat", "resume"), ("resume", "finish")}
