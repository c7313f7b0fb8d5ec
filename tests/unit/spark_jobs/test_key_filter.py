"""The filter's arithmetic on arrays against sets of plain tuples."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.spark_jobs.acid_keys import Visibility
from airflow_provider_acid.spark_jobs.key_filter import KeyFilter, deleted_keys
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
