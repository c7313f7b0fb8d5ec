"""Columns that changed their names: what a real Hive 3.1.3 and 4.0.1 were seen to read decides what is merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.plan.plan import SyntheticIds
from tests.unit.merge.acid_files import Partition, bucket_property, insert

HIVE_3, HIVE_4 = "base_0000009", "base_0000009_v0000012"
ORIGINAL = SyntheticIds(0, bucket_property())

# Names in the file, and what Hive 3 reads of (1, "one") as columns a and b.
NAMES: dict[tuple[str, ...], tuple[object, object]] = {
    ("a", "b"): (1, "one"),
    ("_col0", "_col1"): (1, "one"),
    ("_col1", "_col0"): (1, "one"),
    ("old", "b"): (None, "one"),
    ("A", "B"): (None, None),
    ("_col0", "b"): (None, "one"),
    ("b", "a"): ("one", 1),
}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    partition = Partition(tmp_path, ("int", "string"))
    partition.names = ["a", "b"]
    return partition


def write(
    partition: Partition, has_ids: bool, names: tuple[str, ...], kinds: tuple[str, ...] = ("int", "string")
) -> None:
    if not has_ids:
        partition.write_plain("000000_0", [(1, "one")], ORIGINAL, names=names, types=kinds)
        return
    now, partition.names = partition.names, list(names)
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1, "one")], types=kinds)
    partition.names = now


@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("names", NAMES)
def test_what_hive_3_reads_by_name_is_merged_only_where_that_is_the_position(
    names: tuple[str, ...], has_ids: bool, partition: Partition
) -> None:
    write(partition, has_ids, names)
    if NAMES[names] == (1, "one"):
        assert [event[5] for event in partition.read(partition.merge(target=HIVE_3))] == [(1, "one")]
        return
    text = "has a column .* where the table has [ab]; Hive 3 finds columns by name and reads NULL"
    with pytest.raises(UnsupportedTableError, match=text):
        partition.merge(target=HIVE_3)
    assert partition.attempts() == []


@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("names", NAMES)
def test_what_hive_4_reads_by_position_is_merged(names: tuple[str, ...], has_ids: bool, partition: Partition) -> None:
    write(partition, has_ids, names)
    assert [event[5] for event in partition.read(partition.merge(target=HIVE_4))] == [(1, "one")]


@pytest.mark.parametrize("target", [HIVE_3, HIVE_4])
@pytest.mark.parametrize("field", ["X", "y", "_col0"])
def test_fields_of_structs_are_found_by_name_by_every_hive(field: str, target: str, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("struct<x:int>",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, (1,))], types=(f"struct<{field}:int>",))
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, (1,))])
    with pytest.raises(UnsupportedTableError, match="has column c0 as struct"):
        partition.merge(target=target)


def test_a_minor_compaction_looks_at_names_too(partition: Partition) -> None:
    write(partition, True, ("old", "b"))
    plan = partition.minor_plan()
    with pytest.raises(UnsupportedTableError, match="has a column old where the table has a"):
        partition.carry_out(plan, plan.buckets[0].output)


# 3.1.3 reads the float 0.1 as the double 0.1; 4.0.1 and Trino as 0.10000000149011612.
FLOATS = [
    ("float", "double", 0.1, 0.10000000149011612),
    ("array<float>", "array<double>", [0.1, None], [0.10000000149011612, None]),
    ("struct<a:int,f:float>", "struct<a:int,f:double,b:int>", (1, 0.1), (1, 0.10000000149011612, None)),
]


@pytest.mark.parametrize(("was", "becomes", "value", "expected"), FLOATS)
def test_floats_that_became_double_are_merged_where_all_engines_read_the_same(
    was: str, becomes: str, value: object, expected: object, tmp_path: Path
) -> None:
    partition = Partition(tmp_path, (becomes,))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, value)], types=(was,))
    assert partition.read(partition.merge(target=HIVE_4))[0][5] == (expected,)
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, expected)])
    with pytest.raises(
        UnsupportedTableError, match="has column c0 as .*double.*, files before it as .*float.*, the table has .*double"
    ):
        partition.merge(target=HIVE_3)
