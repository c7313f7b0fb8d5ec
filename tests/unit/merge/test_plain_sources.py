"""Files without ACID columns get their ids as Hive gives them; of streamed files only the committed part counts."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.files.source_files import FilePrefix
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows import merge_sources
from airflow_provider_acid.plan.plan import SourceFile, SyntheticIds
from tests.unit.merge.acid_files import Event, Partition, bucket_property, delete, insert

ORIGINAL = SyntheticIds(0, bucket_property())
SMALL_STRIPES: dict[str, Any] = {"stripe_size": 4096, "batch_size": 100}
# The least number of rows that makes ORC's C++ writer end several stripes of the smallest size.
ROWS = 40_000
RANDOM = random.Random(5)


@pytest.fixture(params=["arrow", "exact"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: request.param == "arrow")
    monkeypatch.setattr(merge_rows, "ExactRows" if request.param == "arrow" else "ArrowRows", None)
    return str(request.param)


@pytest.fixture
def partition(tmp_path: Path, way: str) -> Partition:
    return Partition(tmp_path)


def numbered(ids: SyntheticIds, values: list[int], first_row_id: int = 0) -> list[Event]:
    """What rows become that have no ids of their own."""
    return [
        (0, ids.write_id, ids.bucket_property, row_id, ids.write_id, (value,))
        for row_id, value in enumerate(values, first_row_id)
    ]


def rows(values: list[int]) -> list[tuple[int]]:
    return [(value,) for value in values]


def test_original_rows_are_numbered_through_the_files_of_a_bucket(partition: Partition) -> None:
    """L-04, L-08, L-12"""
    for path, values in (("000000_0", [9, 8]), ("000000_0_copy_1", [7]), ("sub/000000_0", [6, 5])):
        partition.write_plain(path, rows(values), ORIGINAL)
    merged = partition.merge()
    assert partition.read(merged) == numbered(ORIGINAL, [9, 8, 7, 6, 5])
    assert (merged.file.rows_in, merged.file.rows_out) == (5, 5)


def test_numbers_run_on_through_stripes_and_empty_files(partition: Partition) -> None:
    values = [RANDOM.getrandbits(60) for _ in range(ROWS)]
    file = partition.path / partition.write_plain("000000_0", rows(values), ORIGINAL, **SMALL_STRIPES).path
    with file.open("rb") as opened:
        assert len(read_tail(opened, "source").stripes) > 3
    partition.write_plain("000000_0_copy_1", [], ORIGINAL)
    (partition.path / "000000_0_copy_2").touch()
    partition.rows[0].append(SourceFile("000000_0_copy_2", 0, synthetic=ORIGINAL))
    partition.write_plain("000000_0_copy_3", rows([1]), ORIGINAL)
    assert partition.read(partition.merge()) == numbered(ORIGINAL, [*values, 1])


def test_numbers_begin_anew_with_every_load_and_statement(partition: Partition) -> None:
    """L-01, L-02, L-05: a base by LOAD OVERWRITE, then LOAD DATA in two statements, then an insert."""
    loads = {
        "base_0000003": SyntheticIds(3, bucket_property()),
        "delta_0000004_0000004_0000": SyntheticIds(4, bucket_property()),
        "delta_0000004_0000004_0001": SyntheticIds(4, bucket_property(statement=1)),
    }
    for folder, ids in loads.items():
        partition.write_plain(f"{folder}/000000_0", rows([ids.bucket_property, ids.write_id]), ids)
        partition.write_plain(f"{folder}/000000_0_copy_1", rows([5]), ids)
    partition.write("delta_0000005_0000005_0000", [insert(5, 0, 1)])
    expected = [event for ids in loads.values() for event in numbered(ids, [ids.bucket_property, ids.write_id, 5])]
    assert partition.read(partition.merge()) == [*expected, insert(5, 0, 1)]


def test_every_bucket_counts_for_itself(partition: Partition) -> None:
    """L-07"""
    ids = SyntheticIds(0, bucket_property(1))
    partition.write_plain("000000_0", rows([1, 2]), ORIGINAL)
    partition.write_plain("000001_0", rows([3, 4]), ids, bucket=1)
    assert ids.bucket_property == 536_936_448
    assert partition.read(partition.merge(bucket=1)) == numbered(ids, [3, 4])


def test_recorded_deletes_hit_the_numbers_rows_got(partition: Partition) -> None:
    """L-03, L-13"""
    load = SyntheticIds(2, bucket_property(statement=1))
    partition.write_plain("000000_0", rows([10, 11]), ORIGINAL)
    partition.write_plain("000000_0_copy_1", rows([12, 13]), ORIGINAL)
    partition.write_plain("delta_0000002_0000002_0001/000000_0", rows([20, 21]), load)
    partition.write(
        "delete_delta_0000003_0000003_0000", [delete(0, 0, 3), delete(0, 2, 3), delete(2, 1, 3, statement=1)]
    )
    merged = partition.merge()
    assert [(event[1], event[3], event[5]) for event in partition.read(merged)] == [
        (0, 1, (11,)),
        (0, 3, (13,)),
        (2, 0, (20,)),
    ]
    assert (merged.file.rows_in, merged.file.rows_deleted) == (6, 3)


def test_rows_of_an_aborted_load_are_dropped_but_counted(partition: Partition) -> None:
    """L-06"""
    partition.write_plain("delta_0000002_0000002_0000/000000_0", rows([1, 2]), SyntheticIds(2, bucket_property()))
    partition.write_plain("delta_0000003_0000003_0000/000000_0", rows([3]), SyntheticIds(3, bucket_property()))
    merged = partition.merge(aborted=[2])
    assert [event[1] for event in partition.read(merged)] == [3]
    assert (merged.file.rows_in, merged.file.rows_aborted, merged.file.rows_out) == (3, 2, 1)


def test_columns_are_taken_by_position_and_missing_ones_are_null(tmp_path: Path, way: str) -> None:
    """W-38"""
    kinds = ("bigint", "string", "array<int>", "decimal(10,2)")
    partition = Partition(tmp_path, kinds)
    partition.write_plain("000000_0", [(1, "a")], ORIGINAL, types=("int", "varchar(3)"))
    partition.write_plain("000000_0_copy_1", [(2, "b", [1, None])], ORIGINAL, types=kinds[:3])
    partition.write_plain("000000_0_copy_2", [(3, "", None, "1.50")], ORIGINAL)
    assert [event[5] for event in partition.read(partition.merge())] == [
        (1, "a", None, None),
        (2, "b", [1, None], None),
        (3, "", None, "1.50"),
    ]


def test_a_file_with_ids_where_none_belong_is_refused(partition: Partition) -> None:
    source = partition.write("sub", [insert(1, 0, 1)])
    partition.rows[0] = [replace(source, synthetic=ORIGINAL)]
    with pytest.raises(UnsupportedTableError, match="sub/bucket_00000: has the six columns of an ACID file where"):
        partition.merge()


def test_a_file_without_ids_where_some_belong_is_refused(partition: Partition) -> None:
    source = partition.write_plain("delta_0000001_0000001/bucket_00000", rows([1]), ORIGINAL)
    partition.rows[0] = [replace(source, synthetic=None)]
    with pytest.raises(UnsupportedTableError, match="bucket_00000: .* has not the six columns of one"):
        partition.merge()


def test_files_in_an_order_that_numbers_cannot_follow_are_refused(partition: Partition) -> None:
    partition.write_plain("000000_0", rows([1]), ORIGINAL)
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1)])
    partition.write_plain("000000_0_copy_1", rows([2]), ORIGINAL)
    with pytest.raises(CorruptFileError, match="000000_0_copy_1: .* does not come after"):
        partition.merge()


def streamed(partition: Partition, events: list[Event]) -> tuple[Path, int]:
    """A file that holds these committed events; its path and length."""
    source = partition.write("delta_0000001_0000009", events)
    partition.rows.clear()
    return partition.path / source.path, source.size_bytes


@pytest.mark.parametrize("garbage", [b"", b"ORC", b"\xff" * 100_000])
def test_only_the_committed_part_of_a_streamed_file_is_read(partition: Partition, garbage: bytes) -> None:
    committed = [insert(1, row_id, row_id) for row_id in range(50)]
    path, length = streamed(partition, committed)
    path.write_bytes(path.read_bytes() + garbage)
    partition.add(path.parent.name, committed_bytes=length)
    merged = partition.merge()
    assert partition.read(merged) == committed
    assert merged.file.rows_in == 50


def test_a_tail_behind_the_committed_one_does_not_count(partition: Partition) -> None:
    """The whole file is a readable ORC file, too, but with rows nobody committed."""
    committed = [insert(1, 0, 5)]
    path, length = streamed(partition, committed)
    later = Partition(partition.path / "later")
    later.write("delta_0000001_0000009", [insert(1, 0, 6), insert(1, 1, 7)])
    path.write_bytes(path.read_bytes() + (later.path / "delta_0000001_0000009/bucket_00000").read_bytes())
    partition.add(path.parent.name, committed_bytes=length)
    assert partition.read(partition.merge()) == committed


def test_a_streamed_file_without_commits_holds_no_rows(partition: Partition) -> None:
    path, _ = streamed(partition, [insert(1, 0, 1)])
    partition.add(path.parent.name, committed_bytes=0)
    partition.write("delta_0000010_0000010_0000", [insert(10, 0, 1)])
    merged = partition.merge()
    assert (partition.read(merged), merged.file.rows_in) == ([insert(10, 0, 1)], 1)


def test_the_committed_part_of_a_delete_file_is_what_counts(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1), insert(1, 1, 1)])
    source = partition.write("delete_delta_0000002_0000005", [delete(1, 1, 2)])
    with (partition.path / source.path).open("ab") as file:
        file.write(b"half a stripe")
    partition.deletes[:] = [replace(source, size_bytes=source.size_bytes + 13, committed_bytes=source.size_bytes)]
    assert partition.read(partition.merge()) == [insert(1, 0, 1)]
    assert partition.read(partition.merge_deletes()) == [delete(1, 1, 2)]


@pytest.mark.parametrize("more", [1, 10_000])
def test_a_file_shorter_than_what_was_committed_is_refused(partition: Partition, more: int) -> None:
    path, length = streamed(partition, [insert(1, 0, 1)])
    partition.add(path.parent.name, committed_bytes=length + more)
    side_file = f"{path}_flush_length"
    with pytest.raises(
        CorruptFileError, match=f"{path}: has {length} bytes, its side file {side_file} says that {length + more} of"
    ):
        partition.merge()


def test_a_negative_length_is_refused(partition: Partition) -> None:
    path, _ = streamed(partition, [insert(1, 0, 1)])
    partition.add(path.parent.name, committed_bytes=-1)
    with pytest.raises(CorruptFileError, match="says that -1 of them are committed"):
        partition.merge()


def test_a_committed_part_that_is_no_file_is_refused(partition: Partition) -> None:
    path, length = streamed(partition, [insert(1, 0, 1)])
    partition.add(path.parent.name, committed_bytes=length - 1)
    with pytest.raises(CorruptFileError, match="is not a complete ORC file"):
        partition.merge()


def test_a_prefix_reads_like_a_file_of_its_length(tmp_path: Path) -> None:
    content = bytes(range(100))
    (tmp_path / "whole").write_bytes(content)
    (tmp_path / "part").write_bytes(content[:60])
    with (tmp_path / "whole").open("rb") as whole, (tmp_path / "part").open("rb") as part:
        prefix = FilePrefix(whole, 60)
        moves: list[tuple[str, tuple[int, ...]]] = [
            ("read", (10,)), ("read", (-1,)), ("read", (5,)), ("seek", (-7, 2)), ("read", (5,)), ("read", (5,)),
            ("seek", (3,)), ("seek", (4, 1)), ("read", (0,)), ("read", ()), ("seek", (0, 2)), ("tell", ()),
            ("seek", (80,)), ("read", (9,)), ("tell", ()),
        ]  # fmt: skip
        for name, arguments in moves:
            assert getattr(prefix, name)(*arguments) == getattr(part, name)(*arguments), (name, arguments)
