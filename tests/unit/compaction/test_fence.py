"""The fence: whatever was lost since the snapshot, nothing is published, before the wait for a lock and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.staging import open_staging
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import ignore_steps
from airflow_provider_acid.compaction.work import finishing
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.exceptions import (
    AcidError,
    CorruptFileError,
    ForbiddenError,
    OwnershipLostError,
    StorageError,
)
from airflow_provider_acid.plan.plan import CompactionType, OutputDirectory, OutputKind
from airflow_provider_acid.plan.result import CompactionResult, Fault
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import Partition, insert

BASE = "base_0001000"
PAIR = (OutputDirectory(OutputKind.ROWS, "delta_0000001_0000002"),)
LOST = OwnershipLostError("something", "is somebody else's", "start the attempt again")


@dataclass
class Queue:
    """Knows whose the request is, what became of it, and whether the transaction was committed before."""

    is_ours: bool = True
    ended: str = "working"
    committed_before: bool | None = None
    transaction: Transaction | None = None
    hive: Hive = HIVE_4

    def fence(self, claim: object) -> None:
        if not self.is_ours:
            raise LOST

    def row(self, id: int) -> None:
        """Says nothing about whose it is."""

    def complete(self, claim: object) -> None:
        assert self.transaction is not None
        self.committed_before = self.transaction.is_committed
        self.ended = "ready for cleaning"

    def refuse(self, claim: object, message: str) -> None:
        self.ended = "refused"

    def fail(self, claim: object, message: str) -> None:
        self.ended = "failed"


@dataclass
class Transaction:
    """Heartbeats have not noticed yet what the metastore knows.

    :param older_readers: whether a reader that began before the snapshot has a lock there.
    """

    is_ours: bool = True
    has_lock: bool = True
    older_readers: bool = False
    exclusive_lock_id: int | None = None
    is_committed: bool = False
    txn_id: int = 9

    def check(self) -> None:
        """What heartbeats know."""

    def verify(self) -> None:
        if not self.is_ours:
            raise LOST

    def is_alone(self) -> bool:
        return not self.older_readers

    def others_hold_locks(self, newest_txn_id: int) -> bool:
        return self.older_readers and newest_txn_id == 7

    def ask_exclusive(self) -> None:
        self.exclusive_lock_id = 8

    def has_exclusive(self) -> bool:
        return self.has_lock

    def commit(self) -> None:
        self.is_committed = True

    def close(self) -> None:
        """Also withdraws the lock."""


@dataclass(frozen=True)
class Case:
    """A compaction whose job has merged."""

    queue: Queue
    transaction: Transaction
    active: ActiveCompaction
    result: CompactionResult
    finisher: Finisher

    @property
    def published(self) -> list[str]:
        return [target for target in self.active.plan.targets if self.active.storage.exists(target)]


@dataclass
class Claim:
    id: int = 3
    entity: Entity = Entity("db", "t")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return merged(tmp_path / "t", CompactionType.MAJOR)


def merged(folder: Path, type: CompactionType, settings: CompactionSettings = CompactionSettings()) -> Case:  # noqa: B008
    partition = Partition(folder)
    partition.write("delta_0000001_0000001", [insert(1, 0, 0)])
    partition.write("delta_0000002_0000002", [insert(2, 0, 0)])
    plan = replace(partition.plan(), directories=("delta_0000001_0000001", "delta_0000002_0000002"), type=type)
    if type is CompactionType.MINOR:
        plan = replace(plan, outputs=PAIR)
    storage, transaction = LocalStorage(str(partition.path)), Transaction()
    storage.delete([plan.staging])
    open_staging(storage, plan)
    result = run_plainly(plan)
    assert result.error is None
    queue, seen = Queue(transaction=transaction), frozenset(plan.directories)
    active = ActiveCompaction(cast(Any, Claim()), cast(Any, transaction), storage, plan, plan.location, None, 7, seen)
    return Case(queue, transaction, active, result, Finisher(cast(Any, queue), settings, ignore_steps))


@pytest.mark.parametrize(("hive", "committed_before"), [(HIVE_4, True), (HIVE_3, False)])
def test_what_is_still_ours_is_published_committed_and_marked(case: Case, hive: Hive, committed_before: bool) -> None:
    """On Hive 3, where the rename publishes, the other way round."""
    case.queue.hive = hive
    outcome = case.finisher.finish(case.active, case.result)
    assert isinstance(outcome, Outcome)
    assert (outcome.state, case.queue.ended) == (OutcomeState.COMPACTED, "ready for cleaning")
    assert case.published == [BASE]
    assert case.transaction.is_committed
    assert case.queue.committed_before is committed_before


def lose_the_request(case: Case) -> None:
    case.queue.is_ours = False


def lose_the_transaction(case: Case) -> None:
    case.transaction.is_ours = False


def lose_an_input(case: Case) -> None:
    case.active.storage.delete(["delta_0000002_0000002"])


def find_what_was_not_listed(case: Case) -> None:
    case.active.storage.make_directory("delta_0000003_0000003")


@pytest.mark.parametrize("lose", [lose_the_request, lose_the_transaction, lose_an_input, find_what_was_not_listed])
@pytest.mark.parametrize("waits", [False, True])
def test_what_was_lost_meanwhile_is_not_published(case: Case, lose: Callable[[Case], None], waits: bool) -> None:
    """The second time it is lost while the EXCLUSIVE lock is waited for."""
    lose(case)
    if waits:
        outcome = case.finisher.resume(AwaitsLock(case.active, case.result, 0.0, 0.0))
    else:
        outcome = case.finisher.finish(case.active, case.result)
    assert isinstance(outcome, Outcome)
    assert outcome.state is OutcomeState.FAILED
    assert case.published == []
    assert not case.transaction.is_committed
    assert case.queue.ended == "refused"


@pytest.mark.parametrize(
    ("fault", "state", "ended"),
    [
        (Fault.UNKNOWN, OutcomeState.FAILED, "failed"),
        (Fault.PARTITION, OutcomeState.REFUSED, "failed"),
        (Fault.ENVIRONMENT, OutcomeState.REFUSED, "refused"),
    ],
)
def test_only_what_may_pass_is_tried_again_and_only_what_the_partition_may_be_guilty_of_counts(
    case: Case, fault: Fault, state: OutcomeState, ended: str
) -> None:
    failed = CompactionResult.failed(case.active.plan, "a file: is damaged. Remedy: none.", 0.0, fault)
    outcome = case.finisher.finish(case.active, failed)
    assert isinstance(outcome, Outcome)
    assert (outcome.state, outcome.message) == (state, failed.error)
    assert case.queue.ended == ended
    assert case.published == []


@pytest.mark.parametrize(
    ("error", "state", "ended"),
    [
        (CorruptFileError("f", "is damaged", "restore it"), OutcomeState.REFUSED, "failed"),
        (ForbiddenError("f", "may not be read", "ask for it"), OutcomeState.REFUSED, "refused"),
        (StorageError("f", "is away", "wait"), OutcomeState.FAILED, "failed"),
    ],
)
def test_what_the_fence_refuses_for_good_is_not_tried_again(
    case: Case, monkeypatch: pytest.MonkeyPatch, error: AcidError, state: OutcomeState, ended: str
) -> None:
    def verify_output(*_: object) -> None:
        raise error

    monkeypatch.setattr(finishing, "verify_output", verify_output)
    outcome = case.finisher.finish(case.active, case.result)
    assert isinstance(outcome, Outcome)
    assert (outcome.state, case.queue.ended) == (state, ended)


def test_a_delta_alone_waits_for_readers_that_began_before_what_is_merged_had_ended(tmp_path: Path) -> None:
    case = merged(tmp_path / "t", CompactionType.MINOR)
    case.transaction.older_readers, case.transaction.has_lock = True, False
    waiting = case.finisher.finish(case.active, case.result)
    assert isinstance(waiting, AwaitsLock)
    assert case.published == []
    case.transaction.older_readers, case.transaction.has_lock = False, True
    assert isinstance(case.finisher.resume(waiting), Outcome)
    assert case.published == ["delta_0000001_0000002"]
    assert case.transaction.exclusive_lock_id is not None
