"""The hands of a batch: as many as there is work for and the metastore lets, each with its own connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.work.batch import BEGUN_TOGETHER, HANDS
from airflow_provider_acid.compaction.work.hands import Hand, Hands
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.plan.plan import CompactionPlan
from tests.unit.compaction.batch_setting import PATIENCE_SECONDS, Setting, messages, result_of


class Metastore:
    """Lets so many in, and knows who is there."""

    def __init__(self, most: int = HANDS) -> None:
        self.most = most
        self.error: Exception = MetastoreUnavailableError("metastore", "has too many connections", "allow more")
        self.asked = 0
        self.opened = 0
        self.open = 0
        self.told = threading.Semaphore(0)

    @contextmanager
    def connect(self) -> Iterator[Worker]:
        self.asked += 1
        if self.opened == self.most:
            raise self.error
        self.opened += 1
        self.open += 1
        try:
            yield cast(Worker, self.opened)
        finally:
            self.open -= 1

    def hands(self, most: int = HANDS) -> Hands:
        return Hands(self.connect, most, self.told.release)

    def idle(self, hands: Hands) -> Hand | None:
        """One that is idle, when nobody is coming any more."""
        for _ in range(100):
            hand = hands.idle()
            if hand is not None or hands._coming is None:
                return hand
            assert self.told.acquire(timeout=PATIENCE_SECONDS)
        return None


def number(worker: Worker) -> int:
    """Of a worker, which is nothing but its number here."""
    return cast(int, worker)


class Blocked:
    """Work that goes on until it is freed."""

    def __init__(self) -> None:
        self._freed = threading.Event()

    def __call__(self, worker: Worker) -> int:
        assert self._freed.wait(PATIENCE_SECONDS)
        return number(worker)

    def free(self) -> None:
        self._freed.set()


@pytest.mark.parametrize(("let_in", "wanted", "come"), [(HANDS, 3, 3), (HANDS, 1, 1), (2, HANDS, 2), (1, HANDS, 1)])
def test_another_comes_while_all_have_something_to_do_as_long_as_more_are_wanted_and_let_in(
    let_in: int, wanted: int, come: int
) -> None:
    metastore, blocked = Metastore(let_in), Blocked()
    with metastore.hands(wanted) as hands:
        assert metastore.told.acquire(timeout=PATIENCE_SECONDS)
        done = []
        while (hand := metastore.idle(hands)) is not None:
            done.append(hand.ask(blocked))
        assert (len(done), metastore.open) == (come, come)
        assert hands.idle() is None
        blocked.free()
        assert sorted(each.result(PATIENCE_SECONDS) for each in done) == list(range(1, come + 1))
        assert hands.idle() is not None
    assert (metastore.opened, metastore.open) == (come, 0)
    assert metastore.asked == min(let_in + 1, wanted)


def test_who_has_nothing_to_do_is_asked_before_another_comes() -> None:
    metastore = Metastore()
    with metastore.hands() as hands:
        for _ in range(3):
            hand = hands.idle()
            assert hand is not None
            assert hand.ask(number).result(PATIENCE_SECONDS) == 1
    assert metastore.opened == 1


def test_nobody_works_where_not_even_the_first_is_let_in() -> None:
    with pytest.raises(MetastoreUnavailableError, match="too many connections"):
        Metastore(0).hands()


def test_what_nobody_foresaw_of_a_further_one_is_raised_and_all_are_sent_away() -> None:
    metastore, blocked = Metastore(1), Blocked()
    metastore.error = MemoryError("none left")

    def work() -> None:
        with metastore.hands() as hands:
            try:
                metastore.told.acquire(timeout=PATIENCE_SECONDS)
                while (hand := metastore.idle(hands)) is not None:
                    hand.ask(blocked)
            finally:
                blocked.free()

    with pytest.raises(MemoryError, match="none left"):
        work()
    assert metastore.open == 0


def test_an_error_of_the_work_is_told_to_who_asked_and_the_hand_goes_on() -> None:
    with Metastore().hands() as hands:
        hand = hands.idle()
        assert hand is not None
        assert isinstance(hand.ask(lambda worker: 1 // 0).exception(PATIENCE_SECONDS), ZeroDivisionError)
        assert hand.ask(number).result(PATIENCE_SECONDS) == 1


def test_nobody_begins_another_partition_before_the_first_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hand makes the run directory."""
    setting = Setting(tmp_path)
    blocked, others = threading.Event(), threading.Event()
    begin = setting.worker.begin

    def noted_begin(due: Any) -> Any:
        if due.entity.table == "a":
            blocked.set()
            assert not others.wait(0.5)
        else:
            others.set()
        return begin(due)

    monkeypatch.setattr(setting.worker, "begin", noted_begin)
    batch = setting.batch("a", "b", "c", max_active=3)
    assert blocked.wait(PATIENCE_SECONDS)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abc", "merged (minor)")


def test_nobody_begins_another_partition_before_the_first_plan_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application would not start before that other one is begun, too."""
    setting = Setting(tmp_path)
    put_plan, begin, others = RunDirectory.put_plan, setting.worker.begin, threading.Event()

    def put_slowly(run: RunDirectory, index: int, plan: CompactionPlan) -> None:
        put_plan(run, index, plan)
        assert index or not others.wait(0.5)

    def noted_begin(due: Any) -> Any:
        if due.entity.table != "a":
            others.set()
        return begin(due)

    monkeypatch.setattr(RunDirectory, "put_plan", put_slowly)
    monkeypatch.setattr(setting.worker, "begin", noted_begin)
    batch = setting.batch("a", "b")
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("ab", "merged (minor)")


@pytest.mark.parametrize("ends", ["finish", "resume"])
def test_whoever_began_a_partition_also_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    """Its transaction belongs to that one's connection."""
    setting = Setting(tmp_path)
    tables = [f"t{number}" for number in range(4 * BEGUN_TOGETHER)]
    if ends == "resume":
        setting.worker.looks_at_lock = dict.fromkeys(tables, 1)
    both_begin = threading.Barrier(2)
    hands: dict[str, set[int]] = {table: set() for table in tables}
    begin, end = setting.worker.begin, getattr(setting.worker, ends)

    def noted_begin(due: Any) -> Any:
        hands[due.entity.table].add(threading.get_ident())
        if due.entity.table in ("t1", f"t{1 + BEGUN_TOGETHER}"):
            both_begin.wait(PATIENCE_SECONDS)
        return begin(due)

    def noted_end(subject: Any, *others: Any) -> Any:
        hands[getattr(subject, "active", subject).entity.table].add(threading.get_ident())
        return end(subject, *others)

    monkeypatch.setattr(setting.worker, "begin", noted_begin)
    monkeypatch.setattr(setting.worker, ends, noted_end)
    batch = setting.batch(*tables, max_active=1, max_small=4 * BEGUN_TOGETHER)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys(tables, "merged (minor)")
    assert {len(of_table) for of_table in hands.values()} == {1}
    assert len(set.union(*hands.values())) > 1
