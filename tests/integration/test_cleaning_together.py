"""Partitions that nobody has locked are cleaned under locks that one call takes for all; the others wait alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import ValidTxnList
from airflow_provider_acid.compaction.clean import deletion as deletion_module
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX, Discard
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import LockInfo
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import ON_EVERY_KIND, AcidTable, Site, StepRecorder, due

NAMES = ["p=a", "p=b", "p=c"]


@pytest.fixture
def table(site: Site) -> AcidTable:
    """Three compacted partitions, a lock of which is waited for but a moment."""
    site.settings = replace(site.settings, cleaner_lock_wait_seconds=0.0)
    table = site.table(partitions=NAMES)
    for number, name in enumerate(NAMES):
        for value in range(2):
            table.insert(10 * number + value, partition=name)
    for name in NAMES:
        site.compact(table.entity(name))
    return table


def clean(site: Site, table: AcidTable, **how: Any) -> dict[str | None, Cleaning]:
    return {cleaning.entity.partition: cleaning for cleaning in site.clean(*map(table.entity, NAMES), **how)}


def states(found: dict[str | None, Cleaning]) -> list[CleaningState]:
    return [found[name].state for name in NAMES]


def locks_of(site: Site) -> list[LockInfo]:
    return [lock for lock in site.client.show_locks() if lock.database == site.database]


def is_cleaned(table: AcidTable, name: str) -> bool:
    return [directory[:5] for directory in table.visible(name)] == ["base_"]


def hidden(table: AcidTable, name: str) -> list[str]:
    return [path.name for path in table.folder(name).iterdir() if path.name.startswith(DISCARD_PREFIX)]


def test_one_transaction_and_one_call_lock_them_all(site: Site, table: AcidTable, calls: Counter[str]) -> None:
    found = clean(site, table)
    assert states(found) == 3 * [CleaningState.CLEANED]
    assert [len(cleaning.deleted) for cleaning in found.values()] == [2, 2, 2]
    assert all(is_cleaned(table, name) for name in NAMES)
    assert table.values() == [0, 1, 10, 11, 20, 21]
    once = ("open_txns", "lock", "show_locks", "commit_txn", "get_valid_write_ids")
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1) | {"show_locks": 2}
    assert locks_of(site) == []


def test_beside_a_reader_of_one_the_others_are_cleaned_and_nobody_waits(
    site: Site, table: AcidTable, calls: Counter[str]
) -> None:
    site.settings = replace(site.settings, cleaner_lock_wait_seconds=1.0)
    reader = site.reader(table, "p=b")
    found = clean(site, table)
    assert calls["lock"] == 3, "of the others together, and of that one beside the reader, in the end EXCLUSIVE"
    assert calls["get_partitions_by_names"] == 3, "of all, twice, and of that one right before it waits"
    assert states(found) == [CleaningState.CLEANED, CleaningState.WAITING, CleaningState.CLEANED]
    assert f"txn {reader}, " in found["p=b"].message
    assert len(table.directories("p=b")) == 3
    assert [lock.txn_id for lock in locks_of(site)] == [reader]
    site.end(reader, site.admin.commit)
    assert [cleaning.state for cleaning in site.clean(table.entity("p=b"))] == [CleaningState.CLEANED]
    assert table.values() == [0, 1, 10, 11, 20, 21]


def test_where_a_reader_comes_just_before_the_locks_are_asked_for_they_are_withdrawn_and_each_is_cleaned_alone(
    site: Site, table: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[int] = []
    lock_exclusive = AcidMetastoreClient.lock_exclusive

    def come_before(client: AcidMetastoreClient, txn_id: int, *entities: Entity, agent_info: str) -> Any:
        if not readers:
            assert len(entities) == 3
            readers.append(site.reader(table, "p=c"))
        return lock_exclusive(client, txn_id, *entities, agent_info=agent_info)

    monkeypatch.setattr(AcidMetastoreClient, "lock_exclusive", come_before)
    found = clean(site, table)
    assert states(found) == [CleaningState.CLEANED, CleaningState.CLEANED, CleaningState.WAITING]
    assert len(table.directories("p=c")) == 3
    assert [lock.txn_id for lock in locks_of(site)] == readers
    assert not any(hidden(table, name) for name in NAMES)


def test_locks_are_held_for_a_moment_only_and_taken_anew_for_what_is_left(
    site: Site, table: AcidTable, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_module, "MOMENT_SECONDS", 0.0)
    held: list[int] = []
    take = Discard.take

    def look_at_locks(discard: Discard, *arguments: Any) -> None:
        held.append(len(locks_of(site)))
        take(discard, *arguments)

    monkeypatch.setattr(Discard, "take", look_at_locks)
    assert states(clean(site, table)) == 3 * [CleaningState.CLEANED]
    assert (calls["open_txns"], calls["lock"], calls["commit_txn"]) == (3, 3, 3)
    assert held == [3, 2, 1]
    assert all(is_cleaned(table, name) for name in NAMES)


@pytest.mark.parametrize("error", [StorageError("p=b", "cannot be moved", "look"), ValueError("unforeseen")])
def test_what_one_of_them_meets_is_its_own(
    site: Site, table: AcidTable, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    take = Discard.take

    def fail(discard: Discard, *arguments: Any) -> None:
        if "p=b" in discard._storage.location:
            raise error
        take(discard, *arguments)

    monkeypatch.setattr(Discard, "take", fail)
    found = clean(site, table)
    assert states(found) == [CleaningState.CLEANED, CleaningState.FAILED, CleaningState.CLEANED]
    assert str(error).partition(". Remedy")[0] in found["p=b"].message
    assert len(table.directories("p=b")) == 3
    monkeypatch.undo()
    assert states(clean(site, table) | {name: found[name] for name in ("p=a", "p=c")}) == 3 * [CleaningState.CLEANED]


def test_two_compactions_of_each_are_cleaned_in_their_order(site: Site, table: AcidTable) -> None:
    for number, name in enumerate(NAMES):
        table.insert(10 * number + 2, partition=name)
        site.compact(due(table.entity(name), type=CompactionType.MAJOR))
    found = site.clean(*map(table.entity, NAMES))
    assert [cleaning.state for cleaning in found] == 6 * [CleaningState.CLEANED]
    assert all(is_cleaned(table, name) and len(table.directories(name)) == 1 for name in NAMES)
    assert table.values() == [0, 1, 2, 10, 11, 12, 20, 21, 22]


@ON_EVERY_KIND
@pytest.mark.parametrize("step", [Step.CLEANING_DECIDED, Step.FILES_DELETED, Step.MARKED_CLEANED])
@pytest.mark.parametrize("partition", [1, 2, 3])
def test_a_cleaner_that_dies_among_them_leaves_nothing_that_the_next_one_does_not_clean(
    site: Site, table: AcidTable, step: Step, partition: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a killed one: nothing of what it began is put in order at its end."""
    seen: list[Step] = []

    def die(passed: Step) -> None:
        seen.append(passed)
        if seen.count(step) == partition:
            raise KeyboardInterrupt

    with monkeypatch.context() as dead:
        dead.setattr(Discard, "__exit__", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            clean(site, table, on_step=StepRecorder(die))
    assert table.values() == [0, 1, 10, 11, 20, 21]
    assert {cleaning.state for cleaning in site.clean(*map(table.entity, NAMES))} <= {CleaningState.CLEANED}
    assert all(is_cleaned(table, name) for name in NAMES)
    assert step is Step.MARKED_CLEANED or not any(hidden(table, name) for name in NAMES)
    assert table.values() == [0, 1, 10, 11, 20, 21]
    assert {row.state for name in NAMES for row in site.rows(table.entity(name))} == {"succeeded"}


@ON_EVERY_KIND
def test_write_ids_up_to_an_earlier_transaction_tell_of_all_below_their_mark_also_of_later_transactions(
    site: Site,
) -> None:
    """So that what has ended by an early view is the same by every later one, in whatever order ids were given out."""
    table = site.table()
    early, late, last = site.admin.open_transactions(3)
    for txn in (late, early, last):
        site.admin.allocate_write_ids(site.database, table.name, [txn])
    site.admin.commit(early)
    site.admin.abort(late)
    site.admin.commit(last)
    names = [f"{site.database}.{table.name}"]
    (by_early,) = site.client.valid_write_ids(names, str(ValidTxnList(early, (), ())))
    assert (by_early.high_water_mark, by_early.open, by_early.aborted) == (2, frozenset({1}), frozenset())
    (knowing,) = site.client.valid_write_ids(names, str(ValidTxnList(early, (), (late,))))
    assert (knowing.high_water_mark, knowing.open, knowing.aborted) == (2, frozenset(), frozenset({1}))
    (by_last,) = site.client.valid_write_ids(names, str(ValidTxnList(last, (), (late,))))
    assert (by_last.high_water_mark, by_last.open, by_last.aborted) == (3, frozenset(), frozenset({1}))
