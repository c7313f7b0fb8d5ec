"""What minors replace is deleted, and aborted write ids are forgotten, exactly when that is safe."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due
from tests.integration.test_minor_publication import ROWS, inserts_and_deletes, values_of_trino
from tests.unit.merge.acid_files import insert

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def compact(table: AcidTable, type: CompactionType = MINOR) -> Outcome:
    site = table.site
    site.settings = replace(site.settings, minor_pairs_on_hive_3=True)
    outcome = site.compact(due(table.entity(), type=type))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    return outcome


def clean(table: AcidTable) -> list[CleaningState]:
    return [cleaning.state for cleaning in table.site.clean(table.entity())]


def check(table: AcidTable, *values: int) -> None:
    assert table.values() == list(values)
    assert values_of_trino(table) == list(values)


def write_more(table: AcidTable) -> None:
    """Values 6 and 8; 7 comes and goes, and 5 goes too."""
    sixth = table.insert(6, 7)
    table.write().insert(8).delete((3, 0), (sixth.id, 1)).commit()


def test_two_minors_in_a_row_are_cleaned_in_order_by_one_run(site: Site) -> None:
    table = inserts_and_deletes(site)
    compact(table)
    write_more(table)
    second = compact(table)
    check(table, 2, 3, 6, 8)
    assert [name.partition("_v")[0] for name in second.targets] == [
        "delta_0000001_0000005",
        "delete_delta_0000001_0000005",
    ]
    assert clean(table) == [CleaningState.CLEANED, CleaningState.CLEANED]
    assert set(table.directories()) == set(second.targets)
    check(table, 2, 3, 6, 8)
    assert [(row.type, row.state) for row in site.rows(table.entity())] == [
        ("minor", CompactionState.SUCCEEDED),
        ("minor", CompactionState.SUCCEEDED),
    ]


@ON_BOTH_METASTORES
def test_a_minor_that_is_cleaned_before_the_next_one(site: Site) -> None:
    table = inserts_and_deletes(site)
    first = compact(table)
    assert clean(table) == [CleaningState.CLEANED]
    assert set(table.directories()) == set(first.targets)
    write_more(table)
    second = compact(table)
    assert clean(table) == [CleaningState.CLEANED]
    assert set(table.directories()) == set(second.targets)
    check(table, 2, 3, 6, 8)


def test_c09_a_minor_and_a_major_that_pile_up_behind_a_reader_are_cleaned_once_it_ends(site: Site) -> None:
    table = inserts_and_deletes(site)
    (reader,) = site.admin.open_transactions()
    site.open_txns.add(reader)
    compact(table)
    write_more(table)
    major = compact(table, MAJOR)
    check(table, 2, 3, 6, 8)
    assert clean(table) == [CleaningState.WAITING, CleaningState.WAITING]
    site.end(reader, site.admin.commit)
    assert clean(table) == [CleaningState.CLEANED, CleaningState.CLEANED]
    assert table.directories() == list(major.targets)
    check(table, 2, 3, 6, 8)
    assert sorted((row.type, row.state.value) for row in site.rows(table.entity())) == [
        ("major", "succeeded"),
        ("minor", "succeeded"),
    ]


@ON_BOTH_METASTORES
def test_w29_a_major_after_a_cleaned_minor(site: Site) -> None:
    table = inserts_and_deletes(site)
    compact(table)
    clean(table)
    write_more(table)
    major = compact(table, MAJOR)
    assert clean(table) == [CleaningState.CLEANED]
    assert table.directories() == list(major.targets)
    assert major.targets[0].startswith("base_0000005")
    check(table, 2, 3, 6, 8)


@ON_BOTH_METASTORES
def test_w30_a_minor_after_a_cleaned_major_leaves_its_base_and_begins_behind_it(site: Site) -> None:
    table = inserts_and_deletes(site)
    major = compact(table, MAJOR)
    clean(table)
    write_more(table)
    minor = compact(table)
    assert clean(table) == [CleaningState.CLEANED]
    assert set(table.directories()) == {*major.targets, *minor.targets}
    assert minor.targets[0].startswith("delta_0000004_0000005")
    check(table, 2, 3, 6, 8)


def test_c16_of_two_minors_only_what_nobody_can_still_read_is_deleted(site: Site) -> None:
    table = inserts_and_deletes(site)
    sources = set(table.directories())
    first = compact(table)
    (reader,) = site.admin.open_transactions()
    site.open_txns.add(reader)
    write_more(table)
    between = set(table.directories()) - sources
    second = compact(table)
    assert sorted(clean(table)) == [CleaningState.CLEANED, CleaningState.WAITING]
    assert set(table.directories()) == between | {*first.targets, *second.targets}
    check(table, 2, 3, 6, 8)
    site.end(reader, site.admin.commit)
    assert clean(table) == [CleaningState.CLEANED]
    assert set(table.directories()) == set(second.targets)
    check(table, 2, 3, 6, 8)


def test_m15_a_repeated_major_before_minor_and_major_are_cleaned_is_not_begun(site: Site) -> None:
    table = inserts_and_deletes(site)
    compact(table)
    table.insert(6)
    major = compact(table, MAJOR)
    assert site.compact(due(table.entity())).state is OutcomeState.SKIPPED
    assert clean(table) == [CleaningState.CLEANED, CleaningState.CLEANED]
    assert table.directories() == list(major.targets)
    check(table, *ROWS, 6)


@ON_BOTH_METASTORES
def test_an_aborted_write_between_the_merged_ones_is_forgotten_only_when_its_directory_is_gone(site: Site) -> None:
    table = site.table()
    table.insert(1)
    aborted = table.write().insert(99).delete((1, 0)).abort()
    table.insert(2)
    table.write().insert(3).delete((3, 0)).commit()
    compact(table)
    check(table, 1, 3)
    assert aborted.id in site.admin.write_ids(site.database, table.name).aborted
    assert clean(table) == [CleaningState.CLEANED]
    assert len(table.directories()) == 2
    check(table, 1, 3)
    table.insert(4)
    compact(table, MAJOR)
    assert clean(table) == [CleaningState.CLEANED]
    check(table, 1, 3, 4)


def test_an_aborted_write_id_that_a_streaming_delta_still_holds_is_not_forgotten(site: Site) -> None:
    """The range of the minor ends below the open write id, whose delta stays and holds the aborted one's rows."""
    # The writer's lock would be waited for, for the sake of readers that do not honour visibility.
    site.settings = replace(site.settings, readers_honour_visibility=True)
    site.clean_beside_readers()
    table = site.table()
    table.insert(1)
    table.insert(2)
    first, second, third = table.writes(3)
    rows = [insert(write.id, 0, value) for write, value in ((first, 30), (second, 99), (third, 50))]
    table.write_file(f"delta_{first.id:07d}_{third.id:07d}", rows)
    first.commit()
    second.abort()
    outcome = compact(table)
    assert outcome.targets[0].startswith("delta_0000001_0000002")
    check(table, 1, 2, 30)
    site.clean(table.entity())
    check(table, 1, 2, 30)
    third.commit()
    check(table, 1, 2, 30, 50)
    assert second.id in site.admin.write_ids(site.database, table.name).aborted
    compact(table)
    check(table, 1, 2, 30, 50)
    assert set(clean(table)) == {CleaningState.CLEANED}
    check(table, 1, 2, 30, 50)
