"""The Cleaner where the rename publishes: it deletes by the compaction's own list, and no aborted row comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.compaction.clean import deletion
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.metastore.queue import KEEP_SECONDS
from airflow_provider_acid.metastore.values import LockInfo, LockState
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.hive_3_cleaning_site import (
    INPUTS,
    NOW_MS,
    POOL,
    STAGING,
    TABLE,
    CleaningLock,
    FakeQueue,
    Site,
)


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> CleaningLock:
    lock = CleaningLock()
    monkeypatch.setattr(deletion, "CompactionTransaction", lock.transaction)
    return lock


@pytest.fixture
def site(tmp_path: Path, lock: CleaningLock) -> Site:
    return Site(tmp_path / "t", lock)


def test_directories_go_under_the_exclusive_lock_and_what_they_hold_after_it(site: Site, lock: CleaningLock) -> None:
    site.clean()
    assert lock.seen == [("asked", 3, 0), ("held", 3, 0), ("given back", 0, 3)]


def test_where_somebody_reads_all_the_time_nothing_is_deleted_and_the_row_waits(site: Site, lock: CleaningLock) -> None:
    site.settings = CompactionSettings(
        cleaner_lock_wait_seconds=0.1, cleaner_lock_timeout_action=CleaningLockAction.WAIT
    )
    lock.is_granted = False
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.WAITING, ())
    assert cleaning.message == "waits for the EXCLUSIVE lock (held by eve)"
    assert site.names() == {*INPUTS, "base_0000003", STAGING}
    assert lock.seen[-1] == ("withdrawn", 3, 0)
    assert (site.queue.forgotten, site.queue.waiting) == ([], [site.row])


def test_while_somebody_has_an_exclusive_lock_there_nothing_is_deleted(site: Site, lock: CleaningLock) -> None:
    lock.refusal = "its shared read lock was not granted within 30 s"
    cleaning = site.clean()
    assert (cleaning.state, cleaning.message) == (CleaningState.WAITING, f"waits for {lock.refusal}")
    assert site.names() == {*INPUTS, "base_0000003", STAGING}


@pytest.mark.parametrize("action", [CleaningLockAction.DELETE, CleaningLockAction.BY_VERSION])
def test_beside_who_has_read_for_long_it_deletes_while_the_lock_is_asked_for(
    site: Site, lock: CleaningLock, action: CleaningLockAction
) -> None:
    site.settings = CompactionSettings(cleaner_lock_wait_seconds=0.1, cleaner_lock_timeout_action=action)
    lock.is_granted = False
    assert site.clean().message == "3 deleted"
    assert lock.seen == [("asked", 3, 0), ("given back", 0, 3)]
    assert site.names() == {"base_0000003"}


def test_of_several_requests_of_a_partition_one_alone_waits_for_the_lock(site: Site, lock: CleaningLock) -> None:
    site.settings = CompactionSettings(
        cleaner_lock_wait_seconds=0.1, cleaner_lock_timeout_action=CleaningLockAction.WAIT
    )
    lock.is_granted = False
    site.queue.waiting = [site.row, replace(site.row, id=8)]
    cleaner = site.cleaner()
    for run in (1, 2):
        assert [item.state for item in cleaner.clean([site.row.entity])] == [CleaningState.WAITING] * 2
        assert [what for what, *_ in lock.seen].count("asked") == run


@pytest.mark.parametrize("action", CleaningLockAction)
def test_once_the_lock_is_lost_nothing_more_is_deleted(
    site: Site, lock: CleaningLock, action: CleaningLockAction
) -> None:
    site.settings = CompactionSettings(cleaner_lock_timeout_action=action)
    lock.checks_until_lost = 1
    cleaning = site.clean()
    assert (cleaning.state, cleaning.message) == (CleaningState.WAITING, "is looked at again, for was aborted")
    assert site.names() == {*INPUTS[1:], "base_0000003", STAGING}
    lock.checks_until_lost = None
    assert site.clean().state is CleaningState.CLEANED
    assert site.names() == {"base_0000003"}


def test_a_lock_that_is_lost_after_the_last_directory_went_has_served(site: Site, lock: CleaningLock) -> None:
    lock.is_lost_at_commit = True
    assert site.clean().state is CleaningState.CLEANED


def test_a_claim_that_waits_for_the_lock_is_kept(site: Site, lock: CleaningLock) -> None:
    site.queue.waiting = [replace(site.row, start_ms=NOW_MS - int(KEEP_SECONDS * 1000))]
    lock.refusal = "somebody drops it"
    site.clean()
    assert site.queue.kept == [site.row.id]


def test_files_go_first_then_the_row_then_the_list(site: Site) -> None:
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted, cleaning.message) == (CleaningState.CLEANED, INPUTS, "3 deleted")
    assert site.queue.forgotten == [3]
    assert site.queue.there == [{"base_0000003", STAGING}]
    assert site.names() == {"base_0000003"}


@pytest.mark.parametrize("gone", [(), INPUTS, (*INPUTS, "base_0000003")], ids=["nothing", "the inputs", "all"])
def test_no_power_cut_brings_anything_back_that_the_metastore_has_forgotten(
    site: Site, gone: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what another cleaner took away, who died or is not that far."""
    site.remove(*gone)
    if len(gone) > len(INPUTS):
        site.add_base("base_0000005")
    flush = LocalStorage.flush
    flushed: list[tuple[set[str], list[int | None]]] = []

    def note(storage: LocalStorage) -> None:
        flushed.append((site.names() & {*INPUTS}, list(site.queue.forgotten)))
        flush(storage)

    monkeypatch.setattr(LocalStorage, "flush", note)
    assert site.clean().state is CleaningState.CLEANED
    assert flushed == [(set(), [])]
    assert site.queue.forgotten == [3]


def test_a_later_compactions_result_does_not_count_in_an_earlier_ones_cleaning(site: Site) -> None:
    """Seed 1035 of the histories: what the later one merged is still read by who began between the two."""
    site.row = replace(site.row, highest_write_id=6)
    site.queue.waiting = [site.row]
    later = ("delta_0000004_0000004_0000", "delta_0000005_0000005_0000")
    site.add(*later, "delta_0000004_0000005")
    cleaning = site.clean()
    assert cleaning.deleted == INPUTS
    assert site.names() == {"base_0000003", *later, "delta_0000004_0000005"}
    assert cleaning.state is CleaningState.CLEANED, "the row must not hold up the partition's next request"


def test_what_was_replaced_but_is_read_again_stays(site: Site) -> None:
    site.remove("base_0000003")
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert site.names() == set(INPUTS)


def test_wholly_aborted_directories_of_the_list_go_and_are_forgotten(site: Site) -> None:
    aborted = "delta_0000002_0000002_0000"
    site.client.aborted_write_ids = frozenset({2})
    site.note([aborted])
    site.remove(INPUTS[0], INPUTS[2])
    cleaning = site.clean()
    assert (cleaning.deleted, site.queue.forgotten) == ((aborted,), [3])


@pytest.mark.parametrize(
    ("aborted", "open_write_ids", "remaining", "forgotten"),
    [
        ({2}, {4, 5}, "delta_0000001_0000005", 1),
        ({1}, {4, 5}, "delta_0000001_0000005", None),
        ({1, 3}, {4, 5}, "delta_0000002_0000005", 2),
        ({2, 3}, set(), "delta_0000003_0000003_0001", 2),
        ({2}, set(), "delete_delta_0000001_0000003", 1),
        ({2}, set(), "base_0000002", 1),
        ({7}, set(), "delta_0000007_0000007_0000", 3),
    ],
    ids=[
        "in a streamed delta with open ones",
        "the first",
        "one of two",
        "in an obsolete directory of another's",
        "in an obsolete delete delta",
        "in an obsolete overwrite",
        "above the compaction's",
    ],
)
def test_an_aborted_write_id_in_whatever_stays_is_not_forgotten(
    site: Site, aborted: set[int], open_write_ids: set[int], remaining: str, forgotten: int | None
) -> None:
    site.client.aborted_write_ids = frozenset(aborted)
    site.client.open_write_ids = frozenset(open_write_ids)
    site.add(remaining)
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [forgotten]
    assert remaining in site.names()


def test_a_compacted_base_holds_no_aborted_row(site: Site) -> None:
    site.client.aborted_write_ids = frozenset({3})
    site.clean()
    assert site.queue.forgotten == [3]


def test_a_later_overwrite_does_not_count(site: Site) -> None:
    """Readers of snapshots below its write id still need what it will replace for others."""
    site.remove("base_0000003")
    site.add("base_0000005")
    assert site.clean().deleted == ()
    assert set(INPUTS) < site.names()


def test_a_row_of_which_a_later_compaction_left_nothing_is_completed(site: Site) -> None:
    site.remove(*INPUTS, "base_0000003")
    site.add_base("base_0000005")
    site.client.aborted_write_ids = frozenset({2})
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert site.queue.forgotten == [3]
    assert site.names() == {"base_0000005"}


@pytest.mark.parametrize("remaining", [INPUTS[0], "000000_0"])
def test_beside_a_newer_base_whatever_else_is_left_keeps_the_row(site: Site, remaining: str) -> None:
    site.remove(*(name for name in (*INPUTS, "base_0000003") if name != remaining))
    site.add_base("base_0000005")
    if remaining == "000000_0":
        (site.folder / remaining).write_bytes(b"ORC")
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.FAILED, ())
    assert "is newer than what this snapshot may see" in cleaning.message
    assert {remaining, STAGING} < site.names()


def test_a_cleaner_that_is_overtaken_by_another_and_a_newer_compaction_says_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(names: Sequence[str], txns: str) -> list[TableWriteIds]:
        site.queue.waiting.clear()
        site.remove("base_0000003")
        site.add_base("base_0000005")
        return [TableWriteIds(names[0], 9, frozenset(), frozenset())]

    monkeypatch.setattr(site.client, "valid_write_ids", overtaken)
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert cleaning.message == "nothing left to clean: its request has ended"
    assert site.names() == {*INPUTS, "base_0000005"}


@pytest.mark.parametrize("gone", ["replaced.json", None], ids=["the list", "the staging directory"])
def test_without_the_list_nothing_is_deleted_or_forgotten(site: Site, gone: str | None) -> None:
    (site.folder / STAGING / "replaced.json").unlink()
    if gone is None:
        (site.folder / STAGING).rmdir()
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert cleaning.message == (
        "0 deleted; what the compaction replaced is not on record, so that it stays until the next one"
    )
    assert site.queue.forgotten == [None]
    assert site.names() == {*INPUTS, "base_0000003"}


def test_the_list_of_another_attempt_is_not_taken(site: Site) -> None:
    other = staging_name("fedcba9876543210")
    (site.folder / STAGING).rename(site.folder / other)
    assert site.clean().deleted == ()
    assert site.names() == {*INPUTS, "base_0000003", other}


def test_a_request_of_somebody_else_is_known_by_its_worker(site: Site) -> None:
    site.queue.waiting = [replace(site.row, pool="somebodys", worker_id=f"{POOL}@here")]
    assert site.clean().deleted == INPUTS


def test_of_a_dropped_table_everything_but_its_row_stays_as_it_is(site: Site) -> None:
    site.client.is_dropped = True
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [None]


def test_a_compaction_whose_transaction_ended_badly_after_its_rename_is_cleaned_like_any(site: Site) -> None:
    site.client.aborted = (19,)
    site.client.transaction_host = f"{POOL}@here"
    assert site.clean().deleted == INPUTS
    assert site.names() == {"base_0000003"}


@pytest.mark.parametrize("step", [Step.CLEANING_DECIDED, Step.FILES_DELETED])
def test_a_cleaning_that_dies_is_repeated(site: Site, step: Step) -> None:
    class Death(BaseException):
        pass

    def die(now: Step, entity: Entity) -> None:
        if now is step:
            raise Death

    with pytest.raises(Death):
        site.clean(die)
    assert site.queue.forgotten == []
    assert STAGING in site.names()
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [3]
    assert site.names() == {"base_0000003"}


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (MetastoreUnavailableError("metastore", "does not answer", "try again"), CleaningState.FAILED),
        (OwnershipLostError("compaction 7", "was taken back", "none"), CleaningState.FAILED),
        (MetastoreError("metastore", "is out of order", "none"), CleaningState.KEPT),
    ],
)
def test_a_row_that_does_not_become_history_keeps_its_list(site: Site, error: Exception, state: CleaningState) -> None:
    site.queue.error = error
    assert site.clean().state is state
    assert site.names() == {"base_0000003", STAGING}
    site.queue.error = None
    assert site.clean().state is CleaningState.CLEANED


def test_nothing_is_deleted_where_the_table_forbids_it(site: Site) -> None:
    site.client.parameters["no_cleanup"] = "true"
    assert site.clean().state is CleaningState.FAILED
    assert site.names() == {*INPUTS, "base_0000003", STAGING}
    assert site.queue.forgotten == []


def test_while_it_waits_nothing_is_deleted(site: Site) -> None:
    site.client.open = (20,)
    for found in (site.clean(), site.look()):
        assert (found.state, found.message) == (
            CleaningState.WAITING,
            "waits for transaction 20 of eve@there, open for 0 s",
        )
    assert site.names() == {*INPUTS, "base_0000003", STAGING}
    assert site.queue.kept == []


def test_a_reader_with_a_lock_and_no_transaction_is_waited_for(site: Site) -> None:
    reader = LockInfo(1, "d", TABLE, LockState.ACQUIRED, "SHARED_READ", None, "eve", "there", NOW_MS, NOW_MS, None)
    site.client.locks = [reader]
    site.queue.waiting = [replace(site.row, newest_lock_id=reader.lock_id)]
    assert site.clean().state is CleaningState.WAITING
    assert set(INPUTS) < site.names()


def test_a_reader_whose_transaction_was_just_being_opened_is_waited_for(site: Site) -> None:
    site.client.is_opening = True
    site.client.open = (20,)
    assert site.clean().state is CleaningState.WAITING
    assert set(INPUTS) < site.names()


@pytest.mark.parametrize(("age_seconds", "kept"), [(None, 2), (KEEP_SECONDS, 2), (KEEP_SECONDS - 1, 0)])
def test_a_claim_that_waits_is_refreshed_when_it_gets_old(site: Site, age_seconds: float | None, kept: int) -> None:
    start_ms = None if age_seconds is None else NOW_MS - int(age_seconds * 1000)
    site.queue.waiting = [replace(site.row, start_ms=start_ms)]
    site.client.open = (20,)
    site.clean()
    site.look()
    assert len(site.queue.kept) == kept


def test_a_claim_that_need_not_wait_is_not_refreshed(site: Site) -> None:
    site.queue.waiting = [replace(site.row, start_ms=None)]
    assert site.look().state is CleaningState.READY
    site.clean()
    assert site.queue.kept == []


def test_where_rows_that_wait_are_no_claims_none_is_refreshed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeQueue, "hive", HIVE_4)
    site.queue.waiting = [replace(site.row, start_ms=None)]
    site.client.open = (20,)
    assert site.look().state is CleaningState.WAITING
    assert site.queue.kept == []


def test_a_claim_that_was_taken_back_meanwhile_is_no_error(site: Site) -> None:
    site.queue.waiting = [replace(site.row, start_ms=None)]
    site.client.open = (20,)
    site.queue.error = OwnershipLostError("compaction 7", "was taken back", "none")
    assert site.look().state is CleaningState.WAITING
