"""The filter's arithmetic on arrays against sets of plain tuples."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.spark_jobs.acid_keys import Visibility, pairs_of
from airflow_provider_acid.spark_jobs.deleted_keys import Pairs, deleted_keys
from airflow_provider_acid.spark_jobs.key_filter import KeyFilter
from tests.unit.spark_jobs.acid_files import bucket_property

write_ids = st.sampled_from([1, 2, 3, 500, 10_000_001, 2**40])
row_ids = st.one_of(st.integers(0, 12), st.sampled_from([2**20, 2**33, 2**47]))
keys = st.tuples(write_ids, st.integers(0, 3), row_ids)
deletes = st.tuples(keys, st.sampled_from([10, 11, 12, 13]))

ABORTED, HIGH_WATER_MARK = [2, 11], 2**40


def batch(events: list[tuple[int, int, int, int, int]]) -> pa.RecordBatch:
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"]
    kinds = [pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64()]
    columns = [pa.array([event[place] for event in events], kind) for place, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(columns, names=names)


@given(st.sets(keys, max_size=40), st.lists(deletes, max_size=40), st.integers(1, 7))
def test_the_filter_keeps_what_the_rules_keep(
    rows: set[tuple[int, int, int]], events: list[tuple[tuple[int, int, int], int]], piece_rows: int
) -> None:
    visibility = Visibility.of(HIGH_WATER_MARK, ABORTED)
    delete_batches = [batch([(2, key[0], bucket_property(0, key[1]), key[2], by)]) for key, by in events]
    key_filter = KeyFilter(0, visibility, deleted_keys(delete_batches, visibility))
    valid_deletes = {key for key, by in events if by not in ABORTED}
    ascending = sorted(rows)
    kept, aborted, deleted = [], 0, 0
    for start in range(0, len(ascending), piece_rows):
        piece = ascending[start : start + piece_rows]
        answer = key_filter.apply(
            "rows", batch([(0, owid, bucket_property(0, statement), row_id, owid) for owid, statement, row_id in piece])
        )
        mask = [True] * len(piece) if answer.mask is None else answer.mask.to_pylist()
        kept += [key for key, stays in zip(piece, mask, strict=True) if stays]
        aborted, deleted = aborted + answer.rows_aborted, deleted + answer.rows_deleted
    assert kept == [key for key in ascending if key[0] not in ABORTED and key not in valid_deletes]
    assert aborted == sum(1 for key in ascending if key[0] in ABORTED)
    assert deleted == len(ascending) - aborted - len(kept)


@given(st.lists(keys, max_size=40), st.sets(keys, min_size=1, max_size=40), st.integers(1, 7), st.data())
def test_deleted_keys_are_found_whatever_their_order_and_only_in_the_wanted_range(
    events: list[tuple[int, int, int]], rows: set[tuple[int, int, int]], piece_rows: int, data: st.DataObject
) -> None:
    pieces = [events[start : start + piece_rows] for start in range(0, len(events), piece_rows)]
    batches = [batch([(2, key[0], bucket_property(0, key[1]), key[2], 10) for key in piece]) for piece in pieces]
    ends = [(key[0] << 12) + key[1] for key in rows]
    low, high = sorted((data.draw(st.sampled_from(ends)), data.draw(st.sampled_from(ends))))
    run_keys = data.draw(st.sampled_from([1, 5, 100]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_provider_acid.spark_jobs.deleted_keys._RUN_KEYS", run_keys)
        deleted = deleted_keys(batches, Visibility.of(2**40, []), Pairs(low, high))
    assert len(deleted.runs) <= max(len(events) // run_keys + 1, 1)
    ascending = sorted(rows)
    asked = batch([(0, owid, bucket_property(0, statement), row_id, owid) for owid, statement, row_id in ascending])
    found = deleted.holds(pairs_of(asked), asked.column("rowId")).to_pylist()
    wanted = {key for key in events if low <= (key[0] << 12) + key[1] <= high}
    assert found == [key in wanted for key in ascending]


@pytest.mark.parametrize(
    ("row_id", "write_ids", "is_held"), [(2**62 - 1, 2, True), (2**62 - 1, 3, False), (2**63 - 1, 1, True)]
)
def test_keys_that_no_number_holds_are_refused(row_id: int, write_ids: int, is_held: bool) -> None:
    events = batch([(2, owid, bucket_property(), row_id, 10) for owid in range(1, write_ids + 1)])
    visibility = Visibility.of(100, [])
    if is_held:
        deleted = deleted_keys([events], visibility)
        asked = batch([(0, owid, bucket_property(), row_id, owid) for owid in range(1, write_ids + 2)])
        found = deleted.holds(pairs_of(asked), asked.column("rowId")).to_pylist()
        assert found == [True] * write_ids + [False]
    else:
        with pytest.raises(UnsupportedTableError, match="compact this partition with Hive"):
            deleted_keys([events], visibility)


def test_a_row_id_higher_than_any_deleted_one_is_not_taken_for_a_row_of_another_write_id() -> None:
    deleted = deleted_keys(
        [batch([(2, 1, bucket_property(), 1, 10), (2, 2, bucket_property(), 0, 10)])], Visibility.of(10, [])
    )
    rows = [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2**40)]
    asked = batch([(0, owid, bucket_property(), row_id, owid) for owid, row_id in rows])
    found = deleted.holds(pairs_of(asked), asked.column("rowId")).to_pylist()
    assert [row for row, is_deleted in zip(rows, found, strict=True) if is_deleted] == [(1, 1), (2, 0)]
