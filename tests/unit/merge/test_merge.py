"""Which rows a merge keeps, what it refuses, and what its output looks like to another reader."""

from __future__ import annotations

import gc
import io
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyorc
import pytest

from airflow_provider_acid.exceptions import AcidError, CorruptFileError, StorageError, UnsupportedTableError
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows import exact_rows, merge_sources
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions, SourceFile
from tests.unit.merge.acid_files import STAGING, Event, Partition, bucket_property, delete, insert

SMALL_STRIPES: dict[str, Any] = {"stripe_size": 4096, "batch_size": 100}
# The least number of rows that makes ORC's C++ writer end several stripes of the smallest size.
ROWS = 40_000
RANDOM = random.Random(7)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path)


def keys(events: list[Any]) -> list[tuple[int, int, int]]:
    return [(event[1], event[2], event[3]) for event in events]


def noise(write_id: int, rows: int, **more: int) -> list[Any]:
    return [insert(write_id, row_id, RANDOM.getrandbits(60), **more) for row_id in range(rows)]


def test_base_and_deltas_come_in_key_order_with_all_columns_as_they_were(partition: Partition) -> None:
    base, first, second = noise(1, 5) + noise(2, 5), noise(3, 5), noise(4, 5, statement=1)
    partition.write("base_0000002", base)
    partition.write("delta_0000003_0000003_0000", first)
    partition.write("delta_0000004_0000004_0001", second)
    merged = partition.merge()
    assert partition.read(merged) == base + first + second
    assert (merged.file.rows_in, merged.file.rows_out) == (20, 20)


@pytest.mark.parametrize("deleted_rows", [[], [0], [ROWS - 1], range(0, ROWS, 37), range(ROWS), range(ROWS // 2)])
def test_exactly_the_deleted_rows_are_gone_whatever_stripe_they_are_in(partition: Partition, deleted_rows: Any) -> None:
    rows = noise(1, ROWS)
    partition.write("delta_0000001_0000001_0000", rows, **SMALL_STRIPES)
    partition.write("delta_0000002_0000002_0000", noise(2, 3))
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, row_id, 3) for row_id in deleted_rows])
    source = partition.path / "delta_0000001_0000001_0000/bucket_00000"
    with source.open("rb") as file:
        assert len(read_tail(file, "source").stripes) > 3
    merged = partition.merge(orc=OrcOptions(stripe_bytes=4096))
    gone = set(deleted_rows)
    assert [key[2] for key in keys(partition.read(merged)) if key[0] == 1] == [n for n in range(ROWS) if n not in gone]
    assert merged.file.rows_deleted == len(gone)
    assert merged.file.rows_out == ROWS + 3 - len(gone)


def test_no_file_is_written_when_all_rows_are_deleted(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 3))
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, row_id, 2) for row_id in range(3)])
    merged = partition.merge()
    assert (merged.attempt, merged.file.rows_deleted, merged.file.rows_out) == (None, 3, 0)
    assert partition.attempts() == []


def test_rows_of_aborted_write_ids_and_above_the_high_water_mark_are_dropped(partition: Partition) -> None:
    partition.write("delta_0000001_0000005", [event for write_id in range(1, 6) for event in noise(write_id, 2)])
    merged = partition.merge(aborted=[2, 3], high_water_mark=4)
    assert {key[0] for key in keys(partition.read(merged))} == {1, 4}
    assert (merged.file.rows_in, merged.file.rows_aborted, merged.file.rows_out) == (10, 6, 4)


def test_a_delete_counts_only_if_its_own_write_id_does(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 4))
    partition.write("delete_delta_0000002_0000004", [delete(1, 0, 2), delete(1, 1, 3), delete(1, 2, 4)])
    merged = partition.merge(aborted=[2], high_water_mark=3)
    assert [key[2] for key in keys(partition.read(merged))] == [0, 2, 3]


def test_deletes_are_routed_by_the_bucket_in_the_row_and_may_be_repeated(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 3))
    partition.write("delta_0000001_0000001_0000", noise(1, 3, bucket=1), bucket=1)
    both = [delete(1, 0, 2), delete(1, 2, 2, bucket=1)]
    partition.write("delete_delta_0000002_0000002_0000", both)
    partition.write("delete_delta_0000002_0000002_0000", both, bucket=1)
    first, second = partition.merge(bucket=0), partition.merge(bucket=1)
    assert [key[2] for key in keys(partition.read(first))] == [1, 2]
    assert [key[2] for key in keys(partition.read(second))] == [0, 1]
    assert (first.file.rows_deleted, second.file.rows_deleted) == (1, 1)


def test_a_delete_hits_only_the_statement_it_names(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 2))
    partition.write("delta_0000001_0000001_0001", noise(1, 2, statement=1))
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, 0, 2, statement=1)])
    assert keys(partition.read(partition.merge())) == [
        (1, bucket_property(), 0),
        (1, bucket_property(), 1),
        (1, bucket_property(statement=1), 1),
    ]


def test_row_ids_and_write_ids_of_any_size_are_told_apart(partition: Partition) -> None:
    write_ids, row_ids = [1, 10_000_001, 2**40], [0, 1, 2**31, 2**45]
    rows = [insert(write_id, row_id, 0) for write_id in write_ids for row_id in row_ids]
    partition.write(f"delta_0000001_{2**40}", rows)
    partition.write(f"delete_delta_{2**41}_{2**41}", [delete(10_000_001, 2**31, 2**41), delete(2**40, 0, 2**41)])
    merged = partition.merge(high_water_mark=2**42)
    assert keys(partition.read(merged)) == [
        key for key in keys(rows) if (key[0], key[2]) not in ((10_000_001, 2**31), (2**40, 0))
    ]


def test_an_empty_file_is_no_rows(partition: Partition) -> None:
    (partition.path / "delta_0000001_0000001_0000").mkdir()
    (partition.path / "delta_0000001_0000001_0000/bucket_00000").touch()
    partition.add("delta_0000001_0000001_0000")
    rows = noise(2, 2)
    partition.write("delta_0000002_0000002_0000", rows)
    assert partition.read(partition.merge()) == rows


@pytest.mark.parametrize("types", [("bigint",), ("bigint", "timestamp")])
@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_the_footer_says_what_hive_needs(tmp_path: Path, compression: str, types: tuple[str, ...]) -> None:
    partition = Partition(tmp_path, types)
    rows = [insert(1, row_id, *(RANDOM.getrandbits(50), (-5, 250_000_000))[: len(types)]) for row_id in range(ROWS)]
    partition.write("delta_0000001_0000001_0000", rows)
    options = OrcOptions(compression=compression, stripe_bytes=4096, compression_block_bytes=4096)
    merged = partition.merge(orc=options, stripe_copy=CopiedStripes.NEVER)
    assert merged.attempt is not None
    with (tmp_path / merged.attempt).open("rb") as file:
        reader = pyorc.Reader(file)
        stripes = [reader.read_stripe(number) for number in range(reader.num_of_stripes)]
        ends = [stripe.row_offset + len(stripe) - 1 for stripe in stripes]
        assert len(stripes) > 3
        assert reader.user_metadata == {
            "hive.acid.key.index": "".join(f"1,{bucket_property()},{end};" for end in ends).encode(),
            "hive.acid.stats": f"{ROWS},0,0".encode(),
            "hive.acid.version": b"2",
        }
        assert reader.compression.name.lower() == compression
        assert reader.row_index_stride == 10_000
        assert reader[2].statistics["minimum"] == 1
        assert reader[4].statistics["maximum"] == ROWS - 1
    assert partition.read(merged) == rows


def damage(file: Path, how: str) -> None:
    content = file.read_bytes()
    with file.open("rb") as opened:
        stripe = read_tail(opened, "source").stripes[0]
    start, end = stripe.offset + stripe.index_bytes, stripe.offset + stripe.index_bytes + stripe.data_bytes
    file.write_bytes(
        {
            "truncated": content[:-20],
            "cut in the data": content[:40] + content[-60:],
            "wrong magic": b"PAR" + content[3:],
            "not ORC": b"x" * len(content),
            "data overwritten": content[:start] + b"\xff" * (end - start) + content[end:],
        }[how]
    )


@pytest.mark.parametrize("how", ["truncated", "cut in the data", "wrong magic", "not ORC", "data overwritten"])
@pytest.mark.parametrize("name", ["delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000"])
def test_a_damaged_file_is_refused_by_name_and_nothing_is_left(partition: Partition, name: str, how: str) -> None:
    for kind, events in (
        ("delta_0000001_0000001_0000", noise(1, 100)),
        ("delete_delta_0000002_0000002_0000", [delete(1, row_id, 2) for row_id in range(100)]),
    ):
        partition.write(kind, events, compression=pyorc.CompressionKind.ZLIB)
    damage(partition.path / name / "bucket_00000", how)
    partition.rows.clear()
    partition.deletes.clear()
    partition.add("delta_0000001_0000001_0000")
    partition.add("delete_delta_0000002_0000002_0000")
    with pytest.raises(CorruptFileError, match=f"{name}/bucket_00000: .*Remedy: "):
        partition.merge()
    assert partition.attempts() == []


def test_damage_that_only_the_exact_way_meets_is_refused_by_name(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Damaged:
        def read_stripe(self, stripe: int) -> list[Any]:
            raise RuntimeError("Data error in ZlibDecompressionStream::NextDecompress")

    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: False)
    monkeypatch.setattr(exact_rows, "exact_reader", lambda source, zone: Damaged())
    partition.write("delta_0000001_0000001_0000", noise(1, 3))
    with pytest.raises(CorruptFileError, match="delta_0000001_0000001_0000/bucket_00000: cannot be read exactly"):
        partition.merge(stripe_copy=CopiedStripes.NEVER)


def test_a_file_that_changed_since_the_plan_is_refused(partition: Partition) -> None:
    source = partition.write("delta_0000001_0000001_0000", noise(1, 3))
    partition.rows[0] = [SourceFile(source.path, source.size_bytes + 1)]
    with pytest.raises(CorruptFileError, match="delta_0000001_0000001_0000/bucket_00000: has .* bytes, it had"):
        partition.merge()


LEGACY_UPDATE = (1, 1, bucket_property(), 0, 2, (5,))
NOT_HIVE_3 = (0, 1, 0, 0, 1, (5,))
OTHER_WRITE_ID = (0, 1, bucket_property(), 0, 2, (5,))
NO_ROW = (0, 1, bucket_property(), 0, 1, None)

REFUSED = {
    "a row of another bucket": ([insert(1, 0, 1, bucket=3)], CorruptFileError, "a row of bucket 3, not 0"),
    "a row before its predecessor": ([insert(1, 1, 1), insert(1, 0, 1)], CorruptFileError, "does not come after"),
    "a key that is there twice": ([insert(1, 1, 1), insert(1, 1, 1)], CorruptFileError, "does not come after"),
    "a delete among the rows": ([delete(1, 0, 1)], CorruptFileError, "operation 2 among inserts"),
    "an update of ACID version 1": ([LEGACY_UPDATE], UnsupportedTableError, "ACID version 1"),
    "a bucket property of Hive 2": ([NOT_HIVE_3], UnsupportedTableError, "bucket property 0"),
    "two write ids in an insert": ([OTHER_WRITE_ID], UnsupportedTableError, "two write ids differ"),
    "an insert without a row": ([NO_ROW], CorruptFileError, "an insert without a row"),
}


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_breaks_a_rule_is_refused(
    partition: Partition, case: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    events, error, text = REFUSED[case]
    partition.write("delta_0000001_0000002", events)
    with pytest.raises(error, match=f"bucket_00000: .*{text}"):
        partition.merge()
    assert partition.attempts() == []


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("copied", [CopiedStripes.ALWAYS, CopiedStripes.NEVER])
@pytest.mark.parametrize(
    ("directory", "events", "ids"),
    [
        ("base_0000003", [insert(1, 0, 1), insert(4, 0, 1)], "1 to 4, .* says 0 to 3"),
        ("base_0000003", [insert(-1, 0, 1)], "-1 to -1, .* says 0 to 3"),
        ("base_-9223372036854775808", [insert(0, 0, 1), insert(1, 0, 1)], "0 to 1, .* says 0 to 0"),
        ("delta_0000002_0000003", [insert(1, 0, 1), insert(2, 0, 1)], "1 to 2, .* says 2 to 3"),
        ("delta_0000002_0000003", [insert(2, 0, 1), insert(4, 0, 1)], "2 to 4, .* says 2 to 3"),
        ("delete_delta_0000002_0000002_0000", [delete(1, 0, 0)], "0 to 0, .* says 2 to 2"),
        ("delete_delta_0000002_0000002_0000", [delete(1, 0, 3)], "3 to 3, .* says 2 to 2"),
    ],
)
def test_every_events_write_id_lies_in_its_directorys_range(
    directory: str,
    events: list[Event],
    ids: str,
    copied: CopiedStripes,
    way: str,
    partition: Partition,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An aborted delete delta whose event says write id 0 would count, and a visible row would be gone."""
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    partition.write(directory, events)
    if directory.startswith("delete"):
        partition.write("delta_0000001_0000001_0000", noise(1, 2))
    with pytest.raises(CorruptFileError, match=f"{directory}/bucket_00000: has events of the write ids {ids}"):
        partition.merge(high_water_mark=9, stripe_copy=copied)
    assert partition.attempts() == []


@pytest.mark.parametrize("directory", ["base_0000003", "base_-9223372036854775808"])
def test_a_base_may_hold_rows_from_before_the_table_was_transactional(directory: str, partition: Partition) -> None:
    rows = [insert(0, row_id, 1) for row_id in range(3)]
    partition.write(directory, rows)
    assert partition.read(partition.merge()) == rows


def test_files_whose_keys_do_not_follow_each_other_are_refused(partition: Partition) -> None:
    partition.write("delta_0000002_0000002_0000", noise(2, 2))
    partition.write("delta_0000001_0000001_0000", noise(1, 2))
    with pytest.raises(CorruptFileError, match="delta_0000001_0000001_0000/bucket.* of .*delta_0000002"):
        partition.merge()


def test_a_key_that_two_files_hold_is_refused(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 2))
    partition.write("delta_0000001_0000002", [insert(1, 1, 5), insert(2, 0, 5)])
    with pytest.raises(CorruptFileError, match="does not come after"):
        partition.merge()


def test_an_insert_among_the_deletes_is_refused(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, 2))
    partition.write("delete_delta_0000002_0000002_0000", [insert(2, 0, 1)])
    with pytest.raises(CorruptFileError, match="operation 0 among deletes"):
        partition.merge()


def test_a_file_without_acid_columns_is_refused(partition: Partition) -> None:
    folder = partition.path / "delta_0000001_0000001_0000"
    folder.mkdir()
    with (folder / "bucket_00000").open("wb") as file, pyorc.Writer(file, "struct<a:int>") as writer:
        writer.write((1,))
    partition.add(folder.name)
    with pytest.raises(UnsupportedTableError, match="has not the six columns of one"):
        partition.merge()


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("room_bytes", [0, 10, 100_000])
def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(
    partition: Partition, room_bytes: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ORC's writers end the process when a write fails in their destructors."""
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    create = partition.storage.create

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() + len(data) > room_bytes:
                raise OSError(28, "No space left on device")
            return super().write(data)

    @contextmanager
    def create_on_full_disk(path: str) -> Iterator[Full]:
        with create(path):
            yield Full()

    monkeypatch.setattr(partition.storage, "create", create_on_full_disk)
    partition.write("delta_0000001_0000001_0000", noise(1, ROWS))
    with pytest.raises(StorageError, match="No space left on device"):
        partition.merge(orc=OrcOptions(stripe_bytes=4096))
    gc.collect()
    assert partition.attempts() == []


def test_nothing_is_left_when_writing_fails_half_way(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", noise(1, ROWS))
    partition.write("delta_0000002_0000002_0000", [insert(2, 1, 1), insert(2, 0, 1)])
    with pytest.raises(AcidError):
        partition.merge(orc=OrcOptions(stripe_bytes=4096))
    assert list((partition.path / STAGING / "attempts").iterdir()) == []
