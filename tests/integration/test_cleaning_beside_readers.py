"""Directories go while nobody lists them: Hive's readers stumble over one that goes between two of their looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.exclusive_lock import MomentaryLocks
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.settings import CleaningLockAction
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from tests.harness.thrift_admin import LockNotAcquiredError
from tests.integration.compaction_site import ON_EVERY_METASTORE, AcidTable, Site

pytestmark = ON_EVERY_METASTORE


def compacted_table(site: Site) -> AcidTable:
    """Three inserts, and the base that replaces them."""
    site.settings = replace(site.settings, cleaner_lock_wait_seconds=2.0)
    table = site.table()
    for value in range(3):
        table.insert(value)
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    return table


def clean(site: Site, table: AcidTable) -> Cleaning:
    (cleaning,) = site.clean(table.entity())
    return cleaning


def test_beside_a_newer_reader_nothing_is_deleted_until_it_has_ended(site: Site) -> None:
    table = compacted_table(site)
    site.settings = replace(site.settings, cleaner_lock_timeout_action=CleaningLockAction.WAIT)
    before = table.directories()
    reader = site.reader(table)
    cleaning = clean(site, table)
    assert cleaning.state is CleaningState.WAITING
    assert f"(transaction {reader})" in cleaning.message or f"txn {reader}, " in cleaning.message
    assert (table.directories(), table.values()) == (before, [0, 1, 2])
    assert site.row(cleaning.request_id).state is not CompactionState.SUCCEEDED

    site.end(reader, site.admin.commit)
    cleaning = clean(site, table)
    assert (cleaning.state, cleaning.message) == (CleaningState.CLEANED, "3 deleted")
    assert site.row(cleaning.request_id).state is CompactionState.SUCCEEDED
    (base,) = table.directories()
    assert base.startswith("base_")
    assert table.values() == [0, 1, 2]


def test_a_reader_that_ends_soon_is_waited_for_and_later_ones_wait_behind_the_cleaning(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted_table(site)
    reader = site.reader(table)
    looks: list[bool] = []

    def look(transaction: CompactionTransaction) -> bool:
        if not looks:
            with pytest.raises(LockNotAcquiredError):
                site.reader(table)
            site.end(reader, site.admin.commit)
        looks.append(has_exclusive(transaction))
        return looks[-1]

    has_exclusive = CompactionTransaction.has_exclusive
    monkeypatch.setattr(CompactionTransaction, "has_exclusive", look)
    assert clean(site, table).state is CleaningState.CLEANED
    assert looks[-1]
    assert len(table.directories()) == 1


def taken_while_readers_wait(site: Site, table: AcidTable, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is taken from now on; whoever wants to read meanwhile gets no lock."""
    taken: list[str] = []

    def take_beside_a_reader(discard: Discard, names: tuple[str, ...], check: Callable[[], None]) -> None:
        with pytest.raises(LockNotAcquiredError):
            site.reader(table)
        taken.extend(names)
        take(discard, names, check)

    take = Discard.take
    monkeypatch.setattr(Discard, "take", take_beside_a_reader)
    return taken


def test_who_wants_to_read_while_directories_go_waits_until_they_are_gone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted_table(site)
    taken = taken_while_readers_wait(site, table, monkeypatch)
    assert clean(site, table).state is CleaningState.CLEANED
    assert len(taken) == 3
    assert len(table.directories()) == 1


def test_a_cleaner_that_dies_with_the_lock_is_followed_once_the_lock_is_taken_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted_table(site)
    before = {txn.id for txn in site.client.transactions()}

    class Death(BaseException):
        pass

    def die(discard: Discard, names: tuple[str, ...], check: Callable[[], None]) -> None:
        take(discard, names[:1], check)
        raise Death

    take = Discard.take
    with monkeypatch.context() as dying:
        dying.setattr(Discard, "take", die)
        dying.setattr(CompactionTransaction, "close", lambda transaction: None)
        dying.setattr(MomentaryLocks, "__exit__", lambda locks, *error: None)
        dying.setattr(Discard, "__exit__", lambda discard, *error: None)
        with pytest.raises(Death):
            clean(site, table)
    (dead,) = {txn.id for txn in site.client.transactions() if txn.state is TxnState.OPEN} - before
    assert clean(site, table).state is CleaningState.WAITING
    assert table.values() == [0, 1, 2]
    site.admin.abort(dead)
    assert clean(site, table).state is CleaningState.CLEANED
    assert len(table.directories()) == 1
    assert table.values() == [0, 1, 2]


def test_by_default_hive_4_waits_and_hive_3_deletes_beside_who_has_read_for_long(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted_table(site)
    site.reader(table)
    taken = taken_while_readers_wait(site, table, monkeypatch)
    state = clean(site, table).state
    assert state is (CleaningState.CLEANED if site.renames_publish else CleaningState.WAITING)
    assert len(taken) == (3 if site.renames_publish else 0)


def test_directories_may_go_beside_readers_where_a_site_wants_it_so(site: Site) -> None:
    table = compacted_table(site)
    site.clean_beside_readers()
    site.reader(table)
    assert clean(site, table).message == "3 deleted"
    assert len(table.directories()) == 1
