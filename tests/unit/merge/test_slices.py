"""A bucket too large for one task is written in slices, and its rows are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.exceptions import AcidError, CorruptFileError, StorageError, VerificationError
from airflow_provider_acid.merge.buckets import begin_bucket
from airflow_provider_acid.merge.files.answers import Merged, Part
from airflow_provider_acid.merge.merge_rows import join_rows, write_part
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows, NotExactError
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, CopiedStripes, OrcOptions, SyntheticIds
from tests.unit.merge.acid_files import Event, Partition, bucket_property, delete, insert
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import (
    BASE,
    DELETES,
    DELTA,
    attempt,
    content,
    source_stripes,
    striped_partition,
    stripes_of,
    values,
    write_in_stripes,
)

ALWAYS, AUTO, NEVER = CopiedStripes.ALWAYS, CopiedStripes.AUTO, CopiedStripes.NEVER
WHOLE = 0


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return striped_partition(tmp_path)


def sliced_by(slice_bytes: int, **options: Any) -> OrcOptions:
    return OrcOptions(slice_bytes=slice_bytes, **options)


class Run:
    """The tasks of one bucket, one after the other."""

    def __init__(self, partition: Partition, plan: CompactionPlan) -> None:
        self.partition = partition
        self.storage = partition.storage
        self.plan = plan
        self.bucket: BucketPlan = plan.buckets[0]

    def look(self) -> SlicedRows:
        begun = begin_bucket(self.storage, self.plan, self.bucket, lambda done_bytes: None)
        assert isinstance(begun, SlicedRows)
        return begun

    def write(self, sliced: SlicedRows, number: int) -> Part:
        return write_part(self.storage, self.plan, self.bucket, sliced, number)

    def write_all(self, sliced: SlicedRows) -> list[Part]:
        return [self.write(sliced, number) for number in range(len(sliced.slices))]

    def join(self, sliced: SlicedRows, parts: Sequence[Part]) -> Merged:
        return join_rows(self.storage, self.plan, self.bucket, sliced, parts, lambda done_bytes: None)


EVERY_STRIPE = [delete(3, row_id, 10) for row_id in range(0, 1000, 100)] + [
    delete(6, row_id, 10) for row_id in (1, 249)
]


@pytest.mark.parametrize("mode", CopiedStripes)
@pytest.mark.parametrize(
    ("deletes", "plan"),
    [
        ([], {}),
        ([delete(3, 250, 10), delete(3, 650, 10)], {}),
        (EVERY_STRIPE, {}),
        ([delete(3, row_id, 10) for row_id in range(1000)], {}),
        ([delete(3, 5, 11)], {"aborted": (6, 9, 11)}),
        ([], {"high_water_mark": 8}),
    ],
    ids=["nothing", "two rows", "a row of nearly every stripe", "a whole file", "aborted write ids", "a mark"],
)
@pytest.mark.parametrize("slice_bytes", [1, 3000, 20_000])
def test_the_rows_are_those_of_one_task(
    partition: Partition, deletes: list[Event], plan: dict[str, Any], mode: CopiedStripes, slice_bytes: int
) -> None:
    if deletes:
        partition.write(DELETES, deletes)
    merged = [partition.merge(stripe_copy=mode, orc=sliced_by(size), **plan) for size in (WHOLE, slice_bytes)]
    assert partition.read(merged[0]) == partition.read(merged[1])
    figures = [replace(found.file, size_bytes=0, stripes=0) for found in merged]
    assert figures[0] == figures[1]
    before = source_stripes(partition)
    copied = [[stripe for stripe in stripes_of(attempt(partition, found)) if stripe in before] for found in merged]
    assert copied[0] == copied[1]
    assert partition.attempts() == sorted(str(found.attempt).rpartition("/")[2] for found in merged)


def test_what_is_copied_is_no_part_of_a_slice(partition: Partition) -> None:
    partition.write(DELETES, [delete(3, 250, 10), delete(6, 120, 10)])
    run = Run(partition, partition.plan(stripe_copy=ALWAYS, orc=sliced_by(1)))
    sliced = run.look()
    written = [[stripe for segment in sliced.of_slice(number) for stripe in segment.stripes] for number in range(2)]
    assert [[(stripe.source, stripe.stripe) for stripe in stripes] for stripes in written] == [[(0, 2)], [(1, 1)]]
    assert len(sliced.slices) == 2


@pytest.mark.parametrize(("deletes", "copies"), [([], ALWAYS), ([delete(3, 250, 10)], ALWAYS), (EVERY_STRIPE, NEVER)])
def test_a_bucket_of_which_little_is_written_anew_stays_whole(
    partition: Partition, deletes: list[Event], copies: CopiedStripes
) -> None:
    if deletes:
        partition.write(DELETES, deletes)
    limit = max(map(len, source_stripes(partition))) if copies is ALWAYS else sum(map(len, source_stripes(partition)))
    plan = partition.plan(stripe_copy=copies, orc=sliced_by(limit))
    assert limit < sum(file.size_bytes for file in plan.buckets[0].rows)
    begun = begin_bucket(partition.storage, plan, plan.buckets[0], lambda done_bytes: None)
    assert not isinstance(begun, SlicedRows)


def test_a_bucket_of_which_no_row_stays_has_no_slices(partition: Partition) -> None:
    merged = partition.merge(orc=sliced_by(1), aborted=(3, 6, 7, 9))
    assert (merged.attempt, merged.file.rows_aborted, merged.file.rows_out) == (None, 1450, 0)
    assert partition.attempts() == []


def test_slices_are_about_as_large_as_wished_and_follow_each_other(partition: Partition) -> None:
    partition.write(DELETES, EVERY_STRIPE)
    size = max(map(len, source_stripes(partition)))
    run = Run(partition, partition.plan(stripe_copy=NEVER, orc=sliced_by(3 * size)))
    sliced = run.look()
    stripes = [[stripe for segment in sliced.of_slice(number) for stripe in segment.stripes] for number in range(5)]
    assert [found for some in stripes for found in some] == list(sliced.survey.stripes)
    assert all(sum(stripe.size_bytes for stripe in some) <= 4 * size for some in stripes)
    assert len(sliced.slices) == 5


@pytest.mark.usefixtures("whole_stripes")
def test_one_slice_that_arrow_does_not_hold_takes_the_exact_way_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    events = [insert(3, row_id, (row_id, 5)) for row_id in range(300)]
    write_in_stripes(partition, BASE, events)
    partition.write(DELETES, [delete(3, row_id, 10) for row_id in (50, 149, 250)])
    ways: list[tuple[str, int]] = []
    for way in (ArrowRows, ExactRows):
        monkeypatch.setattr(way, "write", not_exact_at_100(way, ways))
    merged = partition.merge(stripe_copy=NEVER, orc=sliced_by(1))
    assert partition.read(merged) == [event for event in events if event[3] not in (50, 149, 250)]
    assert merged.file.stripes == 3
    assert ways == [("ArrowRows", 0), ("ArrowRows", 100), ("ExactRows", 100), ("ArrowRows", 200)]


def not_exact_at_100(way: Any, ways: list[tuple[str, int]]) -> Any:
    write = way.write

    def one_stripe(self: Any, source: Any, stripe: int, batch: Any, mask: Any) -> None:
        first = batch.column("rowId")[0].as_py()
        ways.append((way.__name__, first))
        if first == 100 and way is ArrowRows:
            raise NotExactError
        write(self, source, stripe, batch, mask)

    return one_stripe


def test_nan_misleads_no_reader_of_a_joined_file(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("double",))
    numbers = [float("nan") if number % 100 == 0 else 1.5 for number in range(300)]
    write_in_stripes(partition, BASE, [insert(3, row_id, number) for row_id, number in enumerate(numbers)])
    partition.write(DELETES, [delete(3, row_id, 10) for row_id in (50, 149, 250)])
    merged = partition.merge(orc=sliced_by(1))
    assert merged.file.rows_out == 297
    tail = Tail(attempt(partition, merged))
    of_stripes = [stripe.colStats[7] for stripe in tail.stripe_statistics()]  # type: ignore[attr-defined]
    assert [column.HasField("doubleStatistics") for column in of_stripes] == [False] * 3
    assert len(partition.attempts()) == 1


def test_rows_without_ids_are_numbered_through_all_slices(tmp_path: Path) -> None:
    partition = Partition(tmp_path)
    ids = SyntheticIds(0, bucket_property())
    for name in ("000000_0", "000000_0_copy_1"):
        partition.write_plain(name, [(number,) for number in range(200)], ids)
    partition.write(DELETES, [delete(0, 5, 10), delete(0, 205, 10), delete(0, 399, 10)])
    merged = partition.merge(orc=sliced_by(1))
    assert [event[3] for event in partition.read(merged)] == [n for n in range(400) if n not in (5, 205, 399)]
    assert merged.file.stripes == 2


@pytest.fixture
def run(partition: Partition) -> Run:
    partition.write(DELETES, EVERY_STRIPE)
    return Run(partition, partition.plan(stripe_copy=ALWAYS, orc=sliced_by(8000)))


def of_other_slices(parts: list[Part]) -> list[Part]:
    return [parts[1], parts[0], *parts[2:]]


def one_doubled(parts: list[Part]) -> list[Part]:
    return [parts[0], *parts[:-1]]


def a_segment_less(parts: list[Part]) -> list[Part]:
    return [replace(parts[0], last_keys=parts[0].last_keys[1:]), *parts[1:]]


def a_stripe_less(parts: list[Part]) -> list[Part]:
    return [replace(parts[0], last_keys=(parts[0].last_keys[0][1:], *parts[0].last_keys[1:])), *parts[1:]]


def other_keys(parts: list[Part]) -> list[Part]:
    write_id, bucket, row_id = parts[0].last_keys[0][0]
    return [replace(parts[0], last_keys=(((write_id, bucket, row_id - 1),), *parts[0].last_keys[1:])), *parts[1:]]


@pytest.mark.parametrize("change", [of_other_slices, one_doubled, a_segment_less, a_stripe_less, other_keys])
def test_parts_that_are_not_those_of_the_slices_are_not_joined(
    run: Run, change: Callable[[list[Part]], list[Part]]
) -> None:
    sliced = run.look()
    parts = run.write_all(sliced)
    assert len(parts) > 1
    with pytest.raises((VerificationError, ValueError)):
        run.join(sliced, change(parts))
    assert run.partition.read(run.join(sliced, parts)) == run.partition.read(run.partition.merge(stripe_copy=NEVER))


def with_another_tail(path: Path) -> None:
    found = bytearray(path.read_bytes())
    found[-40] ^= 1
    path.write_bytes(found)


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def of_another_part(path: Path) -> None:
    others = [other for other in path.parent.iterdir() if other != path]
    path.write_bytes(others[0].read_bytes())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (with_another_tail, AcidError),
        (shorter, CorruptFileError),
        (of_another_part, CorruptFileError),
        (Path.unlink, StorageError),
    ],
)
def test_a_part_that_changed_is_not_joined(run: Run, change: Callable[[Path], None], error: type[AcidError]) -> None:
    sliced = run.look()
    parts = run.write_all(sliced)
    change(run.partition.path / parts[0].path)
    with pytest.raises(error):
        run.join(sliced, parts)


def test_a_part_of_the_same_size_that_says_something_else_is_not_joined(partition: Partition) -> None:
    run = Run(partition, partition.plan(stripe_copy=NEVER, orc=sliced_by(8000, compression="none")))
    sliced = run.look()
    parts = run.write_all(sliced)
    path = partition.path / parts[0].path
    found = path.read_bytes()
    assert found.count(b"hive.acid.version") == 1
    path.write_bytes(found.replace(b"hive.acid.version", b"hive.acid.Version"))
    with pytest.raises(CorruptFileError, match="changed while it was being compacted"):
        run.join(sliced, parts)


def test_a_source_that_changed_after_the_look_is_refused_by_its_slice(run: Run) -> None:
    sliced = run.look()
    file = run.partition.path / BASE / "bucket_00000"
    changed = striped_partition_with_other_rows(run.partition.path / "other")
    file.write_bytes(changed.ljust(file.stat().st_size, b"\0")[: file.stat().st_size])
    with pytest.raises(CorruptFileError):
        run.write(sliced, 0)


def striped_partition_with_other_rows(path: Path) -> bytes:
    path.mkdir()
    other = Partition(path, ("bigint",))
    write_in_stripes(other, DELTA, [insert(3, row_id, *values(row_id)[:1]) for row_id in range(100)])
    return content(other, DELTA)


def test_deletes_that_come_to_a_slice_too_late_are_noticed(run: Run) -> None:
    """What a slice finds deleted must be what the look found."""
    sliced = run.look()
    without = replace(run.bucket, deletes=())
    with pytest.raises(CorruptFileError, match="changed while it was being compacted"):
        write_part(run.storage, run.plan, without, sliced, 0)
