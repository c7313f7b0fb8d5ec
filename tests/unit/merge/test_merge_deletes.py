"""Delete events in a minor compaction: routed by the row they delete, each written once, none applied, none lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError, VerificationError
from airflow_provider_acid.merge import merge_deletes
from airflow_provider_acid.merge.keys.acid_keys import Visibility
from airflow_provider_acid.merge.keys.event_runs import EventRuns
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows.arrow_rows import ArrowFile
from airflow_provider_acid.merge.stitch.stitched_file import StitchedFile
from airflow_provider_acid.plan.plan import OrcOptions, OutputKind
from tests.harness.acid_reader import Snapshot, read_table
from tests.unit.merge.acid_files import Event, Partition, bucket_property, delete, insert
from tests.unit.merge.test_values import VALUES, set_calendar

RANDOM = random.Random(3)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path)


def deltas(partition: Partition, *files: list[Event]) -> None:
    """A delete delta per list, of write ids from 2 on, and of those that its events have."""
    for number, events in enumerate(files, start=2):
        deleters = [number, *(event[4] for event in events)]
        partition.write(f"delete_delta_{min(deleters):07d}_{max(deleters):07d}_0000", events)


def test_deletes_stay_events_with_both_write_ids_and_no_row(partition: Partition) -> None:
    """W-16, W-24"""
    deltas(partition, [delete(1, 0, 2), delete(1, 3, 2)], [delete(1, 1, 3)])
    merged = partition.merge_deletes()
    assert partition.read(merged) == [delete(1, 0, 2), delete(1, 1, 3), delete(1, 3, 2)]
    assert (merged.file.output, merged.file.name) == (OutputKind.DELETES, "bucket_00000")
    assert (merged.file.rows_in, merged.file.rows_out, merged.file.rows_deleted) == (3, 3, 0)


def test_events_are_sorted_by_write_id_bucket_and_row_and_newest_deleter_first(partition: Partition) -> None:
    """An order that differs from that of the files, of the statements and of the deleters."""
    wanted = [
        delete(1, 0, 9),
        delete(1, 7, 2),
        delete(1, 0, 3, statement=1),
        delete(1, 2**40, 3, statement=1),
        delete(2, 0, 9),
        delete(2, 0, 4),
        delete(2**40, 0, 5),
    ]
    shuffled = RANDOM.sample(wanted, len(wanted))
    deltas(partition, sorted(shuffled[:4]), sorted(shuffled[4:]))
    assert partition.read(partition.merge_deletes()) == wanted


def test_an_event_in_several_files_is_written_once(partition: Partition) -> None:
    """Hive 3's own minor compaction of an unbucketed table writes every delete into every file."""
    events = [delete(1, row_id, 2, bucket=bucket) for bucket in (0, 1) for row_id in range(3)]
    for bucket in (0, 1):
        partition.write("delete_delta_0000001_0000003", events, bucket=bucket)
    plan = partition.minor_plan(numbers=(0, 1))
    for bucket in (0, 1):
        merged = partition.carry_out(plan, OutputKind.DELETES, bucket)
        assert partition.read(merged) == [event for event in events if event[2] == bucket_property(bucket)]
        assert (merged.file.rows_in, merged.file.rows_repeated, merged.file.rows_out) == (6, 3, 3)


def test_deletes_in_foreign_files_go_to_their_rows_bucket(partition: Partition) -> None:
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, 5, 2, bucket=7)], bucket=0)
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, 4, 3)], bucket=7)
    plan = partition.minor_plan(numbers=(0, 7))
    for bucket, event in ((0, delete(1, 4, 3)), (7, delete(1, 5, 2, bucket=7))):
        merged = partition.carry_out(plan, OutputKind.DELETES, bucket)
        assert (merged.file.name, partition.read(merged)) == (f"bucket_{bucket:05d}", [event])


@pytest.mark.parametrize("second_sees", [0, 1])
@pytest.mark.parametrize("aborted", [(), (2,), (3,)])
def test_a_row_that_two_deleters_name_is_deleted_for_whoever_sees_either(
    aborted: tuple[int, ...], second_sees: int, partition: Partition
) -> None:
    """On Hive 4 only an aborted first deleter lets the conflict check pass a second one; Hive 3.1 has none of deletes.

    Collapsing by row instead would bring the row back for a reader that does not see the deleter that was kept.
    """
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 5), insert(1, 1, 6)])
    deltas(partition, [delete(1, 0, 2)], [delete(1, 0, 3)])
    merged = partition.merge_deletes(aborted=aborted)
    expected = [delete(1, 0, by) for by in (3, 2) if by not in aborted]
    assert partition.read(merged) == expected
    assert (merged.file.rows_in, merged.file.rows_aborted, merged.file.rows_repeated) == (2, len(aborted), 0)
    table = partition.path / "table"
    for name, source in (("delta_0000001_0000001", "delta_0000001_0000001_0000/bucket_00000"),
                         ("delete_delta_0000002_0000003", str(merged.attempt))):  # fmt: skip
        (table / name).mkdir(parents=True)
        (partition.path / source).rename(table / name / "bucket_00000")
    for open_write_ids in ((), (2,), (3,)):
        rows = read_table(table, {"v": "bigint"}, Snapshot(3, open_write_ids, aborted))
        is_deleted = any(by not in open_write_ids for *_, by, _ in expected)
        assert [row.row_id[2] for row in rows] == ([1] if is_deleted else [0, 1])


def test_aborted_deletes_and_those_above_the_high_water_mark_are_dropped(partition: Partition) -> None:
    """What counts is the deleter's write id, not that of the row (Hive 4's query-based compaction errs here)."""
    partition.write("delete_delta_0000002_0000006", [delete(1, row_id, row_id) for row_id in range(2, 7)])
    merged = partition.merge_deletes(aborted=[1, 3], high_water_mark=5)
    assert [event[4] for event in partition.read(merged)] == [2, 4, 5]
    assert (merged.file.rows_in, merged.file.rows_aborted, merged.file.rows_out) == (5, 2, 3)


def test_no_file_is_written_when_no_event_is_left(partition: Partition) -> None:
    """W-22"""
    deltas(partition, [delete(1, 0, 2)])
    for merged in (partition.merge_deletes(aborted=[2]), partition.merge_deletes(bucket=1, numbers=(0, 1))):
        assert (merged.attempt, merged.file.name, merged.file.rows_out, merged.file.size_bytes) == (None, None, 0, 0)
    assert partition.attempts() == []


def test_an_empty_file_holds_no_events(partition: Partition) -> None:
    (partition.path / "delete_delta_0000002_0000002_0000").mkdir()
    (partition.path / "delete_delta_0000002_0000002_0000/bucket_00000").touch()
    partition.add("delete_delta_0000002_0000002_0000")
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, 0, 3)])
    assert partition.read(partition.merge_deletes()) == [delete(1, 0, 3)]


def test_an_event_that_no_output_takes_is_an_error(partition: Partition) -> None:
    deltas(partition, [delete(1, 0, 2), delete(1, 0, 2, bucket=5)])
    with pytest.raises(CorruptFileError, match=r"bucket_00000: holds deletes of rows of bucket 5, .* of \[0, 1\]"):
        partition.merge_deletes(numbers=(0, 1), bucketed=True)
    assert partition.attempts() == []


def test_a_second_delete_of_a_row_that_no_minor_has_a_file_for_is_left_to_a_major(partition: Partition) -> None:
    """Two transactions deleted the last row of bucket 5; a major of the first one's left no file of that number."""
    partition.write("base_0000002", [insert(1, 0, 1), insert(1, 1, 1)])
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, 0, 3), delete(1, 0, 3, bucket=5)])
    with pytest.raises(UnsupportedTableError, match=r"rows of bucket 5, which has no rows .* compact .* as a major"):
        partition.merge_deletes()
    assert partition.attempts() == []
    assert [event[3] for event in partition.read(partition.merge())] == [1]


def test_an_event_that_no_output_takes_may_be_one_that_does_not_count(partition: Partition) -> None:
    deltas(partition, [delete(1, 0, 2)], [delete(1, 0, 3, bucket=5)])
    assert partition.read(partition.merge_deletes(aborted=[3])) == [delete(1, 0, 2)]


def test_a_buckets_file_may_not_hold_deletes_of_another_buckets_rows(partition: Partition) -> None:
    """Hive's readers fail on it, too, where the table has buckets."""
    for bucket in (0, 1):
        partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1, bucket=bucket)], bucket=bucket)
        partition.write("delete_delta_0000002_0000002_0000", [delete(1, 0, 2, bucket=1)], bucket=bucket)
    first, second = partition.deletes
    for plan, kind in ((partition.minor_plan(numbers=(0, 1), bucketed=True), OutputKind.DELETES),
                       (partition.plan(bucketed=True), OutputKind.ROWS)):  # fmt: skip
        buckets = tuple(
            replace(part, deletes=(first, second)[part.bucket : part.bucket + 1]) if part.output is kind else part
            for part in plan.buckets
        )
        with pytest.raises(CorruptFileError, match=r"bucket_00000: holds deletes of rows of bucket 1, .* of \[0\]"):
            partition.carry_out(replace(plan, buckets=buckets), kind)


def test_a_rows_bucket_of_an_unbucketed_table_ignores_deletes_of_buckets_without_rows(partition: Partition) -> None:
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1), insert(1, 1, 1)])
    deltas(partition, [delete(1, 0, 2), delete(1, 0, 2, bucket=5)])
    assert [event[3] for event in partition.read(partition.merge())] == [1]


def test_rows_of_a_minor_compaction_keep_what_was_deleted_and_lose_what_was_aborted(partition: Partition) -> None:
    """W-16, W-22"""
    rows = [insert(write_id, row_id, 7) for write_id in range(1, 5) for row_id in range(2)]
    partition.write("delta_0000001_0000004", rows)
    deltas(partition, [delete(1, 0, 2)])
    merged = partition.carry_out(partition.minor_plan(aborted=[2], high_water_mark=3), OutputKind.ROWS)
    assert partition.read(merged) == [row for row in rows if row[1] in (1, 3)]
    assert (merged.file.rows_in, merged.file.rows_aborted, merged.file.rows_deleted) == (8, 4, 0)


@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_the_footer_says_what_hive_needs(partition: Partition, compression: str) -> None:
    """Hive 3 skips a delete file whose ``hive.acid.stats`` count no deletes: its rows would come back."""
    count = 40_000
    write_ids = sorted(RANDOM.sample(range(2**40), count))
    events = [delete(write_id, RANDOM.getrandbits(45), 2**40 + RANDOM.getrandbits(40)) for write_id in write_ids]
    partition.types = ("bigint", "timestamp", "map<string,array<decimal(38,18)>>", "char(3)")
    partition.names = ["a", "b", "c", "d"]
    deltas(partition, events)
    options = OrcOptions(compression, compression_block_bytes=4096, stripe_bytes=4096, row_index_stride=0)
    merged = partition.merge_deletes(orc=options, high_water_mark=2**42)
    with (partition.path / str(merged.attempt)).open("rb") as file:
        reader = pyorc.Reader(file)
        stripes = [reader.read_stripe(number) for number in range(reader.num_of_stripes)]
        ends = [stripe.row_offset + len(stripe) - 1 for stripe in stripes]
        assert len(stripes) > 1
        assert reader.user_metadata == {
            "hive.acid.key.index": "".join("{1},{2},{3};".format(*events[end]) for end in ends).encode(),
            "hive.acid.stats": f"0,0,{count}".encode(),
            "hive.acid.version": b"2",
        }
        assert (reader.compression.name.lower(), reader.row_index_stride) == (compression, 10_000)
        for column in range(1, 6):
            values = [event[column - 1] for event in events]
            assert (reader[column].statistics["minimum"], reader[column].statistics["maximum"]) == (
                min(values),
                max(values),
            )
        assert all(reader[column].statistics["number_of_values"] == 0 for column in range(7, 14))
        assert str(reader.schema).endswith(
            "row:struct<a:bigint,b:timestamp,c:map<string,array<decimal(38,18)>>,d:char(3)>>"
        )
    assert partition.read(merged) == events


def test_no_stripe_has_more_events_than_fit_in_a_readers_memory(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_deletes, "_STRIPE_EVENTS", 3)
    events = [delete(1, row_id, 2 + row_id % 2) for row_id in range(10)]
    deltas(partition, events)
    merged = partition.merge_deletes()
    assert partition.read(merged) == events
    assert merged.file.stripes == 4
    with (partition.path / str(merged.attempt)).open("rb") as file:
        index = pyorc.Reader(file).user_metadata["hive.acid.key.index"]
    assert index.decode() == "".join("{1},{2},{3};".format(*events[end]) for end in (2, 5, 8, 9))


@pytest.mark.parametrize("kind", VALUES)
def test_a_row_of_any_type_is_null(kind: str, tmp_path: Path) -> None:
    partition = Partition(tmp_path, (kind, "timestamp"))
    deltas(partition, [delete(1, 0, 2)])
    assert partition.read(partition.merge_deletes()) == [delete(1, 0, 2)]


@pytest.mark.parametrize(("calendars", "expected"), [((0, 0), 0), ((1, 1), 1), ((2, 2), 2), ((1, 2), 2)])
def test_the_calendar_is_carried(calendars: tuple[int, int], expected: int, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("date",))
    deltas(partition, [delete(1, 0, 2)], [delete(1, 1, 3)])
    partition.deletes.clear()
    for number, calendar in enumerate(calendars, start=2):
        name = f"delete_delta_{number:07d}_{number:07d}_0000"
        set_calendar(tmp_path / name / "bucket_00000", calendar)
        partition.add(name)
    with (tmp_path / str(partition.merge_deletes().attempt)).open("rb") as file:
        assert read_tail(file, "merged").calendar == expected


REFUSED: dict[str, tuple[list[Event], type[Exception], str]] = {
    "an insert among the deletes": ([insert(2, 0, 1)], CorruptFileError, "operation 0 among deletes"),
    "an update of ACID version 1": ([(1, 1, bucket_property(), 0, 2, None)], UnsupportedTableError, "ACID version 1"),
    "a bucket property of Hive 2": ([(2, 1, 0, 0, 2, None)], UnsupportedTableError, "bucket property 0"),
    "a negative row id": ([delete(1, -1, 2)], CorruptFileError, "row ids from -1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_delete_file_that_breaks_a_rule_is_refused(partition: Partition, case: str) -> None:
    events, error, text = REFUSED[case]
    deltas(partition, events)
    with pytest.raises(error, match=f"bucket_00000: .*{text}"):
        partition.merge_deletes()
    assert partition.attempts() == []


@pytest.mark.parametrize("deleter", [0, 1, 4, 2**62])
def test_every_events_write_id_lies_in_its_directorys_range(deleter: int, partition: Partition) -> None:
    partition.write("delete_delta_0000002_0000003", [delete(0, 0, deleter)])
    with pytest.raises(CorruptFileError, match=f"of the write ids {deleter} to {deleter}, .* says 2 to 3"):
        partition.merge_deletes(high_water_mark=2**62)
    assert partition.attempts() == []


def losing_events(monkeypatch: pytest.MonkeyPatch) -> None:
    append: Callable[..., None] = ArrowFile.append
    monkeypatch.setattr(
        ArrowFile, "append", lambda self, ids, columns, is_null: append(
            self, ids.slice(1), [column.slice(1) for column in columns], is_null.slice(1)
        )
    )  # fmt: skip


def keeping_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    append: Callable[..., None] = ArrowFile.append
    monkeypatch.setattr(ArrowFile, "append", lambda self, ids, columns, is_null: append(self, ids, columns))


def other_deleter(monkeypatch: pytest.MonkeyPatch) -> None:
    append: Callable[..., None] = ArrowFile.append

    def spoil(self: ArrowFile, ids: pa.RecordBatch, *more: Any) -> None:
        append(self, ids.set_column(4, "currentTransaction", pa.array([9] * ids.num_rows, pa.int64())), *more)

    monkeypatch.setattr(ArrowFile, "append", spoil)


def not_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    merged = EventRuns.merged

    def backwards(self: EventRuns) -> Iterator[pa.RecordBatch]:
        for batch in merged(self):
            yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))

    monkeypatch.setattr(EventRuns, "merged", backwards)


def not_dropping(monkeypatch: pytest.MonkeyPatch) -> None:
    valid, calls = Visibility.valid, []

    def keep(self: Any, write_ids: pa.Array[Any]) -> pa.Array[Any]:
        calls.append(write_ids)
        # Once to look for a taker and once to choose, for each of three files.
        return pa.array([True] * len(write_ids)) if len(calls) <= 6 else valid(self, write_ids)

    monkeypatch.setattr(Visibility, "valid", keep)


def counting_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    seal = StitchedFile.seal

    def wrong(self: StitchedFile, schema: Any, options: Any, key_index: Any, operation: int, *more: Any) -> None:
        seal(self, schema, options, key_index, 0, *more)

    monkeypatch.setattr(StitchedFile, "seal", wrong)


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "events are lost": (losing_events, "its rows should be 3, not 2"),
    "rows are not NULL": (keeping_rows, "holds rows among the delete events"),
    "the deleter is another": (other_deleter, "holds other events in stripe 0 than were found"),
    "the order is another": (not_sorting, "do not ascend"),
    "aborted deletes stay": (not_dropping, "holds 1 events that do not count"),
    "the footer counts inserts": (counting_inserts, "user metadata"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_output_is_found(fault: str, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    deltas(partition, [delete(1, 0, 2), delete(2, 0, 2)], [delete(3, 1, 3)], [delete(1, 9, 4)])
    inject, text = FAULTS[fault]
    inject(monkeypatch)
    with pytest.raises(VerificationError, match=text):
        partition.merge_deletes(aborted=[4])
