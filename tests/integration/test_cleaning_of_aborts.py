"""What the cleaner lets the metastore forget about aborted writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness.compaction_chain import wait_until
from tests.integration.compaction_site import (
    ON_BOTH_METASTORES,
    ON_EVERY_KIND,
    AcidTable,
    Site,
    StepRecorder,
    due,
)
from tests.integration.hive_3_cleaning import inserts, let_hives_housekeeping_run
from tests.unit.merge.acid_files import insert


@ON_BOTH_METASTORES
def test_a_wholly_aborted_directory_is_deleted_and_then_forgotten(site: Site) -> None:
    table = inserts(site)
    table.write().insert(666).abort()
    table.insert(7)
    compacted = site.compact(table.entity())
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.directories() == [compacted.targets[0]]
    assert table.values() == [0, 1, 2, 7]
    assert site.row(compacted.request_id).highest_write_id == 5


@ON_BOTH_METASTORES
def test_c14_an_aborted_directory_with_nothing_to_merge_beside_it_still_goes_to_the_cleaner(site: Site) -> None:
    """Hive 3's compactor takes the aborted directory for an input, drops its row, and makes a base of one row."""
    table = site.table()
    table.insert(1)
    table.write().insert(666).abort()
    outcome = site.compact(table.entity())
    assert outcome.state is (OutcomeState.COMPACTED if site.renames_publish else OutcomeState.NOTHING_TO_MERGE)
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.directories() == (["base_0000002"] if site.renames_publish else ["delta_0000001_0000001_0000"])
    assert table.values() == [1]


@pytest.mark.parametrize("type", CompactionType)
@ON_EVERY_KIND
def test_one_delta_of_a_stream_is_rewritten_for_its_aborted_rows_and_these_are_forgotten(
    site: Site, type: CompactionType
) -> None:
    """Whoever looks at no aborted write ids, as Trino does, would see their rows for ever."""
    table = site.table()
    stream = table.writes(5)
    events = [insert(write.id, number, 10 * write.id + number) for write in stream for number in range(2)]
    table.write_file("delta_0000001_0000005", events)
    for write in stream:
        write.abort() if write.id == 2 else write.commit()
    before = table.rows()
    assert len(before) == 8
    if not site.renames_publish:
        site.settings = replace(site.settings, thresholds=Thresholds(aborted_txn_time_threshold=0))
        (due_now,) = site.evaluate().due
        assert "oldest aborted transaction" in due_now.reason

    outcome = site.compact(due(table.entity(), type=type))

    if site.renames_publish and type is CompactionType.MINOR:
        assert outcome.state is OutcomeState.NOTHING_TO_MERGE, "it might be the result of a minor"
        return
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert outcome.targets[0].startswith("base_0000005")
    if type is CompactionType.MINOR:
        assert "delta_0000001_0000005 holds rows of aborted write ids" in outcome.message
    assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.directories() == list(outcome.targets)
    assert table.rows() == before
    assert site.evaluate().due == ()
    assert site.compact(due(table.entity(), type=type)).state is OutcomeState.NOTHING_TO_MERGE


@ON_BOTH_METASTORES
def test_a13_a_write_that_is_aborted_between_the_deletion_and_the_bookkeeping_stays_known(site: Site) -> None:
    site.clean_beside_readers()
    table = inserts(site)
    compacted = site.compact(table.entity())
    writer = table.write().insert(666)

    def abort(step: Step) -> None:
        if step is Step.FILES_DELETED:
            writer.abort()

    [cleaned] = site.clean(table.entity(), on_step=StepRecorder(abort))

    assert cleaned.state is CleaningState.CLEANED
    if site.renames_publish:
        let_hives_housekeeping_run(site)
    assert site.admin.write_ids(site.database, table.name).aborted == {writer.id}
    assert table.directories() == [*compacted.targets, f"delta_{writer.id:07d}_{writer.id:07d}_0000"]
    assert table.values() == [0, 1, 2]


@ON_BOTH_METASTORES
def test_a16_a17_a21_aborted_writes_are_forgotten_partition_by_partition(site: Site) -> None:
    """Hive 3's Initiator, which runs here, forgets an aborted transaction with the last record of what it wrote."""
    partitions = ["p=a", "p=b", "p=c"]
    table = site.table(partitions=partitions)
    aborted = {}
    for partition, value in zip(partitions, (0, 10, 20), strict=True):
        table.insert(value, partition=partition)
        aborted[partition] = table.write(partition).insert(666).abort().id
        table.insert(value + 1, partition=partition)

    for partition in partitions:
        assert set(aborted.values()) <= site.admin.write_ids(site.database, table.name).aborted
        compacted = site.compact(table.entity(partition))
        [cleaned] = site.clean(table.entity(partition))
        assert cleaned.state is CleaningState.CLEANED
        assert table.directories(partition) == list(compacted.targets)
        assert table.values() == [0, 1, 10, 11, 20, 21], "no aborted row of another partition comes back"
        del aborted[partition]
        if site.renames_publish:
            wait_until(lambda: site.admin.write_ids(site.database, table.name).aborted == set(aborted.values()))


def straddling_batch(site: Site, table: AcidTable, aborted: int) -> list[int]:
    """Five write ids in one streaming delta, one of them aborted, the last two still open; their transactions."""
    batch = table.writes(5)
    first = batch[0].id
    events = [(0, write.id, 1 << 29, place, write.id, (write.id * 10,)) for place, write in enumerate(batch)]
    table.write_file(f"delta_{first:07d}_{batch[4].id:07d}", events)
    for place, write in enumerate(batch[:3]):
        if place == aborted:
            write.abort()
        else:
            write.commit()
    return [batch[3].txn, batch[4].txn]


@pytest.fixture
def sent(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """What the metastore is told to forget: request and highest write id."""
    told: list[tuple[int, int | None]] = []
    mark_cleaned = site.client.mark_cleaned

    def tell(info: CompactionInfo) -> None:
        told.append((info.id, info.highest_write_id))
        mark_cleaned(info)

    monkeypatch.setattr(site.client, "mark_cleaned", tell)
    return told


def test_an_aborted_write_id_in_a_directory_that_stays_is_never_forgotten(
    site: Site, sent: list[tuple[int, int | None]]
) -> None:
    """Hive 3.1.3 forgets it, and the aborted row comes back; see the fixture a_stream_open."""
    table = site.table()
    table.insert(1)
    table.insert(2)
    still_open = straddling_batch(site, table, aborted=1)
    assert table.values() == [1, 2, 30, 50]
    compacted = site.compact(table.entity())
    row = site.row(compacted.request_id)
    assert (compacted.targets[0], row.highest_write_id) == (f"base_0000002_v{row.txn_id:07d}", 5)
    [waiting] = site.clean(table.entity())
    assert waiting.state is CleaningState.WAITING
    for txn in still_open:
        site.end(txn, site.admin.commit)
    assert table.values() == [1, 2, 30, 50, 60, 70]

    [cleaned] = site.clean(table.entity())

    assert cleaned.state is CleaningState.CLEANED
    assert sent == [(compacted.request_id, 3)], "one below the aborted write id 4"
    assert site.admin.write_ids(site.database, table.name).aborted == {4}
    assert table.directories() == [compacted.targets[0], "delta_0000003_0000007"]
    assert table.values() == [1, 2, 30, 50, 60, 70]
    again = site.compact(table.entity())
    assert [item.state for item in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.directories() == [again.targets[0]]
    assert table.values() == [1, 2, 30, 50, 60, 70]


def test_a_row_that_could_only_be_completed_by_forgetting_stays_until_the_directory_is_merged(
    site: Site, sent: list[tuple[int, int | None]]
) -> None:
    table = site.table()
    still_open = straddling_batch(site, table, aborted=0)
    # Another writer's directory that is aborted with it: work for the cleaner, nothing to merge.
    (table.folder() / "delta_0000001_0000001_0000").mkdir()
    refused = site.compact(table.entity())
    assert refused.state is OutcomeState.NOTHING_TO_MERGE, refused
    assert site.row(refused.request_id).highest_write_id == 3
    for txn in still_open:
        site.end(txn, site.admin.commit)

    [kept] = site.clean(table.entity())

    assert kept.state is CleaningState.KEPT, kept
    assert "an aborted write id still lies in a remaining directory" in kept.message
    assert site.row(refused.request_id).state is CompactionState.READY_FOR_CLEANING
    assert sent == []
    assert table.values() == [20, 30, 40, 50]

    table.insert(6)
    compacted = site.compact(table.entity())
    assert compacted.state is OutcomeState.COMPACTED
    site.clean(table.entity())
    assert sent == [(compacted.request_id, 6), (refused.request_id, 3)]
    assert table.directories() == [compacted.targets[0]]
    assert table.values() == [6, 20, 30, 40, 50]
    assert {site.row(id).state for id in (refused.request_id, compacted.request_id)} == {CompactionState.SUCCEEDED}
