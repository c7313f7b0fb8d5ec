"""What Hive itself wrote, merged, is what Hive itself read: rows and row ids, by a reader that shares no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.partition import AttemptNames, PartitionState
from airflow_provider_acid.acid.plan import Column, CompactionType
from airflow_provider_acid.acid.planning import plan_compaction
from airflow_provider_acid.acid.write_ids import TableWriteIds, compactor_list
from airflow_provider_acid.filesystem import storage_for
from airflow_provider_acid.spark_jobs.merge import merge_bucket
from airflow_provider_acid.spark_jobs.orc_tail import read_tail
from tests.harness.acid_reader import Snapshot, as_hive_prints, read_table
from tests.harness.hive_tables import HiveFixture, load_fixture

TABLES = [
    ("3.1.3", name)
    for name in (
        "a_abort",
        "a_buck",
        "a_evol",
        "a_merge",
        "a_multi",
        "a_over",
        "a_part",
        "a_part_buck",
        "a_plain",
        "a_stream",
        "a_types",
    )
] + [
    ("4.0.1", name)
    for name in (
        "acid_abort",
        "acid_buck",
        "acid_evol",
        "acid_merge",
        "acid_multi",
        "acid_over",
        "acid_part",
        "acid_partbuck",
        "acid_plain",
        "acid_types",
        "merge_src",
    )
]


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_a_merged_table_holds_the_rows_and_row_ids_that_hive_read(version: str, name: str, tmp_path: Path) -> None:
    fixture = load_fixture(version, name)
    location = fixture.unpack(tmp_path)
    keys = list(fixture.definition.partition_keys)
    for partition in location.glob("/".join(["*"] * len(keys))) if keys else [location]:
        compact(fixture, partition)
    snapshot = Snapshot(fixture.high_water_mark, aborted_write_ids=fixture.aborted_write_ids)
    rows = [
        as_hive_prints(row) for row in read_table(location, fixture.definition.columns, snapshot, partition_keys=keys)
    ]
    assert by_row_id(rows) == by_row_id(fixture.rows)


def compact(fixture: HiveFixture, partition: Path) -> None:
    """Replace the partition's directories by what the merge made of them."""
    storage = storage_for(str(partition))
    write_ids = compactor_list(
        TableWriteIds("default.t", fixture.high_water_mark, fixture.open_write_ids, fixture.aborted_write_ids)
    )
    formats = {base.name: "compacted" for base in partition.glob("base_*") if (base / "_metadata_acid").exists()}
    directory = acid_directory(storage.list(), write_ids, None, formats)
    if len(directory.current) < 2:
        return
    state = PartitionState(
        entity=Entity("default", fixture.name),
        location=str(partition),
        directory=directory,
        write_ids=write_ids,
        columns=tuple(Column(name, kind) for name, kind in fixture.definition.columns.items()),
        bucketed=fixture.definition.buckets > 0,
        table_parameters=fixture.definition.properties,
    )
    plan = plan_compaction(state, AttemptNames("attempt", "_staging", 0), CompactionType.MAJOR, "test")
    storage.make_directory("_staging/attempts")
    for output in plan.outputs:
        storage.make_directory(plan.staged(output.kind))
    for bucket in plan.buckets:
        for merged in merge_bucket(storage, plan, bucket, lambda done_bytes: None):
            if merged.attempt is not None:
                storage.publish(merged.attempt, f"{plan.staged(bucket.output)}/{merged.file.name}")
    storage.delete(plan.directories)
    for output in plan.outputs:
        storage.write_new(f"{plan.staged(output.kind)}/_metadata_acid", b"{}")
        storage.publish(plan.staged(output.kind), output.target)


def by_row_id(rows: object) -> dict[object, object]:
    """Rows by id and folder; the file's name below the partition is what a compaction changes."""
    assert isinstance(rows, list | tuple)
    found: dict[object, object] = {}
    for row in rows:
        folder = row["file"].rpartition("/")[0].rpartition("/")[0]
        found[(folder, *row["row__id"].values())] = {key: value for key, value in row.items() if key != "file"}
    assert len(found) == len(rows)
    return found


def test_char_varchar_and_decimal_keep_their_declaration(tmp_path: Path) -> None:
    fixture = load_fixture("3.1.3", "a_types")
    location = fixture.unpack(tmp_path)
    with (location / "delta_0000001_0000001_0000/bucket_00000").open("rb") as file:
        before = read_tail(file, "before")
    compact(fixture, location)
    with (location / "base_0000005/bucket_00000").open("rb") as file:
        after = read_tail(file, "after")
    assert after.schema == before.schema
    assert "vc:varchar(10),ch:char(5)" in str(after.schema)
    assert (after.calendar, after.compression, after.row_index_stride) == (
        before.calendar,
        before.compression,
        before.row_index_stride,
    )
