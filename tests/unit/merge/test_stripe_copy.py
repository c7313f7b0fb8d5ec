"""Stripes that lose no row are copied as bytes, all others decoded; whatever is done, the rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyorc
import pytest
from pyorc import PredicateColumn, TypeKind
from pyorc.predicates import Predicate

from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions, OutputKind
from tests.harness.plain_job import merge_bucket
from tests.unit.merge.acid_files import Event, Partition, bucket_property, delete, insert, read_events
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import (
    BASE,
    DELETES,
    DELTA,
    STREAM,
    STRIPE_ROWS,
    TYPES,
    attempt,
    content,
    source_stripes,
    striped_partition,
    stripes_of,
    values,
    write_in_stripes,
)

ALWAYS, AUTO, NEVER = CopiedStripes.ALWAYS, CopiedStripes.AUTO, CopiedStripes.NEVER


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return striped_partition(tmp_path)


ALL = [*range(15)]


@pytest.mark.parametrize(
    ("deletes", "plan", "copied", "rows"),
    [
        ([], {}, ALL, 1450),
        ([delete(3, 250, 10)], {}, [n for n in ALL if n != 2], 1449),
        ([delete(3, 199, 10), delete(3, 200, 10)], {}, [n for n in ALL if n not in (1, 2)], 1448),
        ([delete(3, row_id, 10) for row_id in range(300, 400)], {}, [n for n in ALL if n != 3], 1350),
        ([delete(3, row_id, 10) for row_id in range(0, 1000, 100)], {}, [*range(10, 15)], 1440),
        ([delete(3, 1000, 10), delete(2, 5, 10), delete(4, 5, 10)], {}, ALL, 1450),
        ([delete(3, 5, 10, statement=1), delete(3, 5, 10, bucket=1)], {}, ALL, 1450),
        ([delete(3, 5, 11)], {"aborted": (11,)}, ALL, 1450),
        ([], {"aborted": (5, 8)}, ALL, 1450),
        ([], {"aborted": (6,)}, [*range(10), 13, 14], 1200),
        ([], {"aborted": (7,)}, [*range(13)], 1300),
        ([], {"aborted": (9,)}, [*range(14)], 1400),
        ([], {"high_water_mark": 8}, [*range(14)], 1400),
    ],
    ids=[
        "nothing",
        "one row",
        "the last row of a stripe and the first of the next",
        "a whole stripe",
        "a row of every stripe of a file",
        "keys that no row has",
        "keys of another statement and of another bucket",
        "a delete that does not count",
        "aborted write ids that have no rows, one between a stripe's limits",
        "an aborted delta",
        "an aborted write id that shares a stripe",
        "another one that does",
        "a write id above the high-water mark that does",
    ],
)
def test_stripes_that_lose_no_row_are_copied(
    partition: Partition, deletes: Sequence[Event], plan: dict[str, Any], copied: list[int], rows: int
) -> None:
    if deletes:
        partition.write(DELETES, deletes)
    before = source_stripes(partition)
    assert len(before) == len(ALL)
    merged = {mode: partition.merge(stripe_copy=mode, **plan) for mode in (NEVER, ALWAYS)}
    after = stripes_of(attempt(partition, merged[ALWAYS]))
    assert [before.index(stripe) for stripe in after if stripe in before] == copied
    assert not set(before) & set(stripes_of(attempt(partition, merged[NEVER])))
    found = partition.read(merged[ALWAYS])
    assert len(found) == rows
    assert found == partition.read(merged[NEVER])
    assert replace(merged[ALWAYS].file, size_bytes=0, stripes=0) == replace(merged[NEVER].file, size_bytes=0, stripes=0)
    assert merged[ALWAYS].file.stripes == len(after)


@pytest.mark.usefixtures("whole_stripes")
def test_the_tail_says_of_all_stripes_what_the_tails_said_of_each(partition: Partition) -> None:
    partition.write(DELETES, [delete(3, 250, 10)])
    whole, stitched = (Tail(attempt(partition, partition.merge(stripe_copy=mode))) for mode in (NEVER, ALWAYS))
    assert stitched.statistics() == whole.statistics()
    before = [found for name in (BASE, DELTA, STREAM) for found in Tail(content(partition, name)).stripe_statistics()]
    after = stitched.stripe_statistics()
    assert (after[:2], after[3:]) == (before[:2], before[3:])
    assert after[2].colStats[4].numberOfValues == STRIPE_ROWS - 1  # type: ignore[attr-defined]
    assert stitched.footer.types == whole.footer.types
    assert stitched.footer.calendar == whole.footer.calendar
    metadata = {item.name: item.value for item in stitched.footer.metadata}
    last_keys = [
        [*range(99, 1000, 100)],
        [99, 199, 249],
        [99, 49],
    ]
    write_ids = [[3] * 10, [6] * 3, [7, 9]]
    keys = [
        f"{write_id},{bucket_property()},{row_id};"
        for ids, row_ids in zip(write_ids, last_keys, strict=True)
        for write_id, row_id in zip(ids, row_ids, strict=True)
    ]
    assert metadata == {
        "hive.acid.key.index": "".join(keys).encode(),
        "hive.acid.stats": b"1449,0,0",
        "hive.acid.version": b"2",
    }


def test_small_stripes_are_gathered_and_large_ones_copied(tmp_path: Path) -> None:
    partition = Partition(tmp_path, TYPES)
    write_in_stripes(partition, BASE, [insert(1, row_id, *values(row_id)) for row_id in range(3000)], stripe_rows=1000)
    for write_id in range(2, 22):
        name = f"delta_{write_id:07}_{write_id:07}_0000"
        partition.write(name, [insert(write_id, row_id, *values(row_id)) for row_id in range(5)])
    partition.write("delete_delta_0000030_0000030_0000", [delete(1, 1500, 30)])
    before = source_stripes(partition)
    large = max(map(len, before[3:]))
    assert large < min(map(len, before[:3]))
    orc = OrcOptions(stripe_bytes=64 * large, small_stripe_share=1.5 / 64)
    merged = {mode: partition.merge(stripe_copy=mode, orc=orc) for mode in CopiedStripes}
    after = stripes_of(attempt(partition, merged[AUTO]))
    assert [stripe in before for stripe in after] == [True, False, True, False]
    assert merged[ALWAYS].file.stripes == 23
    rows = partition.read(merged[AUTO])
    assert len(rows) == 3099
    assert rows == partition.read(merged[ALWAYS]) == partition.read(merged[NEVER])


def test_timestamps_of_any_time_and_zone_stay_in_copied_and_in_rewritten_stripes(tmp_path: Path) -> None:
    """Arrow holds none of these, so the rewritten ones take the exact way."""
    zone = ZoneInfo("America/New_York")
    partition = Partition(tmp_path, ("timestamp",))
    moments = [(number * 86_400_000 - 3_000_000_000, number) for number in range(300)]
    events = [insert(3, row_id, moment) for row_id, moment in enumerate(moments)]
    write_in_stripes(partition, BASE, events, timezone=zone)
    partition.write(DELETES, [delete(3, 150, 10)], timezone=zone)
    merged = {mode: partition.merge(stripe_copy=mode) for mode in (NEVER, ALWAYS)}
    before, after = source_stripes(partition), stripes_of(attempt(partition, merged[ALWAYS]))
    assert [stripe in before for stripe in after] == [True, False, True]
    found = [read_events(partition.path / str(merged[mode].attempt), timezone=zone) for mode in (NEVER, ALWAYS)]
    assert found == [[event for event in events if event[3] != 150]] * 2


@pytest.mark.parametrize("mode", CopiedStripes)
def test_readers_that_skip_by_statistics_find_the_same_rows(partition: Partition, mode: CopiedStripes) -> None:
    """In four types; of the last two numbers one row is deleted, and none was ever made."""
    partition.write(DELETES, [delete(3, 250, 10), delete(6, 3, 10)])
    merged = partition.merge(stripe_copy=mode, orc=OrcOptions(small_stripe_share=0))
    rows = read_skipping(partition, merged)
    assert len(rows) == 1448
    for number in (1, 101, 251, 999, 250, 1001):
        for place, (column, wanted) in enumerate(
            (
                (PredicateColumn(TypeKind.LONG, index=7), number * 3),
                (PredicateColumn(TypeKind.STRING, index=8), f"text {number:05}" * 3),
                (PredicateColumn(TypeKind.DOUBLE, index=9), number / 8),
                (PredicateColumn(TypeKind.DECIMAL, index=10, precision=10, scale=2), Decimal(f"{number}.25")),
            )
        ):
            found = read_skipping(partition, merged, column == wanted)
            expected = [row for row in rows if row[1][place] == wanted]
            assert [row for row in found if row[1][place] == wanted] == expected
            assert bool(expected) is (number not in (250, 1001))
            if mode is not NEVER:
                assert len(found) <= 3 * STRIPE_ROWS


def read_skipping(partition: Partition, merged: Merged, predicate: Predicate | None = None) -> list[Any]:
    """Row ids and rows, read by ORC's own library with a predicate pushed down."""
    with (partition.path / str(merged.attempt)).open("rb") as file:
        return list(pyorc.Reader(file, column_names=("rowId", "row"), predicate=predicate))


def test_progress_ends_with_the_last_byte(partition: Partition) -> None:
    plan = partition.plan(stripe_copy=ALWAYS)
    (bucket,) = (part for part in plan.buckets if part.output is OutputKind.ROWS)
    told: list[int] = []
    (merged,) = merge_bucket(partition.storage, plan, bucket, told.append)
    assert merged.file.rows_out == 1450
    assert told == sorted(told)
    assert 0 < told[-1] <= bucket.input_bytes
