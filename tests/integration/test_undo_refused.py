"""What cannot be taken back is refused by name, and nothing is changed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.exceptions import RefusedError, StorageError
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.withdrawal import withdraw
from tests.integration.compaction_site import ON_BOTH_WITH_DATABASE, WITH_DATABASE, AcidTable, Site, due
from tests.integration.kept_tables import cleaned_now, compacted, undo, written
from tests.integration.test_twin_results import CopyingLocations


def was_cleaned(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    assert cleaned_now(site, table) == [CleaningState.CLEANED]


def was_compacted_without(site: Site, table: AcidTable) -> None:
    site.settings = replace(site.settings, keep_replaced_hours=0.0)
    compacted(site, table)


def was_never_compacted(site: Site, table: AcidTable) -> None:
    """Nor was it asked for."""


def is_a_pair(site: Site, table: AcidTable) -> None:
    site.settings = replace(site.settings, minor_pairs_on_hive_3=True)
    outcome = site.compact(due(table.entity(), type=CompactionType.MINOR))
    assert len(outcome.targets) == 2


def is_a_delete_delta(site: Site, table: AcidTable) -> None:
    site.settings = replace(site.settings, minor_pairs_on_hive_3=True)
    site.compact(table.entity())
    cleaned_now(site, table)
    for row in ((2, 0), (4, 0)):
        table.write().delete(row).commit()
    assert compacted(site, table, CompactionType.MINOR).startswith("delete_delta_")


def lost_a_directory(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    shutil.rmtree(table.folder() / "delta_0000002_0000002_0000")


def lost_a_file(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    (table.folder() / "delta_0000002_0000002_0000" / "bucket_00000").unlink()


def has_a_file_of_another_size(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    with (table.folder() / "delta_0000002_0000002_0000" / "bucket_00000").open("ab") as file:
        file.write(b"x")


def lost_half_to_a_cleaner_that_died(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    taken: list[str] = []
    move = LocalStorage.move

    def move_one(storage: LocalStorage, source: str, target: str) -> None:
        if taken:
            raise StorageError(source, "cannot be moved", "none")
        taken.append(source)
        move(storage, source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "move", move_one)
        assert cleaned_now(site, table) == [CleaningState.FAILED]
    assert taken


def was_overwritten(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    overwrite = table.write()
    table.write_file(f"base_{overwrite.id:07d}", [(0, overwrite.id, 1 << 29, 0, overwrite.id, (9,))])
    overwrite.commit()


def may_not_be_deleted_from(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    site.set_properties(table, {"no_cleanup": "true"})


def lies_where_nothing_is_renamed(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    site.settings = replace(site.settings, storages=CopyingLocations())


def changed_its_note(site: Site, table: AcidTable) -> None:
    compacted(site, table)
    (note,) = table.folder().glob("_acid_compaction_*/undo.json")
    note.write_text(re.sub(r"base_0000004(_v\d+)?", "base_0000004_v0000001", note.read_text()))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (was_cleaned, "replaced was deleted"),
        (was_compacted_without, "was compacted without keep_replaced_hours"),
        (was_never_compacted, "has no compaction on record"),
        (is_a_pair, "cannot be taken back by one rename"),
        (is_a_delete_delta, "holds deletes alone"),
        (lost_a_directory, "replaced delta_0000002_0000002_0000, delta_0000002_0000002_0000/bucket_00000 is gone"),
        (lost_a_file, "replaced delta_0000002_0000002_0000/bucket_00000 is gone"),
        (has_a_file_of_another_size, "replaced delta_0000002_0000002_0000/bucket_00000 is gone"),
        (lost_half_to_a_cleaner_that_died, "is gone"),
        (was_overwritten, "is replaced by what came after it"),
        (may_not_be_deleted_from, "has no_cleanup=true"),
        (lies_where_nothing_is_renamed, "lies on an object store"),
        (changed_its_note, "is not what compaction"),
    ],
)
@ON_BOTH_WITH_DATABASE
def test_what_cannot_be_taken_back_is_refused_by_name_and_stays_as_it_is(
    keeping: Site, made: Callable[[Site, AcidTable], None], words: str
) -> None:
    table = written(keeping)
    made(keeping, table)
    before, rows, states = table.fingerprint(), table.rows(), [row.state for row in keeping.rows(table.entity())]
    for what in (Undo.look, Undo.undo):
        with pytest.raises(RefusedError, match=re.escape(words)):
            what(Undo(keeping.client, keeping.queue, keeping.settings), table.entity())
    assert table.fingerprint() == before
    assert table.rows() == rows
    assert [row.state for row in keeping.rows(table.entity())] == states
    assert keeping.client.show_locks(table.entity()) == []


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
def test_where_hives_cleaner_cannot_be_kept_away_nothing_is_undone(keeping: Site) -> None:
    table = written(keeping)
    compacted(keeping, table)
    assert keeping.hive_database is None
    with pytest.raises(RefusedError, match="Hive's own Cleaner may be at work for compaction .* metastore_db_conn_id"):
        undo(keeping, table)


@WITH_DATABASE
def test_a_newer_request_is_waited_for(keeping: Site) -> None:
    table = written(keeping)
    result = compacted(keeping, table)
    table.insert(6)
    request = keeping.client.compact(table.entity(), CompactionType.MAJOR, pool="nobody")
    assert request.accepted, request
    with pytest.raises(RefusedError, match="is newer, and has not ended"):
        undo(keeping, table)
    withdraw(keeping.client, [request.id])
    assert undo(keeping, table).removed == result


@WITH_DATABASE
def test_a_request_that_comes_while_an_undo_has_the_lock_ends_it_before_it_takes_anything(
    keeping: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of Hive's are to be cleaned as soon as they are there, which waits for no lock."""
    table = written(keeping)
    rows, result = table.rows(), compacted(keeping, table)
    refuse, asked = type(keeping.queue).refuse, list[int]()

    def refuse_and_ask(queue: CompactionQueue, row: CompactionRow, message: str) -> None:
        refuse(queue, row, message)
        asked.append(keeping.client.compact(table.entity(), CompactionType.MAJOR, pool="nobody").id)

    with monkeypatch.context() as patch:
        patch.setattr(type(keeping.queue), "refuse", refuse_and_ask)
        with pytest.raises(RefusedError, match="is there, too, and Hive may clean for it"):
            undo(keeping, table)
    assert result in table.visible()
    assert table.rows() == rows
    withdraw(keeping.client, asked)
    assert undo(keeping, table).removed == result
    assert table.rows() == rows
