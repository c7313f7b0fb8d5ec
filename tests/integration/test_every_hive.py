"""From the sensor to the cleaner on every Hive with the settings it has by default, its own threads at work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.thrift_admin import LockNotAcquiredError
from tests.integration.compaction_site import ON_EVERY_METASTORE, AcidTable, Site, StepRecorder
from tests.integration.insert_only_tables import FORMATS, InsertOnly, compacted, unsuffixed
from tests.unit.merge.acid_files import insert

pytestmark = ON_EVERY_METASTORE

PARTITION = "p=a b"
EVERY_STEP = {Step.PUBLISHED, Step.COMMITTED, Step.FILES_DELETED, Step.MARKED_CLEANED}


def written_table(site: Site) -> AcidTable:
    """A base of five rows, three of them deleted, one inserted anew, and one whose writer gave up."""
    table = site.table(partitions=[PARTITION])
    first = table.write(PARTITION)
    table.write_file(f"base_{first.id:07d}", [insert(first.id, number, number) for number in range(5)], PARTITION)
    first.commit()
    table.write(PARTITION).delete((first.id, 1)).commit()
    table.write(PARTITION).delete((first.id, 3), (first.id, 4)).commit()
    table.write(PARTITION).insert(99).abort()
    table.insert(5, partition=PARTITION)
    return table


@pytest.mark.parametrize(
    ("type", "highest_ratio", "left"),
    [
        (CompactionType.MINOR, 100, ["base_0000001", "delete_delta_0000002_0000005", "delta_0000002_0000005"]),
        (CompactionType.MAJOR, 0.1, ["base_0000005"]),
    ],
)
def test_what_the_sensor_finds_is_compacted_and_cleaned_while_every_reader_sees_the_same_rows(
    site: Site, type: CompactionType, highest_ratio: float, left: list[str]
) -> None:
    site.settings = replace(site.settings, minor_pairs_on_hive_3=True)
    table = written_table(site)
    site.set_properties(table, {"compactorthreshold.hive.compactor.delta.pct.threshold": str(highest_ratio)})

    def read_both_ways(step: Step) -> None:
        if step is Step.FIRST_PUBLISHED:  # One of a minor's two directories: whoever takes locks waits.
            with pytest.raises(LockNotAcquiredError):
                site.reader(table, PARTITION)
            site.close()
            return
        assert table.values() == [0, 2, 5], step
        seen_by_trino = sorted(table.rows(check_visibility=False).values())
        assert seen_by_trino == [0, 2, 5], step

    read_both_ways(Step.RECOVERED)
    recorder = StepRecorder(read_both_ways)
    (due,) = site.evaluate().due
    assert (due.entity, due.type) == (table.entity(PARTITION), type)
    assert site.compact(due, on_step=recorder).state is OutcomeState.COMPACTED
    (cleaning,) = site.clean(due.entity, on_step=recorder)
    assert cleaning.state is CleaningState.CLEANED, cleaning
    assert [unsuffixed(name) for name in table.directories(PARTITION)] == left
    assert set(recorder.steps) >= EVERY_STEP
    assert [(row.state, row.type) for row in site.rows(due.entity)] == [(CompactionState.SUCCEEDED, type)]


@pytest.mark.parametrize("type", [CompactionType.MINOR, CompactionType.MAJOR])
@pytest.mark.parametrize("format", FORMATS)
def test_insert_only_tables_show_the_same_rows_at_every_step(site: Site, format: str, type: CompactionType) -> None:
    written = InsertOnly(site, format)
    written.overwrite(1, 2)
    written.insert(3)
    written.write(99).abort()
    written.insert(4)

    def read(step: Step) -> None:
        assert written.values() == [1, 2, 3, 4], step

    recorder = StepRecorder(read)
    target = compacted(site, written.table.entity(), type, recorder)
    is_minor = type is CompactionType.MINOR and site.queue.hive.has_insert_only_minors
    assert unsuffixed(target) == ("delta_0000002_0000004" if is_minor else "base_0000004")
    assert set(recorder.steps) >= EVERY_STEP
    assert site.rows(written.table.entity())[-1].state is CompactionState.SUCCEEDED
