"""What Hive itself wrote, merged, is what Hive itself read: rows and row ids, by a reader that shares no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds, compactor_list
from airflow_provider_acid.compaction.publish.staging import open_staging
from airflow_provider_acid.compaction.snapshot import read_flush_lengths
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, PartitionState
from airflow_provider_acid.plan.plan import Column, CompactionType, CopiedStripes, OrcOptions
from airflow_provider_acid.plan.planning import choose, plan_compaction
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_reader import Snapshot, as_hive_prints, read_table
from tests.harness.hive_tables import VERSIONS, HiveFixture, fixture_names, load_fixture
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import STRIPE_COPY
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import stripes_of

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
POLICY = CompactionPolicy(rewrite_single_delta=True, stripe_copy=STRIPE_COPY)

TABLES = [
    (version, name) for version in VERSIONS for name in fixture_names(version) if load_fixture(version, name).full_acid
]

MEDIAN_STRIPE_BYTES = 330
"""Of the fixtures' files: half of the stripes are small."""

CONVERTED = ("a_conv", "a_conv_part")
RAW = ("a_load",)
# Too few deltas in a partition, or all of one write id.
NOTHING_TO_MINOR = ("a_multi", "a_over", "a_stream", "a_stream_open", "acid_multi", "acid_over", "merge_src")


@pytest.mark.parametrize(
    ("stripe_copy", "types"),
    [
        pytest.param(CopiedStripes(mode), types, id=f"{mode}: {' then '.join(kind.value for kind in types)}")
        for mode, types in (
            ("never", (MAJOR,)),
            ("never", (MINOR,)),
            ("never", (MINOR, MAJOR)),
            ("always", (MAJOR,)),
            ("always", (MINOR, MAJOR)),
            ("auto", (MINOR, MAJOR)),
        )
    ],
)
@pytest.mark.parametrize(("version", "name"), TABLES)
def test_a_merged_table_holds_the_rows_and_row_ids_that_hive_read(
    version: str, name: str, stripe_copy: CopiedStripes, types: tuple[CompactionType, ...], tmp_path: Path
) -> None:
    """W-16, W-17: also converted tables, LOAD DATA and streams."""
    fixture = decided(load_fixture(version, name))
    location = fixture.unpack(tmp_path)
    policy = replace(POLICY, stripe_copy=stripe_copy, small_stripe_share=MEDIAN_STRIPE_BYTES / OrcOptions.stripe_bytes)
    done = [
        compact(fixture, partition, wanted, policy) for wanted in types for partition in partitions(fixture, location)
    ]
    assert (types[-1] in done) is (types != (MINOR,) or name not in (*CONVERTED, *RAW, *NOTHING_TO_MINOR))
    assert rows_by_id(fixture, location) == by_row_id(fixture.rows)


def decided(fixture: HiveFixture) -> HiveFixture:
    """The same after the metastore's reaper: what was open is aborted, and no reader sees another row than before."""
    aborted = fixture.aborted_write_ids | fixture.open_write_ids
    return replace(fixture, open_write_ids=frozenset(), aborted_write_ids=aborted)


def partitions(fixture: HiveFixture, location: Path) -> list[Path]:
    keys = fixture.definition.partition_keys
    return sorted(location.glob("/".join(["*"] * len(keys)))) if keys else [location]


def compact(
    fixture: HiveFixture, partition: Path, wanted: CompactionType, policy: CompactionPolicy = POLICY
) -> CompactionType | None:
    """Replace what a compaction of the partition reads by what it makes of that; the type that was carried out."""
    storage = LocalStorage(str(partition))
    write_ids = compactor_list(
        TableWriteIds("default.t", fixture.high_water_mark, fixture.open_write_ids, fixture.aborted_write_ids)
    )
    formats = {base.name: "compacted" for base in partition.glob("base_*") if (base / "_metadata_acid").exists()}
    directory = acid_directory(storage.list(), write_ids, None, formats)
    state = PartitionState(
        entity=Entity("default", fixture.name),
        location=str(partition),
        directory=directory,
        write_ids=write_ids,
        columns=tuple(Column(name, kind) for name, kind in fixture.definition.columns.items()),
        bucketed=fixture.definition.buckets > 0,
        table_parameters=fixture.definition.properties,
        flush_lengths=read_flush_lengths(storage, directory),
    )
    if choose(state.entity, directory, state.format, wanted, policy).nothing:
        return None
    plan = plan_compaction(state, AttemptNames("attempt", "_staging", 0), wanted, "test", policy)
    open_staging(storage, plan)
    result = run_plainly(plan)
    assert result.error is None
    assert all(file.rows_out == counted_out(vars(file)) for file in result.files)
    storage.delete([*plan.directories, *(file.path for file in plan.input_files)])
    for output in plan.outputs:
        storage.publish(plan.staged(output.kind), output.target)
    storage.delete([plan.staging])
    return plan.type


def counted_out(figures: Mapping[str, int]) -> int:
    return figures["rows_in"] - sum(figures[f"rows_{why}"] for why in ("aborted", "deleted", "repeated"))


def rows_by_id(fixture: HiveFixture, location: Path) -> dict[object, object]:
    """What Hive 3, and Hive 4 as well as Trino would read; they must agree on what this project wrote."""
    snapshot = Snapshot(fixture.high_water_mark, aborted_write_ids=fixture.aborted_write_ids)
    keys = list(fixture.definition.partition_keys)
    ways = [snapshot, replace(snapshot, deletes_of_own_bucket_only=True, deletes_of_later_statements_only=True)]
    read = [
        by_row_id(
            [as_hive_prints(row) for row in read_table(location, fixture.definition.columns, way, partition_keys=keys)]
        )
        for way in ways
    ]
    assert read[0] == read[1]
    return read[0]


def by_row_id(rows: object) -> dict[object, object]:
    """Rows by id and folder; the file's name below the partition is what a compaction changes."""
    assert isinstance(rows, list | tuple)
    found: dict[object, object] = {}
    for row in rows:
        folder = "/".join(part for part in row["file"].split("/")[:-1] if "=" in part)
        identity = (folder, *row["row__id"].values())
        found[identity] = {key: value for key, value in row.items() if key != "file"}
    assert len(found) == len(rows)
    return found


def test_char_varchar_and_decimal_keep_their_declaration(tmp_path: Path) -> None:
    fixture = load_fixture("3.1.3", "a_types")
    location = fixture.unpack(tmp_path)
    with (location / "delta_0000001_0000001_0000/bucket_00000").open("rb") as file:
        before = read_tail(file, "before")
    compact(fixture, location, MAJOR)
    with (location / "base_0000005/bucket_00000").open("rb") as file:
        after = read_tail(file, "after")
    assert after.schema == before.schema
    assert "vc:varchar(10),ch:char(5)" in str(after.schema)
    assert (after.calendar, after.compression, after.row_index_stride) == (
        before.calendar,
        before.compression,
        before.row_index_stride,
    )


@pytest.mark.parametrize(("version", "name", "writer_version"), [("3.1.3", "a_plain", 7), ("4.0.1", "acid_plain", 9)])
def test_stripes_that_hive_wrote_lie_in_one_file_with_rewritten_ones(
    version: str, name: str, writer_version: int, tmp_path: Path
) -> None:
    fixture = load_fixture(version, name)
    location = fixture.unpack(tmp_path)
    before = {stripe for path in location.glob("delta_*/bucket_*") for stripe in stripes_of(path.read_bytes())}
    compact(fixture, location, MAJOR, replace(POLICY, stripe_copy=CopiedStripes.ALWAYS))
    (base,) = location.glob("base_*/bucket_00000")
    found = Tail(base.read_bytes())
    assert {stripe in before for stripe in stripes_of(base.read_bytes())} == {True, False}
    assert (found.footer.writer, found.postscript.writerVersion) == (0, writer_version)
    assert found.postscript.compressionBlockSize >= 32768
    assert rows_by_id(fixture, location) == by_row_id(fixture.rows)
