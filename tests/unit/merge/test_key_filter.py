"""The filter's arithmetic on arrays against sets of plain tuples."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_acid.exceptions import CorruptFileError, RefusedError, UnsupportedTableError
from airflow_provider_acid.merge.keys import key_filter
from airflow_provider_acid.merge.keys.acid_keys import Visibility, pairs_of
from airflow_provider_acid.merge.keys.deleted_keys import DeletedKeys, Pairs, deleted_keys
from airflow_provider_acid.merge.keys.key_filter import KeyFilter
from airflow_provider_acid.merge.keys.one_write import one_write
from tests.unit.merge.acid_files import bucket_property

write_ids = st.sampled_from([1, 2, 3, 500, 10_000_001, 2**40])
row_ids = st.one_of(st.integers(0, 12), st.sampled_from([2**20, 2**33, 2**47]))
keys = st.tuples(write_ids, st.integers(0, 3), row_ids)
deletes = st.tuples(keys, st.sampled_from([10, 11, 12, 13]))

ABORTED, HIGH_WATER_MARK = [2, 11], 2**40


Row = tuple[int | None, ...]


def batch(events: Sequence[Row]) -> pa.RecordBatch:
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"]
    kinds = [pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64()]
    columns = [pa.array([event[place] for event in events], kind) for place, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(columns, names=names)


# The last row of a piece is deleted, which chance alone does not always find.
@example({(1, 0, 0), (1, 0, 1)}, [((1, 0, 1), 10)], 2)
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
        patch.setattr("airflow_provider_acid.merge.keys.deleted_keys._RUN_KEYS", run_keys)
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


EVENTS = [(2, 1, bucket_property(), row_id, 10) for row_id in (0, 3, 4, 2**20)] + [(2, 3, bucket_property(), 5, 10)]

writes = st.tuples(st.sampled_from([1, 2, 3, 12]), st.integers(0, 1))
cells = st.one_of(st.none(), st.sampled_from([-1, 0, 1, 2, 3, bucket_property(), bucket_property(1), 2**29 + 4096]))


@st.composite
def pieces(draw: st.DrawFn) -> list[list[Row]]:
    """Each of one write, as a file has them, but for one cell that may hold anything."""
    found: list[list[Row]] = []
    for write_id, statement in draw(st.lists(writes, min_size=1, max_size=3)):
        ids = sorted(draw(st.sets(row_ids, min_size=1, max_size=6)))
        found.append([(0, write_id, bucket_property(0, statement), row_id, write_id) for row_id in ids])
    if draw(st.booleans()):
        piece = draw(st.sampled_from(found))
        row, column, value = draw(st.integers(0, len(piece) - 1)), draw(st.integers(0, 4)), draw(cells)
        piece[row] = (*piece[row][:column], value, *piece[row][column + 1 :])
    if draw(st.booleans()):
        column, value = draw(st.integers(0, 4)), draw(cells)
        found[-1] = [(*row[:column], value, *row[column + 1 :]) for row in found[-1]]
    return found


@given(pieces())
def test_rows_of_one_write_are_judged_as_any_others_are(given_pieces: list[list[Row]]) -> None:
    at_a_glance = judged(given_pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_filter, "one_write", lambda batch: None)
        row_by_row = judged(given_pieces)
    assert at_a_glance == row_by_row


def judged(given_pieces: list[list[Row]]) -> list[object]:
    """Which rows stay, piece by piece, or why it is refused."""
    visibility = Visibility.of(10, [2])
    found: list[object] = []
    looking = KeyFilter(0, visibility, deleted_keys([batch(EVENTS)], visibility))
    try:
        for piece in given_pieces:
            kept = looking.apply("rows", batch(piece))
            mask = None if kept.mask is None else kept.mask.to_pylist()
            found.append((mask, kept.rows_aborted, kept.rows_deleted))
    except RefusedError as error:
        found.append(str(error))
    return found


GOOD: list[Row] = [(0, 1, bucket_property(), row_id, 1) for row_id in (4, 5, 9)]


def of_write(write_id: int, row_ids: Sequence[int], bucket: int = 0) -> list[Row]:
    return [(0, write_id, bucket_property(bucket), row_id, write_id) for row_id in row_ids]


@pytest.mark.parametrize(
    ("given_pieces", "reason"),
    [
        ([of_write(-1, [4, 5])], "holds write ids -1 to -1"),
        ([of_write(2**50, [4, 5])], f"holds write ids {2**50} to {2**50}"),
        ([of_write(1, [-1, 5])], "row ids from -1"),
        ([of_write(1, [4, 5], bucket=1)], "holds a row of bucket 1, not 0"),
        ([of_write(1, [4, 5]), of_write(1, [5, 6])], f"its row (1, {bucket_property()}, 5) "),
        ([of_write(3, [4, 5]), of_write(1, [6])], f"its row (1, {bucket_property()}, 6) "),
        ([of_write(1, [4, 4])], f"does not come after (1, {bucket_property()}, 4) of itself"),
    ],
)
def test_what_breaks_a_rule_in_every_row_is_refused(given_pieces: list[list[Row]], reason: str) -> None:
    assert reason in str(judged(given_pieces)[-1])


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("value", [None, -1, 0, 1, 2, 11, 2**30])
@pytest.mark.parametrize("rows", [[1], [0, 1, 2]], ids=["one row", "every row"])
def test_what_is_not_of_one_write_is_not_taken_for_it(column: int, value: int | None, rows: list[int]) -> None:
    changed = [(*row[:column], value, *row[column + 1 :]) if place in rows else row for place, row in enumerate(GOOD)]
    assert one_write(batch(GOOD)) is not None
    assert (one_write(batch(changed)) is None) is (changed != GOOD)


def test_no_deleted_key_is_looked_up_where_none_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = deleted_keys([batch(EVENTS)], Visibility.of(10, []))
    monkeypatch.setattr(DeletedKeys, "holds", None)
    for write_id, found in ((1, [True, False]), (2, None), (4, None)):
        row_ids = pa.array([4, 5], pa.int64())
        held = deleted.holds_of(write_id << 12, row_ids)
        assert (None if held is None else held.to_pylist()) == found
    assert deleted.holds_of(1 << 12, pa.array([5, 6, 7], pa.int64())) is None
    assert deleted.holds_of(1 << 12, pa.array([2**40], pa.int64())) is None


@example(0, 1, (0, 3), [((1, 0, 3), 10)])
@given(st.integers(0, 1), write_ids, st.sampled_from([(0, 3), (2, 2), (2**20, 2**47)]), st.lists(deletes, max_size=9))
def test_all_rows_of_one_write_stay_where_none_of_them_would_go(
    bucket: int, write_id: int, ids: tuple[int, int], events: list[tuple[tuple[int, int, int], int]]
) -> None:
    visibility = Visibility.of(HIGH_WATER_MARK - 1, ABORTED)
    delete_batches = [batch([(2, key[0], bucket_property(0, key[1]), key[2], by)]) for key, by in events]
    key_filter = KeyFilter(bucket, visibility, deleted_keys(delete_batches, visibility))
    rows = batch([(0, write_id, bucket_property(0), row_id, write_id) for row_id in sorted(set(ids))])
    write = one_write(rows)
    assert write is not None
    stays = key_filter.keeps_all("rows", write)
    between = any(key[:2] == (write_id, 0) and ids[0] <= key[2] <= ids[1] for key, by in events if by not in ABORTED)
    assert stays is (bucket == 0 and write_id not in (2, HIGH_WATER_MARK) and not between)
    if stays:
        with pytest.raises(CorruptFileError, match="does not come after"):
            key_filter.keeps_all("again", write)
