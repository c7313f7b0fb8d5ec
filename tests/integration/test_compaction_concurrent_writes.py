"""What others write while a partition is compacted stays, and is merged by the next compaction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from tests.harness.compaction_chain import outcome_of
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, Write


def three_inserts(site: Site) -> AcidTable:
    table = site.table()
    for value in (10, 20, 30):
        table.insert(value, value + 1)
    return table


def write_all_kinds(table: AcidTable, old_row: tuple[int, int], value: int) -> Write:
    """An insert, a delete of an old row, an aborted write, and a write that stays open."""
    table.insert(value)
    table.write().delete(old_row).commit()
    table.write().insert(666).delete((3, 1)).abort()
    return table.write().insert(value + 5)


@ON_BOTH_METASTORES
def test_writes_between_begin_and_finish_and_before_cleaning_are_kept(site: Site) -> None:
    table = three_inserts(site)
    worker = site.worker()
    active = site.begin(table.entity())

    open_1 = write_all_kinds(table, (1, 0), 100)
    result = run_plainly(active.plan)
    assert table.values() == [11, 20, 21, 30, 31, 100]
    outcome = outcome_of(worker.finish(active, result))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert (active.plan.high_water_mark, outcome.rows) == (3, 6)
    assert table.values() == [11, 20, 21, 30, 31, 100]
    assert sorted(table.rows(check_visibility=False).values()) == [11, 20, 21, 30, 31, 100]

    open_2 = write_all_kinds(table, (2, 1), 200)
    assert table.values() == [11, 20, 30, 31, 100, 200]
    open_1.commit()
    open_2.commit()
    assert table.values() == [11, 20, 30, 31, 100, 105, 200, 205]
    [cleaning] = site.clean(table.entity())
    assert (cleaning.state, cleaning.deleted) == (
        CleaningState.CLEANED,
        tuple(f"delta_{id:07d}_{id:07d}_0000" for id in (1, 2, 3)),
    )
    assert table.values() == [11, 20, 30, 31, 100, 105, 200, 205]
    keys = table.rows()

    again = site.compact(table.entity())
    assert again.state is OutcomeState.COMPACTED, again
    assert table.rows() == keys
    [cleaning] = site.clean(table.entity())
    assert cleaning.state is CleaningState.CLEANED, cleaning
    assert table.rows() == keys
    assert table.rows(check_visibility=False) == keys
    assert table.directories() == [again.targets[0]]


@ON_BOTH_METASTORES
@pytest.mark.parametrize("aborted_in_the_middle", [False, True])
def test_w08_with_an_open_write_id_in_the_middle_only_what_is_below_is_merged(
    site: Site, aborted_in_the_middle: bool
) -> None:
    table = site.table()
    table.insert(1, 2)
    table.insert(3)
    if aborted_in_the_middle:
        table.write().insert(99).abort()
    still_open = table.write().insert(4)
    table.insert(5)
    table.write().delete((1, 0)).commit()
    before = table.rows()

    outcome = site.compact(table.entity())

    assert outcome.state is OutcomeState.COMPACTED, outcome
    row = site.row(outcome.request_id)
    # Hive 3's compactor takes an aborted directory for an input of which no row is left.
    last_input = 3 if aborted_in_the_middle and site.renames_publish else 2
    assert outcome.targets[0] == site.published(f"base_{last_input:07d}", row.txn_id)
    assert row.highest_write_id == still_open.id - 1
    assert table.rows() == before
    assert sorted(before.values()) == [2, 3, 5]
    [waiting] = site.clean(table.entity())
    assert waiting.state is CleaningState.WAITING
    still_open.commit()
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.values() == [2, 3, 4, 5]
    kept = {still_open.id, still_open.id + 1}
    assert table.directories() == [
        outcome.targets[0],
        f"delete_delta_{max(kept) + 1:07d}_{max(kept) + 1:07d}_0000",
        *(f"delta_{id:07d}_{id:07d}_0000" for id in sorted(kept)),
    ]
    assert site.row(outcome.request_id).state.value == "succeeded"


@ON_BOTH_METASTORES
def test_w20_with_a_streaming_batch_still_open_only_the_directories_below_it_are_merged(site: Site) -> None:
    table = site.table()
    for value in (1, 2):
        table.insert(value)
    batch = table.writes(3)
    events = [event for write in batch for event in [(0, write.id, 1 << 29, write.id, write.id, (write.id * 10,))]]
    table.write_file(f"delta_{batch[0].id:07d}_{batch[-1].id:07d}", events)
    batch[0].commit()
    assert table.values() == [1, 2, 30]

    outcome = site.compact(table.entity())

    [row] = site.rows(table.entity())
    assert outcome.targets[0] == site.published("base_0000002", row.txn_id), (
        "write id 3 is committed, but lies with open ones"
    )
    assert table.values() == [1, 2, 30]
    batch[1].abort()
    batch[2].commit()
    assert table.values() == [1, 2, 30, 50]
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.values() == [1, 2, 30, 50]


@ON_BOTH_METASTORES
def test_a_write_of_which_nothing_is_below_the_open_one_leaves_nothing_to_merge(site: Site) -> None:
    table = site.table()
    still_open = table.write().insert(1)
    table.insert(2)
    table.insert(3)
    before = table.fingerprint()
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.REFUSED
    assert "nothing was ever committed" in outcome.message
    assert table.fingerprint() == before
    still_open.commit()
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    assert table.values() == [1, 2, 3]


def truncate(table: AcidTable) -> list[int]:
    table.site.admin.truncate_table(table.site.database, table.name, ["p=a"] if table.partition_keys else [])
    return []


def drop_and_make_again(table: AcidTable) -> list[int]:
    site = table.site
    if table.partition_keys:
        site.admin.drop_partition(site.database, table.name, "p=a")
        table.add_partition("p=a")
        table.insert(7, partition="p=a")
        return [7]
    site.admin.drop_table(site.database, table.name)
    site.table(table.name).insert(7)
    return [7]


@ON_BOTH_METASTORES
@pytest.mark.parametrize("partition", [None, "p=a"], ids=["table", "partition"])
@pytest.mark.parametrize("change", [truncate, drop_and_make_again], ids=["K-10 TRUNCATE", "K-09 DROP and CREATE"])
def test_rows_that_go_during_the_merge_do_not_come_back(
    site: Site, change: Callable[[AcidTable], list[int]], partition: str | None
) -> None:
    """These calls of the metastore take no lock; with SQL they would wait for the compaction's."""
    table = site.table(partitions=[partition] if partition else [])
    for value in (1, 2, 3):
        table.insert(value, partition=partition)
    worker = site.worker()
    active = site.begin(table.entity(partition))
    result = run_plainly(active.plan)
    values = change(table)

    outcome = outcome_of(worker.finish(active, result))

    assert outcome.state is OutcomeState.FAILED, outcome
    assert table.values() == values
    assert not [name for name in table.directories(partition) if name.startswith(("base_0000003", "_"))]
    assert active.transaction.txn_id not in site.admin.transactions().open
    assert all(row.state.is_terminal for row in site.rows(table.entity(partition)))
