"""A partition whose work cannot begin by a mistake of somebody is refused: not tried again, not counted against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4, Hive
from airflow_provider_acid.compaction.evaluate.failures import failures_in_a_row
from airflow_provider_acid.compaction.facts import FactsOfMany
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work import claiming
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreUnavailableError,
    MisnamedError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedTableError,
)
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, NotEnqueued
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

ENTITY = Entity("d", "t", "p=1")
CASES = [
    (ObjectNotFoundError, OutcomeState.REFUSED),
    (MisnamedError, OutcomeState.REFUSED),
    (ConfigurationError, OutcomeState.REFUSED),
    (UnsupportedTableError, OutcomeState.REFUSED),
    (StorageError, OutcomeState.FAILED),
    (MetastoreUnavailableError, OutcomeState.FAILED),
]


@dataclass
class Queue:
    """Hands out one request of somebody else, and remembers how it ended."""

    hive: Hive = HIVE_4
    database: None = None
    rows: list[CompactionRow] = field(default_factory=list)

    def row(self, id: int) -> CompactionRow:
        return CompactionRow(id, ENTITY, "major", CompactionState.INITIATED)

    def claim_foreign(self, row: CompactionRow, worker_id: str) -> ClaimedCompaction:
        return ClaimedCompaction(CompactionInfo.of_row(row), worker_id)

    def refuse(self, claim: ClaimedCompaction, message: str) -> None:
        self.rows.append(CompactionRow(claim.id, claim.entity, "major", CompactionState.REFUSED))

    def fail(self, claim: ClaimedCompaction, message: str) -> None:
        self.rows.append(CompactionRow(claim.id, claim.entity, "major", CompactionState.FAILED))


def begin(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[AcidError],
    queue: Queue,
    *,
    request_id: int | None = None,
    was_seen: bool = False,
) -> Outcome:
    """The mistake comes to light at the first look at the partition, or, with a request, at the one after its claim."""

    def load_facts(*_: object) -> None:
        raise kind("partition", "cannot be used", "look")

    monkeypatch.setattr(FactsOfMany, "of", load_facts)
    monkeypatch.setattr(
        claiming, "servable_facts", lambda *_: SimpleNamespace(entity=ENTITY, table=None, partition=None, location="/p")
    )
    monkeypatch.setattr(Neighbours, "check", lambda *_: None)
    monkeypatch.setattr(Recovery, "recover", lambda *_: None)
    nothing: Any = None
    transaction: Any = SimpleNamespace(start=lambda: None, close=lambda: None, txn_id=1)
    worker = Worker(
        nothing, cast(Any, queue), lambda *_: transaction, CompactionSettings(), identity="test", host="here"
    )
    begun = worker.begin(DuePartition(ENTITY, CompactionType.MAJOR, "12 deltas", request_id, was_seen=was_seen))
    assert isinstance(begun, Outcome)
    return begun


@pytest.mark.parametrize(("kind", "state"), CASES)
def test_before_anything_is_claimed(
    monkeypatch: pytest.MonkeyPatch, kind: type[AcidError], state: OutcomeState
) -> None:
    queue = Queue()
    assert begin(monkeypatch, kind, queue).state is state
    assert queue.rows == []


@pytest.mark.parametrize(("kind", "state"), CASES)
def test_with_a_claim(monkeypatch: pytest.MonkeyPatch, kind: type[AcidError], state: OutcomeState) -> None:
    queue = Queue()
    assert begin(monkeypatch, kind, queue, request_id=7).state is state
    assert failures_in_a_row(queue.rows, count_deaths=True) == (1 if state is OutcomeState.FAILED else 0)
    assert len(queue.rows) == 1


@pytest.mark.parametrize("request_id", [None, 7])
@pytest.mark.parametrize(("kind", "state"), [(ObjectNotFoundError, OutcomeState.SKIPPED), *CASES[1:]])
def test_only_what_was_seen_and_is_gone_fails_no_task(
    monkeypatch: pytest.MonkeyPatch, kind: type[AcidError], state: OutcomeState, request_id: int | None
) -> None:
    queue = Queue()
    outcome = begin(monkeypatch, kind, queue, request_id=request_id, was_seen=True)
    assert outcome.state is state
    assert outcome.message.startswith("it was dropped since") is (state is OutcomeState.SKIPPED)
    assert len(queue.rows) == (0 if request_id is None else 1)


@pytest.mark.parametrize("state", [CompactionState.FAILED, CompactionState.REFUSED])
@pytest.mark.parametrize(("who", "asked_again"), [("test", True), ("another task", False)])
def test_what_a_former_try_gave_up_of_somebodys_request_is_asked_for_anew(
    monkeypatch: pytest.MonkeyPatch, state: CompactionState, who: str, asked_again: bool
) -> None:
    """The metastore hands out no request twice: a retry that passed it over would be green, and nothing compacted."""
    asked: list[CompactionType] = []

    class Given(Queue):
        def row(self, id: int) -> CompactionRow:
            pool = RequestPool.new(owner_of(who, str(ENTITY)))
            return CompactionRow(id, ENTITY, "major", state, worker_id=pool.worker_id("here"))

        def enqueue(self, entity: Entity, kind: CompactionType, *_: object) -> NotEnqueued:
            asked.append(kind)
            return NotEnqueued("somebody else was faster", None)

    table = SimpleNamespace(is_transactional=True, is_external=False)
    facts = SimpleNamespace(entity=ENTITY, table=table, partition=None, location="/")
    monkeypatch.setattr(FactsOfMany, "of", lambda *_: facts)
    monkeypatch.setattr(claiming, "_check_rights", lambda *_: None)
    monkeypatch.setattr(Neighbours, "check", lambda *_: None)
    monkeypatch.setattr(Recovery, "recover", lambda *_: None)
    nothing: Any = None
    worker = Worker(nothing, cast(Any, Given()), lambda *_: nothing, CompactionSettings(), identity="test", host="here")
    begun = worker.begin(DuePartition(ENTITY, CompactionType.MAJOR, "asked for", 7))
    assert isinstance(begun, Outcome)
    assert asked == ([CompactionType.MAJOR] if asked_again else [])
    assert begun.message == ("somebody else was faster" if asked_again else "the request is no longer waiting")
