"""When the cleaner deletes on Hive 3.1.3, what it waits for and lets Hive forget, with Hive's own threads beside it."""

from __future__ import annotations

import getpass
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.hive_3_cleaning import (
    clean,
    compact,
    inserts,
    let_hives_housekeeping_run,
    recorded_aborts,
    stored_state,
    visible,
)


@pytest.fixture
def site(hive_3_site: Site) -> Site:
    return hive_3_site


@pytest.fixture(params=["hive_3_site", "hive_3_site_on_mariadb"])
def either_site(request: pytest.FixtureRequest) -> Site:
    """On PostgreSQL, and on MariaDB, which compares texts without case."""
    site: Site = request.getfixturevalue(request.param)
    return site


class Death(BaseException):
    """Ends a cleaning right after a step."""


# --- what it waits for


def test_c23_a_reader_that_began_before_the_publication_holds_the_cleaner_back_by_name(site: Site) -> None:
    table = inserts(site)
    (reader,) = site.admin.open_transactions()  # Its snapshot is taken now, its lock comes later: Hive 3's own hole.
    site.open_txns.add(reader)
    compacted = compact(site, table.entity())
    before = table.fingerprint()

    for cleaning in (*site.look(table.entity()), clean(site, table)):
        assert cleaning.state is CleaningState.WAITING
        assert f"waits for transaction {reader} of {getpass.getuser()}@localhost, open for " in cleaning.message
    assert table.fingerprint() == before
    assert stored_state(site, compacted.request_id) == "w"
    assert site.compact(table.entity()).state is OutcomeState.SKIPPED, "the row stands in the way of the next request"

    site.end(reader, site.admin.commit)
    assert [cleaning.state for cleaning in site.look(table.entity())] == [CleaningState.READY]
    assert table.fingerprint() == before, "looking changes nothing"
    cleaned = clean(site, table)
    assert (cleaned.state, len(cleaned.deleted)) == (CleaningState.CLEANED, 3)
    assert table.directories() == ["base_0000003"]
    assert table.values() == [0, 1, 2]
    assert site.row(compacted.request_id).state is CompactionState.SUCCEEDED


@pytest.mark.parametrize("ends_by", ["commit", "abort"])
def test_a_reader_with_a_transaction_and_a_lock_holds_it_back_until_it_ends(site: Site, ends_by: str) -> None:
    table = inserts(site)
    reader = site.reader(table)
    compact(site, table.entity())
    assert clean(site, table).state is CleaningState.WAITING
    site.end(reader, getattr(site.admin, ends_by))
    assert clean(site, table).state is CleaningState.CLEANED


@pytest.mark.parametrize("on", ["p=A", None], ids=["on the partition", "on the table"])
def test_a_lock_without_a_transaction_holds_the_cleaner_back_by_name(site: Site, on: str | None) -> None:
    table = site.table(partitions=["p=A"])
    for value in (1, 2):
        table.insert(value, partition="p=A")
    lock = site.admin.lock_without_transaction(site.database, table.name, on)
    compact(site, table.entity("p=A"))
    before = table.fingerprint()

    for cleaning in (*site.look(table.entity("p=A")), clean(site, table, "p=A")):
        assert cleaning.state is CleaningState.WAITING
        assert f"waits for lock {lock} of {getpass.getuser()}@localhost, held for " in cleaning.message
    assert table.fingerprint() == before

    site.admin.unlock(lock)
    assert clean(site, table, "p=A").state is CleaningState.CLEANED
    assert table.directories("p=A") == ["base_0000002"]


def test_readers_that_began_after_the_publication_need_nothing_that_is_deleted(site: Site) -> None:
    site.clean_beside_readers()
    table = inserts(site)
    compact(site, table.entity())
    site.reader(table)
    lock = site.admin.lock_without_transaction(site.database, table.name)
    assert clean(site, table).state is CleaningState.CLEANED
    assert table.directories() == ["base_0000003"]
    site.admin.unlock(lock)


def test_c07_obsolete_directories_are_kept_for_the_retention_time(site: Site) -> None:
    table = inserts(site)
    compact(site, table.entity())
    site.settings = replace(site.settings, cleaner_retention_seconds=3600)
    kept = clean(site, table)
    assert kept.state is CleaningState.WAITING
    assert "s more (retention)" in kept.message
    assert len(visible(table)) == 4
    site.settings = replace(site.settings, cleaner_retention_seconds=0)
    assert clean(site, table).state is CleaningState.CLEANED


# --- in which order


def test_files_go_before_the_row_becomes_history(site: Site) -> None:
    table = inserts(site)
    compacted = compact(site, table.entity())
    seen: list[tuple[Step, list[str], str]] = []

    def look(step: Step, entity: Entity) -> None:
        seen.append((step, visible(table), stored_state(site, compacted.request_id)))

    site.clean(table.entity(), on_step=look)
    deltas = [f"delta_{number:07d}_{number:07d}_0000" for number in (1, 2, 3)]
    assert seen == [
        (Step.CLEANING_DECIDED, ["base_0000003", *deltas], "w"),
        (Step.FILES_DELETED, ["base_0000003"], "w"),
        (Step.MARKED_CLEANED, ["base_0000003"], "gone"),
    ]


@pytest.mark.parametrize("last", [Step.CLEANING_DECIDED, Step.FILES_DELETED, Step.MARKED_CLEANED])
def test_c11_a_cleaning_that_dies_is_repeated_to_its_end(either_site: Site, last: Step) -> None:
    site = either_site
    table = inserts(site)
    compacted = compact(site, table.entity())

    def die(step: Step, entity: Entity) -> None:
        if step is last:
            raise Death

    with pytest.raises(Death):
        site.clean(table.entity(), on_step=die)
    site.clean(table.entity())

    assert site.row(compacted.request_id).state is CompactionState.SUCCEEDED
    assert visible(table) == ["base_0000003"]
    assert table.values() == [0, 1, 2]
    table.insert(3)
    compact(site, table.entity())
    assert clean(site, table).state is CleaningState.CLEANED
    assert table.directories() == ["base_0000004"], "what the death left behind is gone, too"


def test_c06_a_partition_dropped_and_added_again_keeps_what_is_in_it(site: Site) -> None:
    table = site.table(partitions=["p=a"])
    for value in (1, 2):
        table.insert(value, partition="p=a")
    compact(site, table.entity("p=a"))
    site.admin.drop_partition(site.database, table.name, "p=a")
    table.add_partition("p=a")
    table.insert(3, partition="p=a")
    before = table.fingerprint()
    assert all(cleaning.deleted == () for cleaning in site.clean(table.entity("p=a")))
    assert table.fingerprint() == before
    assert table.values() == [3]


def test_a_request_of_a_user_is_cleaned_like_any(site: Site) -> None:
    table = inserts(site)
    site.settings = replace(site.settings, serve_foreign_requests=True)
    answer = site.client.compact(table.entity(), CompactionType.MAJOR)
    compacted = compact(site, DuePartition(table.entity(), CompactionType.MAJOR, "a user", answer.id))
    assert compacted.request_id == answer.id
    assert clean(site, table).state is CleaningState.CLEANED
    assert table.directories() == ["base_0000003"]


# --- what Hive may forget


def streamed(site: Site, table: AcidTable, aborted: int) -> tuple[list[int], int]:
    """Five write ids in one streaming delta, one aborted, the last two open; their transactions, the aborted id."""
    batch = table.writes(5)
    events = [(0, write.id, 1 << 29, place, write.id, (write.id * 10,)) for place, write in enumerate(batch)]
    table.write_file(f"delta_{batch[0].id:07d}_{batch[4].id:07d}", events)
    for place, write in enumerate(batch[:3]):
        if place == aborted:
            write.abort()
        else:
            write.commit()
    return [batch[3].txn, batch[4].txn], batch[aborted].id


def test_an_aborted_write_id_in_a_delta_that_is_still_streamed_to_is_never_forgotten(either_site: Site) -> None:
    """Hive 3.1.3's own Cleaner forgets it, and the aborted row comes back; see the fixture a_stream_open."""
    site = either_site
    table = site.table()
    table.insert(1)
    table.insert(2)
    still_open, aborted = streamed(site, table, aborted=1)
    assert table.values() == [1, 2, 30, 50]
    compacted = compact(site, table.entity())
    assert (compacted.targets, site.row(compacted.request_id).highest_write_id) == (("base_0000002",), 5)
    for txn in still_open:
        site.end(txn, site.admin.commit)
    assert clean(site, table).state is CleaningState.CLEANED
    let_hives_housekeeping_run(site)
    assert recorded_aborts(site, table.name) == {aborted}
    assert table.directories() == ["base_0000002", "delta_0000003_0000007"]
    assert table.values() == [1, 2, 30, 50, 60, 70]

    again = compact(site, table.entity())
    assert clean(site, table).state is CleaningState.CLEANED
    let_hives_housekeeping_run(site)
    assert recorded_aborts(site, table.name) == set(), "now no file holds it any more"
    assert table.directories() == list(again.targets)
    assert table.values() == [1, 2, 30, 50, 60, 70]


@pytest.mark.parametrize("inserts_after", [(), (3,)], ids=["nothing to merge", "a delta to merge"])
def test_c19_an_aborted_overwrite_goes_and_is_then_forgotten(site: Site, inserts_after: tuple[int, ...]) -> None:
    """Hive 3.1.3's own compactor takes no notice of it; it and its abort would stay on record for ever."""
    table = inserts(site, 2)
    compact(site, table.entity())
    clean(site, table)
    overwrite = table.write()
    table.write_file(f"base_{overwrite.id:07d}", [(0, overwrite.id, 1 << 29, 0, overwrite.id, (666,))])
    overwrite.abort()
    for value in inserts_after:
        table.insert(value)
    site.compact(table.entity())
    assert clean(site, table).state is CleaningState.CLEANED
    let_hives_housekeeping_run(site)
    assert recorded_aborts(site, table.name) == set()
    assert len(table.directories()) == 1
    assert table.values() == [0, 1, *inserts_after]


def rows_now(site: Site, table: FixtureTable) -> list[str]:
    snapshot = snapshot_now(site.admin, table.database, table.name)
    found = read_table(table.location, table.fixture.definition.columns, snapshot)
    return comparable(as_hive_prints(row) for row in found)


def test_the_aborted_row_of_a_stream_open_never_comes_back(site: Site) -> None:
    table = register(site.server, "a_stream_open", "3.1.3", site.database)
    site.settings = replace(site.settings, rewrite_single_delta=True)
    entity = Entity(site.database, table.name)
    site.open_txns |= set(table.open_transactions.values())
    assert rows_now(site, table) == comparable(table.rows)

    assert site.compact(entity).state is OutcomeState.NOTHING_TO_MERGE
    site.clean(entity)
    let_hives_housekeeping_run(site)

    assert recorded_aborts(site, table.name) == {2}
    assert rows_now(site, table) == comparable(table.rows)
    for txn in table.open_transactions.values():
        site.end(txn, site.admin.abort)
    compact(site, entity)
    (cleaned,) = site.clean(entity)
    assert cleaned.deleted == ("delta_0000001_0000005",)
    let_hives_housekeeping_run(site)
    assert recorded_aborts(site, table.name) == set()
    assert rows_now(site, table) == comparable(table.rows)


def test_a_partition_in_upper_case_is_cleaned_without_harm_to_its_twin_in_lower_case(either_site: Site) -> None:
    site = either_site
    table = site.table(partitions=["p=A", "p=a"])
    for partition, value in (("p=A", 10), ("p=a", 20)):
        table.insert(value, partition=partition)
        table.write(partition).insert(value + 1).abort()
        table.insert(value + 2, partition=partition)
    assert table.values() == [10, 12, 20, 22]
    lower = visible(table, "p=a")

    compacted = compact(site, table.entity("p=A"))
    assert clean(site, table, "p=A").state is CleaningState.CLEANED
    let_hives_housekeeping_run(site)

    assert table.directories("p=A") == list(compacted.targets)
    assert visible(table, "p=a") == lower
    assert table.values() == [10, 12, 20, 22]
    compact(site, table.entity("p=a"))
    assert clean(site, table, "p=a").state is CleaningState.CLEANED
    let_hives_housekeeping_run(site)
    assert table.values() == [10, 12, 20, 22]


def test_a_reader_of_the_twin_in_lower_case_is_waited_for_too(site: Site) -> None:
    """Hive 3.1.3 keeps no case in the names of locked partitions: nobody can tell whose lock it is."""
    table = site.table(partitions=["p=A", "p=a"])
    for value in (1, 2):
        table.insert(value, partition="p=A")
    lock = site.admin.lock_without_transaction(site.database, table.name, "p=a")
    compact(site, table.entity("p=A"))
    assert clean(site, table, "p=A").state is CleaningState.WAITING
    site.admin.unlock(lock)
    assert clean(site, table, "p=A").state is CleaningState.CLEANED
