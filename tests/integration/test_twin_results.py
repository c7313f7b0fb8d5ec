"""Two committed results of one range of write ids: told which is whole, and on demand one of them is removed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.report import StuckKind
from airflow_provider_acid.compaction.housekeep.twin_results import TwinResults
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.integration.compaction_site import Site, due
from tests.integration.insert_only_tables import InsertOnly
from tests.integration.twin_tables import (
    REPAIRED,
    REPORTED,
    VALUES,
    Twins,
    compacted,
    copy_as,
    events_of,
    make_twins,
    removed,
    results,
    rewrite,
    second_txn,
    stuck,
    sweep,
)
from tests.unit.compaction.copying_storage import CopyingStorages


@pytest.fixture
def twins(site: Site) -> Twins:
    """Whose rows readers get twice."""
    found = make_twins(site)
    with pytest.raises(AssertionError, match="a row id occurs twice"):
        found.read()
    return found


def test_a_dry_run_tells_which_would_go_and_changes_nothing(twins: Twins) -> None:
    before = twins.table.fingerprint()
    report = sweep(twins.table.site, REPORTED)
    assert twins.table.fingerprint() == before
    assert report.deeds == ()
    assert [item.message for item in stuck(report)] == [
        f"all 6 of {twins.result(twins.older)} are in {twins.result(twins.newer)}; "
        f"with repair_twins {twins.result(twins.older)} would be removed"
    ]
    assert twins.table.site.client.show_locks(twins.table.entity()) == []


def test_of_equal_ones_the_newer_transactions_stays_and_rows_come_once(twins: Twins) -> None:
    site = twins.table.site
    report = sweep(site, REPAIRED)
    assert removed(report) == [twins.result(twins.older)]
    assert stuck(report) == []
    assert twins.read() == VALUES
    assert twins.table.directories() == twins.kept(twins.newer)
    assert site.client.show_locks(twins.table.entity()) == []
    assert removed(sweep(site, REPAIRED)) == []
    assert site.compact(twins.table.entity()).state is OutcomeState.COMPACTED
    assert twins.read() == VALUES


def cut_row(folder: Path) -> None:
    (file,) = folder.glob("bucket_*")
    rewrite(folder, events_of(file)[1:])


def cut_file(folder: Path) -> None:
    (file,) = folder.glob("bucket_*")
    file.unlink()


@pytest.mark.parametrize("cut", [cut_row, cut_file])
@pytest.mark.parametrize("which", ["older", "newer"])
@pytest.mark.parametrize("kind", ["delta", "delete_delta"])
def test_a_part_goes_and_the_whole_one_stays(twins: Twins, cut: Callable[[Path], None], which: str, kind: str) -> None:
    part = getattr(twins, which)
    cut(twins.folder(part, kind))
    report = sweep(twins.table.site, REPAIRED)
    assert removed(report) == [twins.result(part)]
    assert twins.table.directories() == twins.kept(twins.older if part == twins.newer else twins.newer)
    assert stuck(report) == []
    assert twins.read() == VALUES


def change_a_value(folder: Path) -> None:
    (file,) = folder.glob("bucket_*")
    *events, last = events_of(file)
    rewrite(folder, [*events, (*last[:5], (99,))])


def add_a_row_and_lose_one(folder: Path) -> None:
    (file,) = folder.glob("bucket_*")
    first, *events = events_of(file)
    rewrite(folder, [*events, (*events[-1][:3], 7, events[-1][4], (99,))])


def damage(folder: Path) -> None:
    (file,) = folder.glob("bucket_*")
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_a_value, "differ in row"),
        (add_a_row_and_lose_one, "each hold what the other lacks"),
        (damage, "Remedy: restore the file"),
    ],
)
def test_where_nothing_proves_which_is_whole_both_stay(
    twins: Twins, change: Callable[[Path], None], words: str
) -> None:
    change(twins.folder(twins.newer))
    before = twins.table.fingerprint()
    report = sweep(twins.table.site, REPAIRED)
    assert twins.table.fingerprint() == before
    (item,) = stuck(report)
    assert item.kind is StuckKind.TWINS
    assert twins.name(twins.older) in item.message
    assert twins.name(twins.newer) in item.message
    assert words in item.message


def test_three_results_of_one_range_stay(twins: Twins) -> None:
    site = twins.table.site
    copy_as(twins.table, twins.name(twins.older), second_txn(site))
    before = twins.table.fingerprint()
    report = sweep(site, REPAIRED)
    assert "are more than two results of one range" in stuck(report)[0].message
    assert twins.table.fingerprint() == before


@pytest.mark.parametrize("state", ["open", "aborted"])
def test_a_result_whose_transaction_is_not_committed_is_no_twin(site: Site, state: str) -> None:
    table = compacted(site)
    made = results(table)
    txn = second_txn(site, site.client.abort if state == "aborted" else site.open_txns.add)
    for name in made:
        copy_as(table, name, txn)
    before = table.fingerprint()
    report = sweep(site, REPAIRED)
    assert (removed(report), stuck(report)) == ([], [])
    assert table.fingerprint() == before


def test_what_a_newer_base_replaced_is_left_to_the_cleaner(twins: Twins) -> None:
    site = twins.table.site
    assert removed(sweep(site, REPAIRED))
    assert site.compact(twins.table.entity()).state is OutcomeState.COMPACTED
    copy_as(twins.table, twins.name(twins.newer), twins.older)
    before = twins.table.fingerprint()
    assert stuck(sweep(site, REPAIRED)) == []
    assert twins.table.fingerprint() == before


def test_who_began_before_is_waited_for_even_without_a_lock(twins: Twins) -> None:
    """Of the one that stays he may know nothing."""
    site = twins.table.site
    (reader,) = site.admin.open_transactions()
    site.open_txns.add(reader)
    before = twins.table.fingerprint()
    report = sweep(site, REPAIRED)
    assert twins.table.fingerprint() == before
    (item,) = stuck(report)
    assert f"waits for transaction {reader} of" in item.message
    site.end(reader, site.admin.commit)
    assert removed(sweep(site, REPAIRED)) == [twins.result(twins.older)]
    assert twins.read() == VALUES


def test_who_reads_with_a_lock_is_waited_for(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    site = twins.table.site
    readers: list[int] = []
    wait = TwinResults._wait_for_older

    def begin_meanwhile(*arguments: object) -> str | None:
        if not readers:
            readers.append(site.reader(twins.table))
        return wait(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TwinResults, "_wait_for_older", begin_meanwhile)
    before = twins.table.fingerprint()
    report = sweep(site, REPAIRED)
    assert twins.table.fingerprint() == before
    assert "waits for the EXCLUSIVE lock (held by" in stuck(report)[0].message
    site.end(readers[0], site.admin.commit)
    assert removed(sweep(site, REPAIRED)) == [twins.result(twins.older)]


def test_where_the_older_one_is_whole_a_request_that_waits_to_be_cleaned_is_waited_for(site: Site) -> None:
    """Hive 4.2's Cleaner takes the older one for obsolete, and asks for no lock."""
    twins = make_twins(site, clean=False)
    cut_row(twins.folder(twins.newer))
    report = sweep(site, REPAIRED)
    assert removed(report) == []
    assert "which is ready for cleaning: Hive's Cleaner may delete the older one" in stuck(report)[0].message
    assert [cleaning.state for cleaning in site.clean(twins.table.entity())] == [CleaningState.CLEANED]
    assert removed(sweep(site, REPAIRED)) == [twins.result(twins.newer)]
    assert twins.read() == VALUES


def test_where_the_older_one_is_whole_nothing_goes_while_aborted_writes_wait_to_be_cleaned(twins: Twins) -> None:
    twins.table.write().insert(9).abort()
    cut_row(twins.folder(twins.newer))
    report = sweep(twins.table.site, REPAIRED)
    assert removed(report) == []
    assert "waits for the cleaning of the aborted write ids 5" in stuck(report)[0].message
    assert twins.folder(twins.newer).exists()


def test_what_changed_since_it_was_read_stays(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = TwinResults._wait_for_older

    def lose_a_file_meanwhile(*arguments: object) -> str | None:
        cut_file(twins.folder(twins.newer, "delete_delta"))
        monkeypatch.setattr(TwinResults, "_wait_for_older", wait)
        return wait(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TwinResults, "_wait_for_older", lose_a_file_meanwhile)
    report = sweep(twins.table.site, REPAIRED)
    assert "are not what they were when their rows were compared" in stuck(report)[0].message
    assert twins.folder(twins.older, "delete_delta").exists()
    assert removed(sweep(twins.table.site, REPAIRED)) == [twins.result(twins.newer)]
    assert twins.read() == VALUES


def die(storage: LocalStorage, first: object, *others: object) -> None:
    """At the first call that is about something."""
    if first:
        os.kill(os.getpid(), signal.SIGKILL)


def sweep_until_killed(site: Site, deadly: str) -> None:
    """A repair in a process of its own, which is killed when it is about to rename, or to delete."""

    def run() -> None:
        setattr(LocalStorage, deadly, die)
        with AcidMetastoreClient([MetastoreAddress(site.server.host, site.server.port)], user="tester") as client:
            sweep(site, REPAIRED, client)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(("deadly", "gone"), [("publish", False), ("delete", True)], ids=["before", "after"])
def test_killed_around_the_rename_the_next_round_goes_on(twins: Twins, deadly: str, gone: bool) -> None:
    site = twins.table.site
    first = twins.name(twins.older)
    sweep_until_killed(site, deadly)
    assert (first in twins.table.directories()) is not gone
    left_over = [name for name in twins.table.directories() if name.startswith(REMOVED_PREFIX)]
    assert len(left_over) == int(gone)
    assert len(site.client.open_transactions().open) == 1, "the dead one's, with its lock"
    report = sweep(site, REPAIRED)
    assert removed(report) == [twins.name(twins.older, "delete_delta") if gone else twins.result(twins.older)]
    assert stuck(report) == []
    assert twins.table.directories() == twins.kept(twins.newer)
    assert twins.read() == VALUES


class CopyingLocations(CopyingStorages):
    """By their URIs."""

    def open(self, location: str) -> Storage:
        return super().open(location.removeprefix("file:"))


def test_where_there_are_no_renames_a_removal_that_was_cut_off_is_finished(twins: Twins) -> None:
    site = twins.table.site
    site.settings = replace(site.settings, storages=CopyingLocations())
    cut_file(twins.folder(twins.older))
    assert [file.name for file in twins.folder(twins.older).iterdir()] == ["_orc_acid_version"]
    assert twins.read() == VALUES
    report = sweep(site, REPAIRED)
    assert removed(report) == [twins.result(twins.older)]
    assert not list(twins.folder(twins.older).glob("*"))
    assert twins.read() == VALUES


def test_a_table_whose_files_have_to_stay_keeps_both(twins: Twins) -> None:
    site = twins.table.site
    site.set_properties(twins.table, {"no_cleanup": "true"})
    before = twins.table.fingerprint()
    report = sweep(site, REPAIRED)
    assert twins.table.fingerprint() == before
    assert "has no_cleanup=true" in stuck(report)[0].message


def insert_only_twins(site: Site) -> tuple[InsertOnly, list[str]]:
    made = InsertOnly(site)
    for value in (1, 2):
        made.write(value).commit()
    outcome = site.compact(due(made.table.entity(), type=CompactionType.MINOR))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    (name,) = outcome.targets
    newer = second_txn(site)
    copy_as(made.table, name, newer)
    return made, [name, f"{name.partition('_v')[0]}_v{newer:07d}"]


def test_of_an_insert_only_table_equal_files_prove_it(site: Site) -> None:
    made, names = insert_only_twins(site)
    assert removed(sweep(site, REPAIRED)) == names[:1]
    assert names[1] in made.table.directories()
    assert names[0] not in made.table.directories()


def test_of_an_insert_only_table_other_bytes_prove_nothing(site: Site) -> None:
    made, names = insert_only_twins(site)
    (file,) = (made.table.folder() / names[1]).glob("0*")
    file.write_bytes(b"2\n1\n")
    before = made.table.fingerprint()
    report = sweep(site, REPAIRED)
    assert made.table.fingerprint() == before
    assert "and hold rows without ids" in stuck(report)[0].message


def test_where_there_are_none_each_partition_is_listed_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    table = compacted(site, clean=False)
    listed: list[str] = []
    list_all = LocalStorage.list

    def counted(self: LocalStorage, path: str = "") -> object:
        if self.location.rstrip("/").endswith(table.name):
            listed.append(path)
        return list_all(self, path)

    monkeypatch.setattr(LocalStorage, "list", counted)
    assert stuck(sweep(site, REPORTED)) == []
    assert listed == [""]
