"""When the cleaner deletes, what it waits for, and what it lets the metastore forget."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean import cleaner as cleaner_module
from airflow_provider_acid.compaction.clean import row_cleaner as row_cleaner_module
from airflow_provider_acid.compaction.clean.cleaner import HANDS, Cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import (
    ON_EVERY_KIND,
    ON_HIVE_3,
    AcidTable,
    Site,
    StepRecorder,
    due,
)


def inserts(site: Site, count: int = 3) -> AcidTable:
    table = site.table()
    for value in range(count):
        table.insert(value)
    return table


@ON_EVERY_KIND
def test_c23_a_reader_that_began_before_the_publication_holds_the_cleaner_back_by_name(site: Site) -> None:
    table = inserts(site)
    reader = site.reader(table)
    compacted = site.compact(table.entity())
    before = table.fingerprint()

    for found in (site.look(table.entity()), site.clean(table.entity())):
        [waiting] = found
        assert waiting.state is CleaningState.WAITING
        assert f"waits for transaction {reader} of {getpass.getuser()}@localhost, open for " in waiting.message
    assert table.fingerprint() == before
    assert site.row(compacted.request_id).state is CompactionState.READY_FOR_CLEANING

    site.end(reader, site.admin.commit)
    [ready] = site.look(table.entity())
    assert ready.state is CleaningState.READY
    assert table.fingerprint() == before, "looking changes nothing"
    [cleaned] = site.clean(table.entity())
    assert (cleaned.state, len(cleaned.deleted)) == (CleaningState.CLEANED, 3)
    assert table.directories() == [compacted.targets[0]]
    assert table.values() == [0, 1, 2]


@ON_EVERY_KIND
def test_a_reader_that_began_after_the_publication_needs_nothing_that_is_deleted(site: Site) -> None:
    site.clean_beside_readers()
    table = inserts(site)
    compacted = site.compact(table.entity())
    site.reader(table)
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.directories() == [compacted.targets[0]]


def test_c09_compactions_that_piled_up_behind_one_reader_are_cleaned_in_order_in_one_run(site: Site) -> None:
    table = inserts(site)
    reader = site.reader(table)
    first = site.compact(table.entity())
    table.insert(3)
    second = site.compact(table.entity())
    assert (first.state, second.state) == (OutcomeState.COMPACTED, OutcomeState.COMPACTED)
    assert {item.state for item in site.clean(table.entity())} == {CleaningState.WAITING}
    assert len(table.directories()) == 6

    site.end(reader, site.admin.commit)
    cleanings = site.clean(table.entity())

    assert [(item.request_id, item.state) for item in cleanings] == [
        (first.request_id, CleaningState.CLEANED),
        (second.request_id, CleaningState.CLEANED),
    ]
    assert table.directories() == [second.targets[0]]
    assert table.values() == [0, 1, 2, 3]
    assert {site.row(id).state for id in (first.request_id, second.request_id)} == {CompactionState.SUCCEEDED}


@ON_HIVE_3
def test_c09_where_the_rename_publishes_nothing_piles_up_behind_a_reader(site: Site) -> None:
    """The first compaction's row stays 'working' until it is cleaned, and Hive 3 takes no second request beside it."""
    table = inserts(site)
    reader = site.reader(table)
    first = site.compact(table.entity())
    table.insert(3)
    blocked = site.compact(table.entity())
    assert (first.state, blocked.state) == (OutcomeState.COMPACTED, OutcomeState.SKIPPED)
    assert f"is published by request {first.request_id} and waits to be cleaned" in blocked.message
    assert {item.state for item in site.clean(table.entity())} == {CleaningState.WAITING}
    assert len(table.visible()) == 5

    site.end(reader, site.admin.commit)
    assert [item.state for item in site.clean(table.entity())] == [CleaningState.CLEANED]
    second = site.compact(table.entity())
    assert [item.state for item in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.directories() == list(second.targets)
    assert table.values() == [0, 1, 2, 3]


def test_c09_the_older_row_is_cleaned_while_a_reader_between_the_two_still_reads(site: Site) -> None:
    site.clean_beside_readers()
    table = inserts(site)
    first = site.compact(table.entity())
    table.insert(3)
    site.reader(table)
    second = site.compact(table.entity())

    cleanings = site.clean(table.entity())

    assert [(item.request_id, item.state) for item in cleanings] == [
        (first.request_id, CleaningState.CLEANED),
        (second.request_id, CleaningState.WAITING),
    ]
    assert table.directories() == [first.targets[0], second.targets[0], "delta_0000004_0000004_0000"]


def test_c09_an_older_minors_row_waits_for_the_newer_majors_readers(site: Site) -> None:
    """Its own directory is no more part of the table, and the base in its place is newer than its view."""
    table = inserts(site)
    first = site.compact(due(table.entity(), type=CompactionType.MINOR))
    table.insert(3)
    readers: list[int] = []

    def read(step: Step) -> None:
        if step is Step.STAGED:
            readers.append(site.reader(table))

    second = site.compact(table.entity(), on_step=StepRecorder(read))
    before = table.fingerprint()
    cleanings = site.clean(table.entity())
    assert [(item.request_id, item.state) for item in cleanings] == [
        (first.request_id, CleaningState.WAITING),
        (second.request_id, CleaningState.WAITING),
    ]
    assert "waits for a newer compaction to be cleaned" in cleanings[0].message
    assert table.fingerprint() == before
    site.end(readers[0], site.admin.commit)
    assert {item.state for item in site.clean(table.entity())} == {CleaningState.CLEANED}
    assert table.directories() == [second.targets[0]]
    assert table.values() == [0, 1, 2, 3]


@pytest.mark.parametrize("step", [Step.CLEANING_DECIDED, Step.FILES_DELETED])
def test_c09_a_minors_cleaning_that_a_newer_major_overtakes_waits_for_that_one(site: Site, step: Step) -> None:
    table = inserts(site)
    first = site.compact(due(table.entity(), type=CompactionType.MINOR))
    table.insert(3)
    published: list[str] = []

    def publish(passed: Step) -> None:
        if passed is step and not published:
            published.extend(site.compact(table.entity()).targets)

    [overtaken] = site.clean(table.entity(), on_step=StepRecorder(publish))

    assert (overtaken.request_id, overtaken.state) == (first.request_id, CleaningState.WAITING)
    assert "waits for a newer compaction to be cleaned" in overtaken.message
    assert len(overtaken.deleted) == 3
    assert table.values() == [0, 1, 2, 3]
    assert {item.state for item in site.clean(table.entity())} == {CleaningState.CLEANED}
    assert table.directories() == published
    assert table.values() == [0, 1, 2, 3]


@ON_EVERY_KIND
@pytest.mark.parametrize("name", ["no_cleanup", "NO_CLEANUP"])
def test_c10_nothing_is_deleted_where_no_cleanup_was_set_after_the_compaction(site: Site, name: str) -> None:
    table = inserts(site)
    compacted = site.compact(table.entity())
    site.set_properties(table, {name: "True"})
    before = table.fingerprint()
    [refused] = site.clean(table.entity())
    assert refused.state is CleaningState.FAILED
    assert f"{table.entity()}: has no_cleanup=true. Remedy: " in refused.message
    assert table.fingerprint() == before
    assert site.row(compacted.request_id).state is CompactionState.READY_FOR_CLEANING
    site.set_properties(table, {name: "false"})
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED


@ON_EVERY_KIND
def test_nothing_is_deleted_where_the_database_became_a_replication_source(site: Site) -> None:
    table = inserts(site)
    site.compact(table.entity())
    site.set_database_properties({"repl.source.for": "1"})
    before = table.fingerprint()
    [refused] = site.clean(table.entity())
    assert refused.state is CleaningState.FAILED
    assert "its database is a replication source" in refused.message
    assert table.fingerprint() == before


@ON_EVERY_KIND
def test_c06_a_table_dropped_while_ready_for_cleaning_leaves_no_row_and_no_error(site: Site) -> None:
    table = inserts(site)
    site.compact(table.entity())
    site.admin.drop_table(site.database, table.name)
    assert site.clean(table.entity()) == ()
    assert site.rows(table.entity()) == []


@ON_EVERY_KIND
def test_a_table_that_is_made_anew_while_a_cleaner_sleeps_loses_nothing(site: Site) -> None:
    """Its write ids begin anew, so that its directories have the names that the cleaner decided upon."""
    table = inserts(site)
    site.compact(table.entity())
    made: list[AcidTable] = []

    def make_anew(step: Step) -> None:
        if step is Step.CLEANING_DECIDED:
            before = table.directories()
            site.admin.drop_table(site.database, table.name)
            made.append(inserts(site))
            assert set(made[0].directories()) < set(before)

    [cleaning] = site.clean(table.entity(), on_step=StepRecorder(make_anew))
    assert cleaning.state is CleaningState.WAITING
    assert "was dropped and made again" in cleaning.message
    assert made[0].values() == [0, 1, 2]
    assert site.clean(table.entity()) == (), "the request went with the table"


@ON_EVERY_KIND
@pytest.mark.parametrize(
    ("happens", "said"), [("drop", "its request has ended"), ("rename", "was renamed to")], ids=["dropped", "renamed"]
)
def test_what_became_of_a_table_since_its_location_was_asked_for_is_noticed(
    site: Site, monkeypatch: pytest.MonkeyPatch, happens: str, said: str
) -> None:
    """Locations are asked for a hundred rows together; another table may lie there by the time that one is cleaned."""
    table = inserts(site)
    site.compact(table.entity())
    made: list[AcidTable] = []

    def make_anew(*_: object) -> None:
        if happens == "drop":
            site.admin.drop_table(site.database, table.name)
        else:
            site.admin.rename_table(site.database, table.name, "renamed")
        made.append(inserts(site))

    monkeypatch.setattr(row_cleaner_module, "check_may_delete", make_anew)
    [cleaning] = site.clean(table.entity())
    assert said in cleaning.message
    assert cleaning.state is (CleaningState.CLEANED if happens == "drop" else CleaningState.WAITING)
    assert cleaning.deleted == ()
    assert made[0].values() == [0, 1, 2]
    assert len(made[0].visible()) == 3


@ON_EVERY_KIND
def test_what_lies_elsewhere_than_where_neighbours_were_looked_for_is_left_for_the_next_look(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = inserts(site)
    site.compact(table.entity())
    before = table.fingerprint()
    with monkeypatch.context() as patched:
        patched.setattr(Cleaner, "_locations", lambda *_: {table.entity(): "file:/elsewhere"})
        [moved] = site.clean(table.entity())
    assert (moved.state, table.fingerprint()) == (CleaningState.WAITING, before)
    assert "was moved to" in moved.message
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED


@ON_HIVE_3
def test_many_partitions_are_cleaned_at_once_by_as_many_connections(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Hive 4 the benchmark does it, in its quick form, too: Derby is for one user at a time."""
    monkeypatch.setattr(cleaner_module, "LOOKED_UP_TOGETHER", 2)
    names = [f"p={number}" for number in range(16)]
    table = site.table(partitions=names)
    for number, name in enumerate(names):
        for value in range(2):
            table.insert(10 * number + value, partition=name)
        site.compact(table.entity(name))
    before = table.values()
    connections: list[object] = []

    @contextmanager
    def connect() -> Iterator[tuple[AcidMetastoreClient, CompactionQueue]]:
        with site.client.for_another_thread() as client:
            connections.append(client)
            yield client, replace(site, client=client).queue

    cleaner = Cleaner(site.client, site.queue, site.settings, connect=connect, sleep=lambda seconds: None)
    cleanings = cleaner.clean([table.entity(name) for name in names])
    assert [(cleaning.state, len(cleaning.deleted)) for cleaning in cleanings] == [(CleaningState.CLEANED, 2)] * 16
    assert len(connections) == HANDS - 1
    assert table.values() == before
    assert {len(table.directories(name)) for name in names} == {1}
    assert site.client.show_locks() == []


@ON_EVERY_KIND
def test_c06_a_partition_dropped_while_ready_for_cleaning_leaves_the_others_to_be_cleaned(site: Site) -> None:
    table = site.table(partitions=["p=a", "p=b"])
    for partition in ("p=a", "p=b"):
        for value in (1, 2):
            table.insert(value, partition=partition)
        site.compact(table.entity(partition))
    site.admin.drop_partition(site.database, table.name, "p=a")
    [cleaned] = site.clean(table.entity("p=a"), table.entity("p=b"))
    assert (cleaned.entity, cleaned.state) == (table.entity("p=b"), CleaningState.CLEANED)
    assert table.values() == [1, 2]


@ON_EVERY_KIND
def test_c07_obsolete_directories_are_kept_for_the_retention_time(site: Site) -> None:
    table = inserts(site)
    compacted = site.compact(table.entity())
    site.settings = replace(site.settings, cleaner_retention_seconds=3600)
    [kept] = site.clean(table.entity())
    assert kept.state is CleaningState.WAITING
    assert "s more (retention)" in kept.message
    assert len(table.visible()) == 4
    site.settings = replace(site.settings, cleaner_retention_seconds=0)
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.directories() == [compacted.targets[0]]


@ON_EVERY_KIND
def test_c11_a_row_of_which_everything_is_deleted_already_is_completed(site: Site) -> None:
    table = inserts(site)
    compacted = site.compact(table.entity())
    [first] = site.clean(table.entity())
    assert first.state is CleaningState.CLEANED
    assert site.clean(table.entity()) == ()
    assert site.row(compacted.request_id).state is CompactionState.SUCCEEDED
