"""Insert-only tables hold the same rows before, while and after they are compacted, minor and major."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings, LockTimeoutAction
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.insert_only_reader import read_table
from tests.integration.compaction_site import Site, StepRecorder, fingerprint
from tests.integration.insert_only_tables import (
    FORMATS,
    InsertOnly,
    compact,
    compacted,
    orc_file,
    text_file,
    unsuffixed,
)

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR

FIXTURES = {
    "3.1.3": ("io_orc", "io_parquet", "io_text", "io_abort"),
    "4.0.1": ("mm_plain", "mm_part", "mm_abort"),
}
CASES = [(version, name, type) for version, names in FIXTURES.items() for name in names for type in (MINOR, MAJOR)]

NOTHING = {
    ("io_parquet", "p=2", MINOR),
    ("io_parquet", "p=2", MAJOR),
    ("io_text", None, MINOR),
    ("mm_part", "p=y", MINOR),
}
"""One directory, or one delta beside a base: there is nothing to merge."""


def read_fixture(site: Site, table: FixtureTable, *, check_visibility: bool = True) -> list[str]:
    definition = table.fixture.definition
    return comparable(
        read_table(
            table.location,
            definition.input_format,
            definition.columns,
            snapshot_now(site.admin, table.database, table.name, check_visibility=check_visibility),
            partition_keys=definition.partition_keys,
        )
    )


@pytest.mark.parametrize(("version", "name", "type"), CASES)
def test_readers_see_hives_rows_at_every_step(site: Site, version: str, name: str, type: CompactionType) -> None:
    table = register(site.server, name, version, site.database)
    expected = comparable(table.rows)

    def read_both_ways(step: Step) -> None:
        assert read_fixture(site, table) == expected, step
        assert read_fixture(site, table, check_visibility=False) == expected, step

    read_both_ways(Step.RECOVERED)
    for partition in table.partitions or (None,):
        entity, recorder = Entity(table.database, name, partition), StepRecorder(read_both_ways)
        folder = table.location / (partition or "")
        before = {child.name for child in folder.iterdir()}
        if (name, partition, type) in NOTHING:
            assert compact(site, entity, type, recorder).state is OutcomeState.NOTHING_TO_MERGE
            continue
        target = compacted(site, entity, type, recorder)
        bases = {child for child in before if type is MINOR and child.startswith("base_")}
        assert {child.name for child in folder.iterdir()} == {target} | bases
        assert {Step.PUBLISHED, Step.COMMITTED, Step.FILES_DELETED, Step.MARKED_CLEANED} <= set(recorder.steps)
    read_both_ways(Step.MARKED_CLEANED)


@pytest.mark.parametrize("format", FORMATS)
def test_m_01_a_second_major_changes_nothing(site: Site, format: str) -> None:
    """M-01"""
    table = InsertOnly(site, format)
    table.insert(1, 2)
    table.insert(3)
    target = table.compact(MAJOR)
    assert unsuffixed(target) == "base_0000002"
    table.refuses_to_merge(MAJOR)
    assert table.values() == [1, 2, 3]


@pytest.mark.parametrize("format", FORMATS)
def test_m_02_original_files_also_of_union_all_become_a_base(site: Site, format: str) -> None:
    """M-02 (named as Hive names a base of full-ACID originals: nothing in it has a write id)."""
    site.settings = CompactionSettings(mm_allow_originals=True)
    table = InsertOnly(site, format)
    table.table.write().commit()
    originals = {"000000_0": [1], "000000_0_copy_1": [2, 3], "HIVE_UNION_SUBDIR_1/000000_0": [4, 5], "1/000001_0": [6]}
    for name, values in originals.items():
        file = table.table.location / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(table.file(values))
    assert table.values() == [1, 2, 3, 4, 5, 6]
    assert unsuffixed(table.compact(MAJOR)) == "base_-9223372036854775808"
    assert len(table.table.directories()) == 1
    table.insert(7)
    assert unsuffixed(table.compact(MAJOR)) == "base_0000002"


def test_m_03_converted_data_in_one_delta_is_not_compacted(site: Site) -> None:
    """M-03"""
    table = InsertOnly(site)
    table.insert(1, 2, 3)
    table.refuses_to_merge(MAJOR)
    table.refuses_to_merge(MINOR)


@pytest.mark.parametrize("format", ["ORC", "text"])
def test_m_04_originals_and_deltas_become_a_base_and_a_minor_leaves_them(site: Site, format: str) -> None:
    """M-04"""
    site.settings = CompactionSettings(mm_allow_originals=True)
    table = InsertOnly(site, format)
    (table.table.location / "000000_0").write_bytes(table.file([1, 2]))
    table.insert(3)
    table.insert(4)
    assert unsuffixed(table.compact(MINOR)) == "delta_0000001_0000002"
    assert (table.table.location / "000000_0").exists()
    assert table.values() == [1, 2, 3, 4]
    assert unsuffixed(table.compact(MAJOR)) == "base_0000002"
    assert not (table.table.location / "000000_0").exists()
    assert table.values() == [1, 2, 3, 4]


@pytest.mark.parametrize("format", ["ORC", "text"])
def test_m_04_originals_replaced_by_an_overwrite_stay_replaced(site: Site, format: str) -> None:
    """M-04: the overwrite's base keeps its name."""
    table = InsertOnly(site, format)
    (table.table.location / "000000_0").write_bytes(table.file([1, 2]))
    table.overwrite(9)
    outcome = compact(site, table.table.entity(), MAJOR)
    assert outcome.state is OutcomeState.NOTHING_TO_MERGE
    assert table.values() == [9]
    assert (table.table.location / "base_0000001" / "000000_0").exists()


def test_m_05_a_bucketed_table_keeps_a_file_for_every_bucket(site: Site) -> None:
    """M-05"""
    table = InsertOnly(site, "text", bucket_columns=("v",), buckets=64)
    for number in (3, 40):
        write = table.table.write()
        table.put(write, {f"{bucket:06d}_0": text_file([bucket]) if bucket == number else b"" for bucket in range(64)})
        write.commit()
    target = table.compact(MAJOR)
    assert table.files(target) == [f"{bucket:06d}_0" for bucket in range(64)]
    assert table.values() == [3, 40]


def test_m_06_an_open_write_id_holds_back_what_is_above_it(site: Site) -> None:
    """M-06"""
    table = InsertOnly(site)
    writes = table.table.writes(5)
    for write in writes:
        table.put(write, {"000000_0": text_file([write.id])})
    for write in (*writes[:2], *writes[3:]):
        write.commit()
    assert unsuffixed(compact(site, table.table.entity(), MAJOR).targets[0]) == "base_0000002"
    assert table.values() == [1, 2, 4, 5]
    writes[2].abort()
    site.clean(table.table.entity())
    assert unsuffixed(table.compact(MAJOR)) == "base_0000005"
    assert table.values() == [1, 2, 4, 5]
    assert len(table.table.directories()) == 1


def test_m_07_every_partition_for_itself(site: Site) -> None:
    """M-07 (the base is named by the partition's own last write id, as Hive 3 does)."""
    table = InsertOnly(site, partitions=("p=1", "p=2", "p=3"))
    for number, partition in enumerate(("p=1", "p=2", "p=1", "p=3", "p=2", "p=1"), 1):
        table.insert(number, partition=partition)
    assert unsuffixed(table.compact(MAJOR, "p=1")) == "base_0000006"
    assert unsuffixed(table.compact(MAJOR, "p=2")) == "base_0000005"
    table.refuses_to_merge(MAJOR, "p=3")
    table.insert(7, partition="p=2")
    table.insert(8, partition="p=2")
    table.refuses_to_merge(MAJOR, "p=1")
    assert unsuffixed(table.compact(MAJOR, "p=2")) == "base_0000008"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("buckets", [-1, 2])
def test_m_08_a_minor_makes_one_delta_with_a_file_per_bucket(site: Site, format: str, buckets: int) -> None:
    """M-08, M-09 (the formats that are compacted)."""
    table = InsertOnly(site, format, buckets=buckets, bucket_columns=("v",) if buckets > 0 else ())
    for number in range(3):
        write = table.table.write()
        for bucket in range(max(buckets, 1)):
            table.put(write, {f"{bucket:06d}_0": table.file([number * 10 + bucket])})
        write.commit()
    target = table.compact(MINOR)
    assert unsuffixed(target) == "delta_0000001_0000003"
    copies = ["", "_copy_1", "_copy_2"] if format == "Parquet" else [""]
    assert table.files(target) == [f"{bucket:06d}_0{copy}" for bucket in range(max(buckets, 1)) for copy in copies]
    assert table.table.directories() == [target]


def test_m_10_minors_and_majors_in_every_order(site: Site) -> None:
    """M-10"""
    table = InsertOnly(site)
    for number in range(10):
        table.insert(number)
    assert unsuffixed(table.compact(MINOR)) == "delta_0000001_0000010"
    for number in range(10, 13):
        table.insert(number)
    assert unsuffixed(table.compact(MINOR)) == "delta_0000001_0000013"
    for number in range(13, 16):
        table.insert(number)
    assert unsuffixed(table.compact(MAJOR)) == "base_0000016"
    for number in range(16, 19):
        table.insert(number)
    assert unsuffixed(table.compact(MINOR)) == "delta_0000017_0000019"
    assert sorted(map(unsuffixed, table.table.directories())) == ["base_0000016", "delta_0000017_0000019"]
    assert table.values() == list(range(19))


def test_m_11_files_from_before_a_column_was_added_keep_to_themselves(site: Site) -> None:
    """M-11"""
    table = InsertOnly(site, "ORC", columns={"v": "bigint", "s": "string"})
    for number, schema in enumerate(["struct<v:bigint>", "struct<v:bigint,s:string>"] * 2):
        write = table.table.write()
        table.put(write, {"000000_0": orc_file([number], schema)})
        write.commit()
    target = table.compact(MINOR)
    assert table.files(target) == ["000000_0", "000000_0_copy_1"]
    rows = table.rows()
    assert sorted((row["v"], row["s"]) for row in rows) == [("0", None), ("1", "s1"), ("2", None), ("3", "s3")]


@pytest.mark.parametrize("type", [MINOR, MAJOR])
def test_m_12_aborted_directories_are_no_inputs_and_go_with_the_cleaning(site: Site, type: CompactionType) -> None:
    """M-12, M-14"""
    table = InsertOnly(site)
    for number in range(1, 10):
        write = table.write(number)
        (write.abort if 4 <= number <= 6 else write.commit)()
    target = table.compact(type)
    assert unsuffixed(target) == {MINOR: "delta_0000001_0000009", MAJOR: "base_0000009"}[type]
    assert table.table.directories() == [target]
    assert table.values() == [1, 2, 3, 7, 8, 9]
    table.insert(10)
    assert unsuffixed(table.compact(type)) == {MINOR: "delta_0000001_0000010", MAJOR: "base_0000010"}[type]
    assert table.values() == [1, 2, 3, 7, 8, 9, 10]


def test_m_15_a_major_on_top_of_an_uncleaned_one_has_nothing_to_do(site: Site) -> None:
    """M-15"""
    table = InsertOnly(site)
    table.insert(1)
    table.write(2).abort()
    table.insert(3)
    assert compact(site, table.table.entity(), MINOR).state is OutcomeState.COMPACTED
    table.insert(4)
    assert compact(site, table.table.entity(), MAJOR).state is OutcomeState.COMPACTED
    assert table.values() == [1, 3, 4]
    before = fingerprint(table.table.location)
    assert compact(site, table.table.entity(), MAJOR).state is OutcomeState.SKIPPED, "a row has the same water mark"
    assert fingerprint(table.table.location) == before


def test_m_16_an_overwrite_from_union_all_keeps_its_rows(site: Site) -> None:
    """M-16"""
    table = InsertOnly(site)
    table.insert(1)
    write = table.table.write()
    parts = {f"HIVE_UNION_SUBDIR_{part}/000000_0": text_file([part * 10, part * 10 + 1]) for part in (1, 2)}
    table.put(write, parts, overwrite=True)
    write.commit()
    outcome = compact(site, table.table.entity(), MAJOR)
    assert outcome.state is OutcomeState.NOTHING_TO_MERGE, "a base alone stays as it is"
    site.clean(table.table.entity())
    assert table.table.directories() == ["base_0000002"]
    table.insert(30)
    assert unsuffixed(table.compact(MAJOR)) == "base_0000003"
    assert table.values() == [10, 11, 20, 21, 30]


def test_m_17_the_initiator_asks_for_a_major_without_a_base_and_for_a_minor_with_one(site: Site) -> None:
    """M-17"""
    prefix = "compactorthreshold.hive.compactor.delta."
    table = InsertOnly(site, properties={prefix + "num.threshold": "4", prefix + "pct.threshold": "1.0"})
    for number in range(20):
        table.insert(number)
    (due,) = site.evaluate(f"{site.database}.t").due
    assert due.type is MAJOR, due
    table.compact(due.type)
    for number in range(20, 25):
        table.insert(number)
    (due,) = site.evaluate(f"{site.database}.t").due
    assert due.type is MINOR, due
    table.compact(due.type)
    assert sorted(map(unsuffixed, table.table.directories())) == ["base_0000020", "delta_0000021_0000025"]


def test_lines_that_lack_their_end_and_compressed_text_stay_what_they_are(site: Site) -> None:
    table = InsertOnly(site)
    contents = {"000000_0": b"1\n2", "000001_0": b"3\r", "000002_0.gz": gzip.compress(b"4\n5")}
    for files in (contents, {"000000_0": b"\n6\n", "000001_0": b"\xef\xbb\xbf7", "000002_0.gz": gzip.compress(b"8")}):
        write = table.table.write()
        table.put(write, files)
        write.commit()
    rows = table.rows()
    target = compacted(site, table.table.entity(), MAJOR)
    again = table.rows()
    assert comparable(again) == comparable(rows)
    assert len(rows) == 9
    assert table.files(target) == ["000000_0", "000001_0", "000001_0_copy_1", "000002_0.gz", "000002_0_copy_1.gz"]


def test_header_lines_stay_at_the_beginning_of_files(site: Site) -> None:
    table = InsertOnly(site, properties={"skip.header.line.count": "1"})
    for number in range(2):
        write = table.table.write()
        table.put(write, {"000000_0": f"header\n{number}\n".encode()})
        write.commit()
    target = compacted(site, table.table.entity(), MAJOR)
    assert table.files(target) == ["000000_0", "000000_0_copy_1"]
    contents = sorted(file.read_bytes() for file in Path(table.table.location, target).glob("0*"))
    assert contents == [b"header\n0\n", b"header\n1\n"]


@pytest.mark.parametrize("honour", [False, True])
def test_a_minor_waits_for_readers_whose_snapshot_has_less_than_its_delta(site: Site, honour: bool) -> None:
    table = InsertOnly(site)
    for value in (1, 2):
        table.insert(value)
    third = table.write(3)
    reader = site.reader(table.table)
    third.commit()
    settings = CompactionSettings(
        readers_honour_visibility=honour,
        minor_lock_wait_seconds=0.3,
        minor_lock_timeout_action=LockTimeoutAction.REFUSE,
    )
    site.settings = settings
    outcome = compact(site, table.table.entity(), MINOR)
    assert outcome.state is (OutcomeState.COMPACTED if honour else OutcomeState.REFUSED), outcome
    site.end(reader, site.admin.commit)


def test_original_files_that_hive_ignores_do_not_become_rows(site: Site) -> None:
    table = InsertOnly(site)
    for value in (1, 2):
        table.insert(value)
    stray = table.table.location / "000000_0"
    stray.write_bytes(table.file([9]))
    before = fingerprint(table.table.location)
    outcome = compact(site, table.table.entity(), MAJOR)
    assert outcome.state is OutcomeState.REFUSED
    assert "mm_allow_originals" in outcome.message
    assert fingerprint(table.table.location) == before
    assert unsuffixed(compacted(site, table.table.entity(), MINOR)) == "delta_0000001_0000002"
    assert stray.exists()
