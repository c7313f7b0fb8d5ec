"""A compaction is taken back as long as what it replaced is kept: all readers read that again, by the same ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.operators.undo import AcidUndoOperator
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.airflow_connections import connections_to
from tests.integration.compaction_site import ON_BOTH_WITH_DATABASE, WITH_DATABASE, AcidTable, Site, Write, due
from tests.integration.hive_3_cleaning import let_hives_housekeeping_run, recorded_aborts
from tests.integration.insert_only_tables import InsertOnly, orc_file
from tests.integration.kept_tables import VALUES, cleaned_now, compacted, is_read_by_all, undo, written


@ON_BOTH_WITH_DATABASE
def test_readers_read_the_same_rows_with_the_same_ids_before_and_after(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    before, rows = table.visible(), table.rows()
    assert sorted(rows.values()) == VALUES
    result = compacted(site, table)
    (kept,) = site.clean(table.entity())
    assert (kept.state, kept.deleted) == (CleaningState.KEPT, ())
    assert kept.message == "what it replaced is kept for 48.0 h more, for an undo (keep_replaced_hours)"
    assert table.visible() == sorted([result, *before])
    assert is_read_by_all(table, rows)

    undone = undo(site, table)
    assert (undone.removed, sorted(undone.restored)) == (result, before)
    assert table.directories() == before, "nothing else is left"
    assert is_read_by_all(table, rows)
    assert site.client.show_locks(table.entity()) == []
    assert site.row(undone.request_id).state is CompactionState.REFUSED
    assert undo(site, table).removed == "", "another try finds it done"

    again = compacted(site, table)
    assert cleaned_now(site, table) == [CleaningState.CLEANED]
    assert table.directories() == [again]
    assert is_read_by_all(table, rows)


@ON_BOTH_WITH_DATABASE
def test_what_was_deleted_by_its_id_after_the_compaction_stays_deleted(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    result = compacted(site, table)
    key = next(key for key, value in table.rows().items() if value == 4)
    table.write().delete(key).commit()
    table.insert(6)
    rows = table.rows()
    assert sorted(rows.values()) == [2, 3, 5, 6]
    assert undo(site, table).removed == result
    assert is_read_by_all(table, rows)


@ON_BOTH_WITH_DATABASE
def test_who_writes_is_waited_for_and_what_he_wrote_by_the_result_holds(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    compacted(site, table)
    writer = table.write()
    with pytest.raises(RefusedError, match="waits for the EXCLUSIVE lock"):
        undo(site, table)
    writer.delete((2, 0)).commit()
    rows = table.rows()
    undo(site, table)
    assert is_read_by_all(table, rows)
    assert sorted(rows.values()) == [2, 4, 5]


def by_rename_of_one_delta(site: Site) -> tuple[AcidTable, CompactionType]:
    table = site.table()
    for value in VALUES:
        table.insert(value)
    return table, CompactionType.MINOR


def with_a_base(site: Site) -> tuple[AcidTable, CompactionType]:
    table = written(site)
    compacted(site, table)
    assert cleaned_now(site, table) == [CleaningState.CLEANED]
    table.insert(6)
    return table, CompactionType.MAJOR


def with_files_from_before(site: Site) -> tuple[AcidTable, CompactionType]:
    table = written(site)
    (table.folder() / "000000_0").write_bytes(orc_file([7, 8]))
    return table, CompactionType.MAJOR


@pytest.mark.parametrize("made", [by_rename_of_one_delta, with_a_base, with_files_from_before])
@ON_BOTH_WITH_DATABASE
def test_whatever_it_was_made_of_is_read_again(
    keeping: Site, made: Callable[[Site], tuple[AcidTable, CompactionType]]
) -> None:
    table, type = made(keeping)
    before, rows = table.fingerprint(), table.rows()
    result = compacted(keeping, table, type)
    assert is_read_by_all(table, rows)
    assert undo(keeping, table).removed == result
    assert table.fingerprint() == before
    assert is_read_by_all(table, rows)


@WITH_DATABASE
def test_a_minor_of_an_insert_only_table_is_taken_back(keeping: Site) -> None:
    made = InsertOnly(keeping)
    for value in (1, 2):
        made.write(value).commit()
    before, values = made.table.visible(), made.values()
    result = compacted(keeping, made.table, CompactionType.MINOR)
    assert undo(keeping, made.table).removed == result
    assert made.table.visible() == before
    assert made.values() == values


# --- what is compacted on top


@WITH_DATABASE
def test_of_two_compactions_the_newer_is_taken_back_and_the_older_stays(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    older = compacted(site, table)
    table.insert(6)
    rows = table.rows()
    newer = compacted(site, table)
    assert is_read_by_all(table, rows)
    undone = undo(site, table)
    assert undone.removed == newer
    assert older in undone.restored
    assert is_read_by_all(table, rows)
    before = table.fingerprint()
    assert undo(site, table).removed == ""
    assert table.fingerprint() == before
    assert cleaned_now(site, table) == [CleaningState.CLEANED]
    assert is_read_by_all(table, rows)
    assert table.visible() == sorted([older, "delta_0000005_0000005_0000"])


@WITH_DATABASE
def test_a_compaction_on_top_that_came_to_nothing_leaves_the_undo_as_it_was(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    before = table.visible()
    result = compacted(site, table)
    table.insert(6)
    rows = table.rows()
    worker = site.worker()
    active = worker.begin(due(table.entity()))
    assert isinstance(active, ActiveCompaction), active
    worker.abandon(active, "test")
    assert undo(site, table).removed == result
    assert table.directories() == sorted([*before, "delta_0000005_0000005_0000"])
    assert is_read_by_all(table, rows)


@ON_BOTH_WITH_DATABASE
def test_what_is_due_again_is_compacted_though_more_is_kept_and_cleaned_once_its_time_is_over(keeping: Site) -> None:
    site = keeping
    table, _ = with_a_base(site)
    compacted(site, table)
    assert site.evaluate().due == (), "what is kept, a base too, makes nothing due"
    for value in (7, 8):
        table.insert(value)
    rows = table.rows()
    (again,) = site.evaluate().due
    outcome = site.compact(again)
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert is_read_by_all(table, rows)
    assert {cleaning.state for cleaning in site.clean(table.entity())} == {CleaningState.KEPT}
    assert CleaningState.CLEANED in cleaned_now(site, table)
    assert is_read_by_all(table, rows)


@ON_BOTH_WITH_DATABASE
def test_what_a_user_asked_for_is_taken_back_too(keeping: Site) -> None:
    """On Hive 4 the row of his request does not tell whose staging directory is its own."""
    site, table = keeping, written(keeping)
    before, rows = table.visible(), table.rows()
    answer = site.client.compact(table.entity(), CompactionType.MAJOR)
    outcome = site.compact(due(table.entity(), answer.id))
    assert (outcome.state, outcome.request_id) == (OutcomeState.COMPACTED, answer.id)
    keep_house(site)
    assert undo(site, table).removed == outcome.targets[0]
    assert table.directories() == before
    assert is_read_by_all(table, rows)


def keep_house(site: Site) -> tuple[Entity, ...]:
    """What it hands on to be cleaned."""
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    return keeper.sweep(TableSelection.of([f"{site.database}.*"])).to_clean


@ON_BOTH_WITH_DATABASE
def test_the_housekeeping_keeps_what_an_undo_needs_and_hands_it_on_when_its_time_is_over(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    result = compacted(site, table)
    assert keep_house(site) == ()
    kept, site.settings = site.settings, replace(site.settings, keep_replaced_hours=1e-9)
    assert keep_house(site) == (table.entity(),)
    site.settings = kept
    assert undo(site, table).removed == result


@ON_BOTH_WITH_DATABASE
def test_the_operator_shows_it_in_a_dry_run_does_it_and_fails_at_once_where_it_is_refused(
    keeping: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, table = keeping, written(keeping)
    for name, text in connections_to(site.server).items():
        monkeypatch.setenv(name, text)
    operator = partial(AcidUndoOperator, task_id="undo", database=site.database, table=table.name)
    with pytest.raises(AirflowFailException, match="has no compaction on record"):
        operator().execute({})
    result, rows, before = compacted(site, table), table.rows(), table.fingerprint()
    with pytest.raises(AirflowSkipException, match=f"Dry run: {table.entity()}: {result} of request"):
        operator(decide_only="True").execute({})
    assert table.fingerprint() == before
    done = operator().execute({})
    assert (done["removed"], done["restored"]) == (result, 4)
    assert result not in table.directories()
    assert is_read_by_all(table, rows)


@ON_BOTH_WITH_DATABASE
def test_a_look_tells_what_would_be_done_and_changes_nothing(keeping: Site) -> None:
    table = written(keeping)
    result = compacted(keeping, table)
    before = table.fingerprint()
    found = Undo(keeping.client, keeping.queue, keeping.settings).look(table.entity())
    assert (found.removed, len(found.restored)) == (result, 4)
    assert table.fingerprint() == before


# --- aborted writes


def streamed(site: Site) -> tuple[AcidTable, int]:
    """A table of one streaming delta with an aborted write id in it, and an insert."""
    table = site.table()
    batch = table.writes(3)
    events = [(0, write.id, 1 << 29, place, write.id, (write.id * 10,)) for place, write in enumerate(batch)]
    table.write_file(f"delta_{batch[0].id:07d}_{batch[2].id:07d}", events)
    batch[0].commit()
    batch[1].abort()
    batch[2].commit()
    table.insert(5)
    return table, batch[1].id


@pytest.mark.parametrize("site", ["hive_3"], indirect=True)
def test_rows_of_aborted_writes_do_not_come_back(keeping: Site) -> None:
    site = keeping
    table, aborted = streamed(site)
    rows = table.rows()
    assert sorted(rows.values()) == [5, 10, 30]
    compacted(site, table)
    site.clean(table.entity())
    let_hives_housekeeping_run(site)
    undo(site, table)
    let_hives_housekeeping_run(site)
    assert recorded_aborts(site, table.name) == {aborted}
    assert is_read_by_all(table, rows)


@pytest.mark.parametrize("site", ["hive_3"], indirect=True)
def test_where_the_metastore_forgot_an_abort_the_result_stays(keeping: Site) -> None:
    site = keeping
    table, aborted = streamed(site)
    compacted(site, table)
    rows = table.rows()
    where = f"tc_writeid = {aborted} AND tc_database = '{site.database}'"
    site.server.server_database.query(f"DELETE FROM TXN_COMPONENTS WHERE {where}")
    let_hives_housekeeping_run(site)
    with pytest.raises(RefusedError, match=f"the metastore forgot that write ids {aborted} were aborted"):
        undo(site, table)
    assert is_read_by_all(table, rows)


@WITH_DATABASE
def test_on_hive_4_nothing_is_undone_while_hives_cleaner_may_be_at_work_for_aborts(keeping: Site) -> None:
    table = written(keeping)
    compacted(keeping, table)
    rows = table.rows()
    aborted = table.write().insert(9)
    aborted.abort()
    with pytest.raises(RefusedError, match="aborted writes to it are on record|is gone"):
        undo(keeping, table)
    assert is_read_by_all(table, rows)


def assert_refused_without_its_record(site: Site, entity: Entity, aborted: Write) -> None:
    """As right after a cleaning: Hive's Cleaner, which began by the record, may be at work still."""
    database = site.server.server_database

    def move(source: str, target: str) -> None:
        set_it = f"""UPDATE "TXN_COMPONENTS" SET "TC_DATABASE" = '{target}'"""
        of_it = f""""TC_DATABASE" = '{source}' AND "TC_WRITEID" = {aborted.id}"""
        assert len(database.query(f'{set_it} WHERE {of_it} RETURNING "TC_TXNID"')) == 1

    move(site.database, "elsewhere")
    with pytest.raises(RefusedError, match="of which none tells where they were"):
        Undo(site.client, site.queue, site.settings).undo(entity)
    move("elsewhere", site.database)


@WITH_DATABASE
def test_on_hive_4_aborted_writes_to_another_partition_keep_nothing_from_being_undone(keeping: Site) -> None:
    table = keeping.table(partitions=["p=a", "p=b"])
    for value in (1, 2):
        table.insert(value, partition="p=a")
    rows, sources = table.rows(), table.directories("p=a")
    entity = table.entity("p=a")
    assert keeping.compact(entity).state is OutcomeState.COMPACTED
    aborted = table.write("p=b").insert(9)
    aborted.abort()
    assert aborted.id in keeping.admin.write_ids(keeping.database, table.name).aborted
    assert_refused_without_its_record(keeping, entity, aborted)
    Undo(keeping.client, keeping.queue, keeping.settings).undo(entity)
    assert table.directories("p=a") == sources
    assert is_read_by_all(table, rows)
    assert keeping.compact(entity).state is OutcomeState.COMPACTED
    table.write("p=a").insert(9).abort()
    with pytest.raises(RefusedError, match="aborted writes to it are on record|is gone"):
        Undo(keeping.client, keeping.queue, keeping.settings).undo(entity)
    assert is_read_by_all(table, rows)
