"""Directories as Hive 3.1.3 and 4.0.1 left them: what they read, what they named, what their Cleaners left."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory, base_format_files
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import BaseName, has_hidden_part, parse_directory_name
from airflow_provider_acid.acid.write_ids import (
    TableWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    cleaner_list,
    compactor_list,
)
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.plan.obsolete import deletable, highest_safe_write_id
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, PartitionState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.planning import nothing_for_a_major, plan_compaction
from tests.harness.reader_list import reader_list
from tests.unit.acid.case_files import listing_of, table_write_ids
from tests.unit.acid.test_obsolete import without

FOLDER = Path(__file__).parent / "hive_listings"
STATES = ("before", "after_major", "after_minor")


@dataclass(frozen=True)
class Partition:
    """One partition of a table that Hive wrote."""

    version: str
    table: str
    listing: Listing
    write_ids: TableWriteIds
    hive_reads: frozenset[str] | None

    def directory(self, write_ids: ValidWriteIdList) -> AcidDirectory:
        return acid_directory(self.listing, write_ids, self.txns, self.formats)

    @property
    def txns(self) -> ValidTxnList | None:
        return ValidTxnList(1_000_000) if self.version.startswith("4") else None

    @property
    def formats(self) -> dict[str, str]:
        return {path.partition("/")[0]: "compacted" for path in base_format_files(self.listing)}

    @property
    def is_full_acid(self) -> bool:
        return not self.table.startswith(("io_", "mm_"))


def partitions(state: str) -> dict[str, Partition]:
    return {
        f"{version}-{key}": partition
        for version in ("3.1.3", "4.0.1")
        for key, partition in _partitions(version, json.loads((FOLDER / f"hive-{version}-{state}.json").read_text()))
    }


def _partitions(version: str, tables: dict[str, Any]) -> Iterator[tuple[str, Partition]]:
    for table, data in tables.items():
        files: dict[str, dict[str, int]] = defaultdict(dict)
        for path, size in data["files"].items():
            partition, rest = split(path)
            files[partition][rest] = size
        for partition, content in files.items():
            reads = data["hive_reads"]
            if reads is not None:
                reads = frozenset(split(path)[1] for path in reads if split(path)[0] == partition)
            yield (
                f"{table}/{partition}",
                Partition(version, table, listing_of(content), table_write_ids(data["write_ids"]), reads),
            )


def split(path: str) -> tuple[str, str]:
    """A path's partition (the leading parts with ``=``) and the rest."""
    parts = path.split("/")
    depth = sum(1 for part in parts if "=" in part)
    return "/".join(parts[:depth]), "/".join(parts[depth:])


BEFORE, AFTER_MAJOR, AFTER_MINOR = (partitions(state) for state in STATES)
EVERY = {
    f"{state}-{name}": partition
    for state, found in zip(STATES, (BEFORE, AFTER_MAJOR, AFTER_MINOR), strict=True)
    for name, partition in found.items()
}


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name].hive_reads is not None])
def test_every_file_that_hive_reads_rows_from_is_current(name: str) -> None:
    partition = EVERY[name]
    directory = partition.directory(reader_list(partition.write_ids))
    current = {
        file.path for part in directory.current for file in part.files if not part.path.startswith("delete_delta_")
    } | {file.path for file in directory.originals}
    assert partition.hive_reads is not None
    assert partition.hive_reads <= current
    assert not directory.unknown_files


@pytest.mark.parametrize("name", AFTER_MAJOR)
def test_after_a_major_compaction_there_is_a_base_and_nothing_else(name: str) -> None:
    partition = AFTER_MAJOR[name]
    directory = partition.directory(reader_list(partition.write_ids))
    assert directory.obsolete == directory.aborted == directory.invisible == ()
    if directory.base is None:
        assert nothing_for_a_major_of(partition) is not None
    else:
        assert directory.base.compacted
        assert (directory.deltas, directory.originals) == ((), ())


def nothing_for_a_major_of(partition: Partition) -> str | None:
    return nothing_for_a_major(partition.directory(compactor_list(partition.write_ids)), CompactionPolicy())


def output_of(after: Partition) -> Listing:
    """The visible part of what Hive's compaction left; ``.crc`` side files do not matter here."""
    return Listing(
        tuple(file for file in after.listing.files if not has_hidden_part(file.path.rpartition("/")[0])),
        after.listing.directories,
    )


def with_output(before: Partition, after: Partition) -> Partition:
    """The partition between Worker and Cleaner: sources and output side by side."""
    files = {file.path: file.size_bytes for file in (*before.listing.files, *output_of(after).files)}
    return Partition(before.version, before.table, listing_of(files), before.write_ids, before.hive_reads)


@pytest.mark.parametrize(
    ("kind", "name"), [("major", name) for name in AFTER_MAJOR] + [("minor", name) for name in AFTER_MINOR]
)
def test_the_cleaner_leaves_what_hives_own_cleaner_left(kind: str, name: str) -> None:
    before = BEFORE[name]
    after = (AFTER_MAJOR if kind == "major" else AFTER_MINOR)[name]
    both = with_output(before, after)
    highest = compactor_list(before.write_ids).high_water_mark
    write_ids = cleaner_list(before.write_ids, highest)
    deleted = deletable(both.listing, write_ids, both.txns, both.formats)
    remaining = without(both.listing, deleted)
    assert set(remaining.directories) == set(after.listing.directories)
    assert {file.path for file in remaining.files} == {file.path for file in after.listing.files}


def is_worth_a_major(partition: Partition) -> bool:
    return partition.is_full_acid and nothing_for_a_major_of(partition) is None


WORTH = [name for name in BEFORE if is_worth_a_major(BEFORE[name])]


def plan_of(partition: Partition, wanted: CompactionType = CompactionType.MAJOR) -> CompactionPlan:
    write_ids = compactor_list(partition.write_ids)
    state = PartitionState(
        entity=Entity("testing", partition.table),
        location="file:/warehouse/t",
        directory=partition.directory(write_ids),
        write_ids=write_ids,
        columns=(),
        bucketed="buck" in partition.table,
        table_parameters={},
    )
    return plan_compaction(state, AttemptNames("a", "_a", 0), wanted, "asked for")


@pytest.mark.parametrize("name", WORTH)
def test_a_major_has_the_name_and_the_buckets_of_hives_own(name: str) -> None:
    plan = plan_of(BEFORE[name])
    after = AFTER_MAJOR[name].directory(reader_list(AFTER_MAJOR[name].write_ids)).base
    assert after is not None
    assert plan.targets == (str(BaseName(after.write_id)),)
    hive_buckets = {int(file.path.rpartition("bucket_")[2]) for file in after.files}
    assert {bucket.bucket for bucket in plan.buckets} <= hive_buckets


MINOR = [name for name in AFTER_MINOR if BEFORE[name].is_full_acid]


def minor_of(partition: Partition) -> CompactionPlan | None:
    try:
        return plan_of(partition, CompactionType.MINOR)
    except RefusedError:
        return None


@pytest.mark.parametrize("name", [name for name in MINOR if name.startswith("4")])
def test_a_minor_makes_the_deltas_that_hive_4_makes_or_leaves_them_where_hive_does(name: str) -> None:
    plan = minor_of(BEFORE[name])
    before = BEFORE[name].directory(compactor_list(BEFORE[name].write_ids))
    after = AFTER_MINOR[name].directory(reader_list(AFTER_MINOR[name].write_ids))
    if plan is None:
        assert [delta.path for delta in after.deltas] == [delta.path for delta in before.deltas]
    else:
        assert set(plan.targets) == {str(replace(delta.name, visibility_txn_id=0)) for delta in after.deltas}
        assert plan.type is CompactionType.MINOR


@pytest.mark.parametrize("name", [name for name in MINOR if name.startswith("3")])
def test_a_minor_has_the_range_and_the_buckets_of_hive_3s(name: str) -> None:
    plan = minor_of(BEFORE[name])
    after = AFTER_MINOR[name].directory(reader_list(AFTER_MINOR[name].write_ids))
    if plan is None:
        return
    if plan.type is CompactionType.MAJOR:
        # Hive leaves one delta with aborted rows as it is.
        aborted_inside = "holds rows of aborted write ids" in plan.reason and "a_stream" in name
        needs_a_base = "done as a major, because it has" in plan.reason and (after.originals or "load" in name)
        assert aborted_inside or needs_a_base
        return
    assert set(plan.targets) <= {delta.path for delta in after.deltas}
    for output in plan.outputs:
        files = next(delta.files for delta in after.deltas if delta.path == output.target)
        hive_buckets = {int(file.path.rpartition("bucket_")[2]) for file in files}
        assert {bucket.bucket for bucket in plan.buckets if bucket.output is output.kind} <= hive_buckets


def test_a_streaming_delta_whose_abort_hive_3_forgot_keeps_it() -> None:
    partition = BEFORE["3.1.3-a_stream_open/"]
    mark = compactor_list(partition.write_ids).high_water_mark
    assert mark == 3
    after = partition.directory(cleaner_list(partition.write_ids, mark))
    assert highest_safe_write_id(after, partition.write_ids.aborted, mark) == 1


def test_the_listings_hold_every_kind_of_directory() -> None:
    names = {path.partition("/")[0] for partition in EVERY.values() for path in partition.listing.directories}
    kinds = {type(parse_directory_name(name)).__name__ for name in names}
    assert kinds == {"BaseName", "DeltaName"}
    assert len(EVERY) > 120
    assert len(WORTH) > 25
    assert sum(1 for name in MINOR if minor_of(BEFORE[name])) > 20
