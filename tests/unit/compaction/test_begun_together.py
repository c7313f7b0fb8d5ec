"""Partitions that are begun together: all are locked before one is looked at, and each has its own errors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.facts import FactsOfMany
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import TransactionView
from airflow_provider_acid.compaction.work import preparing
from airflow_provider_acid.compaction.work.claiming import Claimed, Claimer
from airflow_provider_acid.compaction.work.preparing import Preparer
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, OpenTxns
from airflow_provider_acid.plan.plan import CompactionType

GROUP = [Entity("d", "t", f"p={name}") for name in "abc"]
FIRST_TXN_ID = 7


class Group:
    """Partitions of one table, and what the worker does with them, in its order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.failing: dict[tuple[str, Entity], BaseException] = {}
        self.high_water_marks: list[int] = []
        monkeypatch.setattr(Claimer, "claim", lambda _, due, pool, known: self._claim(due, pool, known))
        monkeypatch.setattr(Preparer, "_plan", lambda _, claimed, known, view: self._plan(claimed, known, view))

    def _step(self, step: str, entity: Entity) -> None:
        if (step, entity) in self.failing:
            raise self.failing[step, entity]
        self.steps.append(f"{step} {entity.partition}")

    def _claim(self, due: DuePartition, pool: RequestPool, known: FactsOfMany) -> Claimed:
        known.of(due.entity)
        self._step("locked", due.entity)
        row = CompactionRow(1, due.entity, "major", CompactionState.WORKING)
        # The later a partition is claimed, the lower its transaction, as no metastore would have it.
        txn_id = FIRST_TXN_ID - GROUP.index(due.entity)
        transaction: Any = SimpleNamespace(close=lambda: self._step("closed", due.entity), txn_id=txn_id)
        return Claimed(due, ClaimedCompaction(CompactionInfo.of_row(row), "w"), transaction, pool, None, "/p")

    def _plan(self, claimed: Claimed, known: FactsOfMany, view: TransactionView) -> ActiveCompaction:
        known.of(claimed.due.entity)
        self.high_water_marks.append(view.txns.high_water_mark)
        self._step("planned", claimed.due.entity)
        return cast(ActiveCompaction, claimed.due.entity)

    def begin(self) -> list[object]:
        def get_partitions(*_: object) -> list[object]:
            self.steps.append("partitions")
            return [SimpleNamespace(name=entity.partition) for entity in GROUP]

        def open_transactions() -> OpenTxns:
            self.steps.append("transactions")
            return OpenTxns(FIRST_TXN_ID + 5, (), (), FIRST_TXN_ID)

        client: Any = SimpleNamespace(
            get_table=lambda *_: SimpleNamespace(partition_keys=("p",)),
            get_database=lambda *_: None,
            get_partitions=get_partitions,
            open_transactions=open_transactions,
        )
        queue: Any = SimpleNamespace(hive=HIVE_4, database=None, fail=lambda *_: None, refuse=lambda *_: None)
        none: Any = None
        worker = Worker(client, queue, none, CompactionSettings(), identity="test", host="here")
        due = [DuePartition(entity, CompactionType.MAJOR, "due") for entity in GROUP]
        return list(worker.begin_together(due))


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


def test_one_look_after_all_are_locked_is_for_all(group: Group) -> None:
    assert group.begin() == GROUP
    locked, planned = ([f"{step} p={name}" for name in "abc"] for step in ("locked", "planned"))
    assert group.steps == ["partitions", *locked, "partitions", "transactions", *planned]


def test_what_began_after_the_first_of_them_is_seen_by_none(group: Group) -> None:
    group.begin()
    assert group.high_water_marks == [FIRST_TXN_ID - 2] * 3


@pytest.mark.parametrize("step", ["locked", "planned"])
def test_what_nobody_foresaw_of_one_ends_that_one_alone(group: Group, step: str) -> None:
    group.failing[step, GROUP[1]] = RecursionError("too deep")
    first, odd, last = group.begin()
    assert [first, last] == [GROUP[0], GROUP[2]]
    assert isinstance(odd, Outcome)
    assert (odd.state, odd.entity) == (OutcomeState.FAILED, GROUP[1])
    assert "too deep" in odd.message
    assert [name for name in group.steps if name.startswith("closed")] == (["closed p=b"] if step == "planned" else [])


@pytest.mark.parametrize("step", ["locked", "planned"])
def test_what_ends_the_task_closes_the_transactions_of_all(group: Group, step: str) -> None:
    group.failing[step, GROUP[2]] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        group.begin()
    closed = [name for name in group.steps if name.startswith("closed")]
    assert closed == [f"closed p={name}" for name in ("ab" if step == "locked" else "abc")]


def test_the_look_of_a_group_is_told_whose_partition_it_looks_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[int] = []

    def take_snapshot(*_: object, own_txn_id: int, **others: object) -> None:
        told.append(own_txn_id)
        raise RefusedError("a test", "has seen enough", "look at what was told")

    monkeypatch.setattr(preparing, "take_snapshot", take_snapshot)
    monkeypatch.setattr(preparing, "check_entity", lambda facts: None)
    settings, anything = CompactionSettings(), cast(Any, SimpleNamespace(check=lambda *_: None))
    finisher: Any = SimpleNamespace(end_unplanned=lambda claim, error: error)
    preparer = Preparer(cast(Any, SimpleNamespace(hive=HIVE_4)), settings, anything, finisher, lambda *_: None)
    table = SimpleNamespace(is_insert_only=False)
    known: Any = SimpleNamespace(of=lambda _: SimpleNamespace(table=table, partition=None, location=str(tmp_path)))
    transaction: Any = SimpleNamespace(txn_id=FIRST_TXN_ID, close=lambda: None)
    claim = ClaimedCompaction(CompactionInfo(1, GROUP[0], "major"), "w")
    due = DuePartition(GROUP[0], CompactionType.MAJOR, "due")
    preparer.prepare(Claimed(due, claim, transaction, anything, None, str(tmp_path)), known, anything)
    assert told == [FIRST_TXN_ID]
