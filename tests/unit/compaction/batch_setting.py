"""A batch of tables with a worker that does nothing, for tests of when the batch begins, watches and finishes what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import IDLE_TIMEOUT_SECONDS, RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.finishing import Finished
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import OwnershipLostError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.merge.acid_files import Partition, insert

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.01


class Transaction:
    """Stays ours until it is told to be lost."""

    def __init__(self) -> None:
        self.is_lost = False
        self.exclusive_lock_id: int | None = None

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
        self.named: list[tuple[str, str]] = []
        self.given_back: list[str] = []

    def begin_together(self, due: Sequence[DuePartition]) -> list[ActiveCompaction | Outcome]:
        begun: list[ActiveCompaction | Outcome] = []
        try:
            for one in due:
                begun.append(self.begin(one))
        except BaseException:
            self.ended += [one.entity.table for one in begun if isinstance(one, ActiveCompaction)]
            raise
        return begun

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
        return ActiveCompaction(
            no_claim, cast(Any, transaction), storage, plan, plan.location, adopted, 0, frozenset(plan.directories)
        )

    def finish(self, active: ActiveCompaction, result: CompactionResult) -> Finished:
        if self.looks_at_lock.get(active.entity.table, 0):
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

    def name_application(self, active: ActiveCompaction, application_id: str) -> None:
        self.named.append((active.entity.table, application_id))

    def abandon(self, active: ActiveCompaction, message: str) -> Outcome:
        self.ended.append(active.entity.table)
        return Outcome(active.entity, OutcomeState.FAILED, message)

    def give_back(self, active: ActiveCompaction, message: str, state: OutcomeState) -> Outcome:
        self.ended.append(active.entity.table)
        self.given_back.append(active.entity.table)
        return Outcome(active.entity, state, message)


def result_of(plan: CompactionPlan, error: str | None = None) -> CompactionResult:
    return CompactionResult(plan.attempt, plan.digest, plan.entity, error, (), 0.0)


class Setting:
    """A batch of tables, its fake worker, and an application that answers as told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        partition = Partition(path / "t")
        partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
        self.worker = FakeWorker(partition.plan())
        self.run: RunDirectory | None = None

    def batch(
        self,
        *tables: str,
        wanted: CompactionType = CompactionType.MINOR,
        max_active: int = 2,
        max_small: int = 0,
        worker_timeout_seconds: float = 3600.0,
        poll_seconds: float = POLL_SECONDS,
        idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS,
        window_end: WindowEnd | None = None,
        check: Callable[[Worker], None] = lambda worker: None,
    ) -> CompactionBatch:
        due = [DuePartition(Entity("db", table), wanted, "due") for table in tables]

        @contextmanager
        def open_worker() -> Iterator[Worker]:
            yield cast(Worker, self.worker)

        def make_run_directory(worker: Worker, first: ActiveCompaction) -> RunDirectory:
            place, key = RunPlace.in_directory(str(self.path)), RunKey.new("run")
            self.run = RunDirectory(Storages(), place, key, idle_timeout_seconds)
            return self.run

        batch = CompactionBatch(
            due,
            open_worker,
            make_run_directory,
            check=check,
            max_active=max_active,
            max_small=max_small,
            poll_seconds=poll_seconds,
            worker_timeout_seconds=worker_timeout_seconds,
            window_end=window_end,
        )
        batch.start()
        return batch

    def wait_until_one_ended(self) -> None:
        self.wait_until(lambda: bool(self.worker.ended))

    def wait_until(self, happened: Callable[[], bool]) -> None:
        patience = threading.Event()
        for _ in range(int(PATIENCE_SECONDS / 0.01)):
            if happened():
                return
            patience.wait(0.01)
        raise AssertionError("it did not happen")

    def answer(self, run: RunDirectory, answer: Callable[[CompactionPlan], CompactionResult]) -> None:
        """Be the application until the operator says that it is over."""
        application = job.DriverRun(LocalStorage(run.location), run.key.secret)
        done: set[int] = set()
        patience = threading.Event()
        for _ in range(int(PATIENCE_SECONDS / 0.01)):
            seen = application.look()
            for item in seen.plans - done - seen.results:
                # A plan that was given up meanwhile is gone.
                with suppress(StorageError):
                    application.write_result(item, answer(application.plan(item)))
                    done.add(item)
            if seen.ended:
                return
            patience.wait(0.01)
        raise AssertionError(f"only {done}")


def messages(batch: CompactionBatch) -> dict[str, str]:
    return {outcome.entity.table: outcome.message for outcome in batch.join()}


def states(batch: CompactionBatch) -> dict[str, str]:
    return {outcome.entity.table: outcome.state.value for outcome in batch.join()}
