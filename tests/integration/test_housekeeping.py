"""What dead workers and forgetful schedulers leave on real metastores, and what a round of housekeeping makes of it."""

from __future__ import annotations

import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import Chore, HousekeepingReport, StuckKind
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, STAGING_PREFIX
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import Chain, ChainProcess, run_until_killed
from tests.integration.compaction_site import AcidTable, Site

AT_ONCE = 0.001
VALUES = [1, 2, 3]


@pytest.fixture(params=["site", "hive_3_site"])
def any_site(request: pytest.FixtureRequest) -> Site:
    """On Hive 4.0.1, and on Hive 3.1.3."""
    site: Site = request.getfixturevalue(request.param)
    return site


@pytest.fixture
def table(any_site: Site) -> AcidTable:
    table = any_site.table()
    for value in VALUES:
        table.insert(value)
    return table


def chain_for(table: AcidTable, type: CompactionType = CompactionType.MAJOR) -> Chain:
    settings = replace(table.site.settings, minor_pairs_on_hive_3=True, minor_lock_wait_seconds=10)
    return Chain.on(table.site.server, table.entity(), settings=settings, type=type)


def sweep(
    table: AcidTable, *, worker_timeout: float = AT_ONCE, dead_after: float | None = AT_ONCE, forgotten: float = 0
) -> HousekeepingReport:
    """One round for the table's database."""
    site = table.site
    settings = replace(site.settings, worker_timeout_seconds=worker_timeout, transaction_timeout_seconds=dead_after)
    keeper = Housekeeper(site.client, site.queue, settings, forgotten_seconds=forgotten, max_partitions=10)
    return keeper.sweep(TableSelection.of([f"{site.database}.*"]))


def newest_row(table: AcidTable) -> CompactionRow:
    """But for what Hive's own Initiator notes about failures."""
    rows = table.site.rows(table.entity())
    return [row for row in rows if row.state is not CompactionState.DID_NOT_INITIATE][-1]


def chores(report: HousekeepingReport) -> set[Chore]:
    return {deed.chore for deed in report.deeds}


def ours(table: AcidTable) -> list[str]:
    return [name for name in table.directories() if name.startswith("_")]


def check_next_run(table: AcidTable) -> None:
    """The partition is compacted and cleaned as if nothing had been."""
    chain = chain_for(table).another_run().with_timeout(AT_ONCE)
    assert not chain.compact().outcome.state.is_failure
    assert {cleaning.state for cleaning in chain.clean()} == {CleaningState.CLEANED}
    assert table.values() == VALUES
    (base,) = table.directories()
    assert base.startswith("base_")


@pytest.mark.parametrize("step", ["claimed", "staged", "fenced"])
def test_a_dead_workers_claim_is_ended_and_what_it_left_removed(table: AcidTable, step: str) -> None:
    run_until_killed(chain_for(table), step)
    report = sweep(table)
    assert Chore.CLAIM_ENDED in chores(report), report
    gone_back = CompactionState.FAILED if table.site.queue.hive.publishes_by_commit else CompactionState.INITIATED
    assert newest_row(table).state is gone_back
    assert ours(table) == []
    assert table.values() == VALUES
    check_next_run(table)


def test_after_repeated_failures_a_dead_workers_claim_is_failed(table: AcidTable) -> None:
    """As Hive's Initiator counts them: two in a row."""
    site = table.site
    for number in range(2):
        active = site.begin(table.entity(), f"task {number}")
        site.worker().abandon(active, "no disk")
    run_until_killed(chain_for(table), "staged")
    report = sweep(table)
    assert newest_row(table).state is CompactionState.FAILED
    (stuck,) = [item for item in report.stuck if item.kind is StuckKind.FAILURES]
    assert stuck.message.startswith("3 times in a row, last: an attempt died")


def test_a_living_workers_claim_is_left_alone_however_old_it_is(table: AcidTable) -> None:
    chain = chain_for(table)
    with closing(ChainProcess(chain, "staged", signal.SIGSTOP)) as living:
        living.wait_until_asleep()
        before = (newest_row(table), table.fingerprint())
        report = sweep(table, dead_after=300)
        assert report.deeds == ()
        assert (newest_row(table), table.fingerprint()) == before
        (stuck,) = [item for item in report.stuck if item.kind is StuckKind.CLAIM]
        assert "is being compacted by" in stuck.message
        assert living.wake().state is OutcomeState.COMPACTED
    assert table.values() == VALUES


def test_a_claim_that_is_not_silent_for_long_is_left_to_the_next_run(table: AcidTable) -> None:
    run_until_killed(chain_for(table), "fenced")
    before = (newest_row(table), table.fingerprint())
    report = sweep(table, worker_timeout=3600)
    assert report.deeds == ()
    assert (newest_row(table), table.fingerprint()) == before
    again = chain_for(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, False)


def test_a_claim_of_somebody_else_is_only_reported(site: Site) -> None:
    """On Hive 3 nothing at all is done while other workers are about."""
    table = site.table()
    table.insert(1)
    request = site.client.compact(table.entity(), CompactionType.MAJOR)
    claim = site.queue.claim_foreign(site.row(request.id), "worker-7")
    assert isinstance(claim, ClaimedCompaction)
    report = sweep(table)
    assert report.deeds == ()
    (stuck,) = [item for item in report.stuck if item.kind is StuckKind.CLAIM]
    assert "worker-7, which is not of this package" in stuck.message
    site.queue.fail(claim, "test")


def test_half_of_a_pair_goes_with_the_claim(table: AcidTable) -> None:
    table.write().delete((3, 0)).commit()
    run_until_killed(chain_for(table, CompactionType.MINOR), "first_published")
    before = {name for name in table.directories() if name.endswith("_0000")}
    sweep(table)
    assert set(table.directories()) == before
    assert table.values() == [1, 2]


def test_directories_that_belong_to_nobody_are_removed_and_others_stay(table: AcidTable) -> None:
    nobodys = [f"{STAGING_PREFIX}0123456789abcdef", f"{REMOVED_PREFIX}0123"]
    others = ["_acid_compaction_of_mine", "_tmp_7", f"delta_0000001_0000001_0000/{STAGING_PREFIX}0123456789abcdef"]
    for name in (*nobodys, *others):
        (table.folder() / name).mkdir()
    report = sweep(table)
    assert chores(report) == {Chore.REMOVED}
    assert [(table.folder() / name).exists() for name in nobodys] == [False, False]
    assert all((table.folder() / name).exists() for name in others)
    assert sweep(table).deeds == ()


def test_other_databases_are_none_of_its_business(table: AcidTable) -> None:
    orphan = table.folder() / f"{STAGING_PREFIX}0123456789abcdef"
    orphan.mkdir()
    site = table.site
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    assert keeper.sweep(TableSelection.of(["nowhere.*"])).deeds == ()
    assert orphan.exists()


def test_run_directories_go_once_their_operator_is_dead(table: AcidTable) -> None:
    active = table.site.begin(table.entity())
    place = RunPlace.of(Storages(), None, f"file:{table.location}")
    run = RunDirectory(Storages(), place, RunKey.new(run_name(table.site.client.database_uuid())))
    run.put_plan(0, active.plan)
    folder = Path(run.location.removeprefix("file:"))
    sweep(table, worker_timeout=3600, dead_after=300)
    assert folder.exists()
    table.site.worker().abandon(active, "killed")
    sweep(table)
    assert not folder.exists()


@pytest.mark.parametrize("step", ["committed", "staging_removed"])
def test_a_finished_compaction_is_handed_to_the_cleaner_with_all_it_needs(table: AcidTable, step: str) -> None:
    run_until_killed(chain_for(table), step)
    report = sweep(table)
    assert report.to_clean == (table.entity(),)
    assert newest_row(table).state is CompactionState.READY_FOR_CLEANING
    assert sweep(table, forgotten=3600).to_clean == ()
    site = table.site
    assert [item.state for item in site.clean(*report.to_clean)] == [CleaningState.CLEANED]
    (base,) = table.directories()
    assert base.startswith("base_")
    assert table.values() == VALUES
    assert newest_row(table).state is CompactionState.SUCCEEDED


def test_what_a_cleaning_waits_for_is_told_and_its_claim_is_kept(table: AcidTable) -> None:
    site = table.site
    reader = site.reader(table)
    run_until_killed(chain_for(table), "staging_removed")
    before = newest_row(table)
    report = sweep(table)
    (waiting,) = [item for item in report.stuck if item.kind is StuckKind.CLEANING]
    assert waiting.subject == str(table.entity())
    assert "waits for" in waiting.message
    (oldest,) = [item for item in report.stuck if item.kind is StuckKind.OPEN_TRANSACTION]
    assert oldest.subject == f"transaction {reader}"
    if not site.queue.hive.publishes_by_commit:
        assert chores(report) == {Chore.CLAIM_KEPT}
        assert (newest_row(table).start_ms or 0) > (before.start_ms or 0)
    site.end(reader, site.admin.commit)
    site.clean(table.entity())


def test_what_is_kept_for_an_undo_is_not_told_as_stuck(table: AcidTable) -> None:
    table.site.compact(table.entity())
    told = {}
    for hours in (0.0, 1.0):
        table.site.settings = replace(table.site.settings, keep_replaced_hours=hours)
        told[hours] = any(item.kind is StuckKind.CLEANING for item in sweep(table).stuck)
    assert told == {0.0: True, 1.0: False}


def test_a_dead_workers_last_step_is_made_for_it(table: AcidTable) -> None:
    """Committed, and marked compacted now on Hive 4; on Hive 3 only its locks were left."""
    run_until_killed(chain_for(table), "marked_compacted" if table.site.renames_publish else "committed")
    report = sweep(table)
    assert newest_row(table).state is CompactionState.READY_FOR_CLEANING
    assert newest_row(table).commit_ms is not None
    assert not table.site.admin.transactions().open
    assert report.to_clean == (table.entity(),)
    table.site.clean(table.entity())
    assert table.values() == VALUES


def test_a_row_whose_transaction_aborted_is_failed(site: Site) -> None:
    """On Hive 4, by a worker that marked it first: it is never cleaned as it stands (HIVE-29572)."""
    table = site.table()
    for value in VALUES:
        table.insert(value)
    run_until_killed(chain_for(table), "published")
    site.client.mark_compacted(CompactionInfo.of_row(newest_row(table)))
    site.admin.abort(newest_row(table).txn_id or 0)
    report = sweep(table)
    assert Chore.SETTLED in chores(report)
    assert newest_row(table).state is CompactionState.FAILED
    assert report.to_clean == ()
    assert table.values() == VALUES
    check_next_run(table)


def dead_and_taken_back(site: Site, step: str) -> tuple[AcidTable, CompactionRow]:
    """An attempt died after a step, and Hive's Initiator took its request back after the worker time-out.

    :returns: the table, and the row before that.
    """
    table = site.table()
    for value in VALUES:
        table.insert(value)
    run_until_killed(chain_for(table), step)
    row = newest_row(table)
    names = ("COMPACTION_QUEUE", "CQ_WORKER_ID", "CQ_START", "CQ_STATE", "CQ_ID")
    queue, worker, start, state, id = names if site.renames_publish else (f'"{name}"' for name in names)
    site.server.server_database.query(
        f"UPDATE {queue} SET {worker} = NULL, {start} = NULL, {state} = 'i' WHERE {id} = {row.id}"
    )
    assert newest_row(table).state is CompactionState.INITIATED
    return table, row


def test_a_committed_row_that_hive_took_back_is_made_ready(hive_4_on_postgres_site: Site) -> None:
    """It keeps what the commit recorded."""
    site = hive_4_on_postgres_site
    table, row = dead_and_taken_back(site, "committed")
    report = sweep(table)
    now = newest_row(table)
    assert (now.id, now.state, now.commit_ms) == (row.id, CompactionState.READY_FOR_CLEANING, row.commit_ms)
    assert Chore.SETTLED in chores(report)
    site.clean(table.entity())
    assert newest_row(table).state is CompactionState.SUCCEEDED
    assert table.values() == VALUES


def test_a_published_row_that_hive_took_back_is_claimed_again(hive_3_site: Site) -> None:
    table, _ = dead_and_taken_back(hive_3_site, "staging_removed")
    report = sweep(table)
    assert newest_row(table).state is CompactionState.READY_FOR_CLEANING
    assert chores(report) == {Chore.SETTLED, Chore.CLAIM_KEPT}
    assert report.to_clean == (table.entity(),)
    hive_3_site.clean(table.entity())
    assert table.values() == VALUES


def test_a_claim_on_a_partition_that_was_dropped_is_ended(site: Site) -> None:
    """On Hive 3 the metastore forgets the request with the partition."""
    table = site.table("p", partitions=["p=1"])
    for value in VALUES:
        table.insert(value, partition="p=1")
    entity = table.entity("p=1")
    chain = Chain.on(site.server, entity, settings=site.settings)
    run_until_killed(chain, "staged")
    site.admin.drop_partition(site.database, "p", "p=1")
    if site.rows(entity):
        sweep(table)
    assert all(row.state.is_terminal for row in site.rows(entity))


def test_an_odd_partition_keeps_no_other_from_being_looked_after(table: AcidTable) -> None:
    odd = table.site.table("odd")
    (odd.folder() / "link").symlink_to("/")
    orphan = table.folder() / f"{STAGING_PREFIX}0123456789abcdef"
    orphan.mkdir()
    report = sweep(table)
    assert not orphan.exists()
    (problem,) = [item for item in report.stuck if item.kind is StuckKind.PROBLEM]
    assert "symbolic link" in problem.message


def test_a_database_whose_tables_the_metastore_does_not_list_keeps_no_other_from_being_looked_after(
    table: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = table.site
    orphan = table.folder() / f"{STAGING_PREFIX}0123456789abcdef"
    orphan.mkdir()
    tables_of = site.client.tables

    def tables(database: str) -> list[str]:
        if database == "default":
            raise MetastoreError("database default", "MetaException: Permission denied", "ask for it")
        return tables_of(database)

    monkeypatch.setattr(site.client, "tables", tables)
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    report = keeper.sweep(TableSelection.of(["default.*", f"{site.database}.*"]))
    assert not orphan.exists()
    (problem,) = [item for item in report.stuck if item.kind is StuckKind.PROBLEM]
    assert (problem.subject, "Permission denied" in problem.message) == ("database default", True)


def test_of_a_pattern_that_no_table_needs_it_warns_and_does_its_chores(
    table: AcidTable, caplog: pytest.LogCaptureFixture
) -> None:
    site = table.site
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    caplog.clear()
    keeper.sweep(TableSelection.of([f"{site.database}.*", "slaes.*"], [f"{site.database}.x*"]))
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "table pattern 'slaes.*' matches no table; correct it, or take it out",
        f"excluded pattern '{site.database}.x*' leaves out no table; correct it, or take it out",
    ]
