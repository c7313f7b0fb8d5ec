"""Many rows are cleaned at once, each partition's by one of those who clean; whatever one of them meets is its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.clean import cleaner as cleaner_module
from airflow_provider_acid.compaction.clean.cleaner import HANDS, LOOKED_UP_TOGETHER, Cleaner, Connect
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.metastore.queue_rules import in_cleaning_order
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, OpenTxns

PATIENCE_SECONDS = 30.0


class Site:
    """Rows that nobody has to be waited for, and who cleans which: connections by their number, 0 is the task's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: Sequence[CompactionRow]) -> None:
        self.rows = list(rows)
        self.cleaned: list[tuple[int, CompactionRow]] = []
        self.open: set[int] = set()
        self.opened = 0
        self.calls = 0
        self.looks = 0
        self.refuses = False
        self.all_at_work = threading.Event()
        site = self

        class FakeRowCleaner:
            def __init__(self, client: Any, *_: object, **__: object) -> None:
                self.marked: list[object] = []
                self.number = client.number

            def clean(self, rows: Sequence[CompactionRow], horizon: object) -> list[Cleaning]:
                return site.clean(self.number, rows)

        monkeypatch.setattr(cleaner_module, "RowCleaner", FakeRowCleaner)
        monkeypatch.setattr(Cleaner, "_locations", lambda *_: {})

    def clean(self, number: int, rows: Sequence[CompactionRow]) -> list[Cleaning]:
        self.calls += 1
        self.cleaned += [(number, row) for row in rows]
        if len({by for by, _ in self.cleaned}) == min(HANDS, -(-len(self.rows) // LOOKED_UP_TOGETHER)):
            self.all_at_work.set()
        return [Cleaning(row.entity, row.id, CleaningState.CLEANED, "1 deleted") for row in rows]

    def let_all_begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody comes to an end before every hand has something."""
        clean = self.clean

        def wait_for_all(number: int, rows: Sequence[CompactionRow]) -> list[Cleaning]:
            done = clean(number, rows)
            assert self.all_at_work.wait(PATIENCE_SECONDS), "nobody waits for his turn"
            return done

        monkeypatch.setattr(self, "clean", wait_for_all)

    @contextmanager
    def connect(self) -> Iterator[tuple[Any, Any]]:
        if self.refuses:
            raise MetastoreUnavailableError("metastore", "has too many connections", "allow more")
        self.opened += 1
        number = self.opened
        self.open.add(number)
        try:
            yield self.client(number), self.queue()
        finally:
            self.open.discard(number)

    def client(self, number: int) -> Any:
        return SimpleNamespace(number=number, open_transactions=lambda: OpenTxns(99, (), (), None), show_locks=list)

    def queue(self) -> Any:
        def rows(state: CompactionState) -> list[CompactionRow]:
            self.looks += 1
            return [row for row in self.rows if row.state is state]

        def ready_to_clean(entities: Collection[Entity]) -> list[CompactionRow]:
            return in_cleaning_order(rows(CompactionState.READY_FOR_CLEANING), entities)

        return SimpleNamespace(hive=HIVE_4, database=None, rows=rows, ready_to_clean=ready_to_clean)

    def cleaner(self, connect: Connect | None) -> Cleaner:
        client, queue = self.client(0), self.queue()
        return Cleaner(client, queue, CompactionSettings(), connect=connect, sleep=lambda seconds: None)

    def clean_all(self, connect: Connect | None) -> tuple[Cleaning, ...]:
        return self.cleaner(connect).clean({row.entity for row in self.rows})


def row(id: int, partition: int) -> CompactionRow:
    entity = Entity("d", "t", f"p={partition}")
    state = CompactionState.READY_FOR_CLEANING
    return CompactionRow(id, entity, "major", state, highest_write_id=3, next_txn_id=5, commit_ms=1)


def test_all_rows_are_cleaned_once_by_as_many_as_there_is_work_for(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(20 * LOOKED_UP_TOGETHER)])
    site.let_all_begin(monkeypatch)
    found = site.clean_all(site.connect)
    assert sorted(row.id for _, row in site.cleaned) == list(range(len(site.rows)))
    assert [cleaning.request_id for cleaning in found] == [row.id for row in site.rows]
    assert {number for number, _ in site.cleaned} == set(range(HANDS))
    assert (site.opened, site.open) == (HANDS - 1, set())


@pytest.mark.parametrize("rows", [1, LOOKED_UP_TOGETHER])
def test_few_rows_need_no_further_connection(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(rows)])
    assert len(site.clean_all(site.connect)) == rows
    assert (site.opened, site.calls) == (0, 1)


@pytest.mark.parametrize(("rows", "parts"), [(33, 2), (256, 8), (257, 8), (512, 8), (513, 9), (2000, 32)])
def test_of_many_rows_more_are_looked_up_together_as_long_as_every_hand_has_some(
    monkeypatch: pytest.MonkeyPatch, rows: int, parts: int
) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(rows)])
    assert len(site.clean_all(None)) == rows
    assert site.calls == parts


def test_rows_of_one_partition_are_cleaned_by_one_hand_older_ones_first(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(id, id % 100) for id in range(1000)])
    site.let_all_begin(monkeypatch)
    site.clean_all(site.connect)
    for partition in range(100):
        of_partition = [(number, row.id) for number, row in site.cleaned if row.id % 100 == partition]
        assert len({number for number, _ in of_partition}) == 1
        assert [id for _, id in of_partition] == list(range(partition, 1000, 100))


def test_where_no_further_connection_can_be_had_the_own_one_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(3 * LOOKED_UP_TOGETHER)])
    site.refuses = True
    found = site.clean_all(site.connect)
    assert {cleaning.state for cleaning in found} == {CleaningState.CLEANED}
    assert {number for number, _ in site.cleaned} == {0}


def test_what_ends_the_task_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(1000 * LOOKED_UP_TOGETHER)])
    clean = site.clean
    killed = threading.Event()

    def be_killed(number: int, rows: Sequence[CompactionRow]) -> list[Cleaning]:
        if number == 0:
            killed.set()
            raise KeyboardInterrupt
        # The first hand may be the last to begin; then the others take longer than it does to end.
        assert killed.wait(PATIENCE_SECONDS)
        time.sleep(0.01)
        return clean(number, rows)

    monkeypatch.setattr(site, "clean", be_killed)
    with pytest.raises(KeyboardInterrupt):
        site.clean_all(site.connect)
    assert len(site.cleaned) < len(site.rows) / 2
    assert site.open == set()


def test_one_look_tells_what_is_ready_and_that_nothing_is_to_be_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(id, id) for id in range(3)])
    assert len(site.clean_all(site.connect)) == 3
    assert site.looks == 2, "one at those that are ready, one at those at work"


def test_what_was_not_committed_is_settled_before_it_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, [row(0, 0), replace(row(1, 1), commit_ms=None)])

    def settle(_: Recovery, entities: Collection[Entity]) -> tuple[Outcome, ...]:
        assert Entity("d", "t", "p=1") in entities
        assert not site.cleaned
        site.rows[1] = row(1, 1)
        return (Outcome(Entity("d", "t", "p=2"), OutcomeState.FAILED, "could not be settled", 7),)

    monkeypatch.setattr(Recovery, "settle_uncommitted", settle)
    found = site.clean_all(site.connect)
    assert [(cleaning.request_id, cleaning.state.value) for cleaning in found] == [
        (0, "cleaned"),
        (1, "cleaned"),
        (7, "failed"),
    ]
