from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.write_ids import (
    RangeResponse,
    TableWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    WriteIdView,
    cleaner_list,
    cleaner_txns,
    compactor_list,
)
from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.reader_list import reader_list

NONE, SOME, ALL = RangeResponse.NONE, RangeResponse.SOME, RangeResponse.ALL


def answer(high_water_mark: int, open_ids: tuple[int, ...] = (), aborted: tuple[int, ...] = ()) -> TableWriteIds:
    return TableWriteIds("db.t", high_water_mark, frozenset(open_ids), frozenset(aborted))


@st.composite
def answers(draw: st.DrawFn) -> TableWriteIds:
    mark = draw(st.integers(0, 20))
    state = draw(st.lists(st.sampled_from("coa"), min_size=mark, max_size=mark))
    return answer(
        mark,
        tuple(index for index, letter in enumerate(state, 1) if letter == "o"),
        tuple(index for index, letter in enumerate(state, 1) if letter == "a"),
    )


spans = st.tuples(st.integers(1, 24), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair)))


def share(flags: list[bool]) -> RangeResponse:
    return ALL if all(flags) else SOME if any(flags) else NONE


@given(answers(), spans)
def test_a_reader_sees_what_is_committed_up_to_the_mark(table: TableWriteIds, span: tuple[int, int]) -> None:
    write_ids = reader_list(table)
    committed = {i for i in range(1, table.high_water_mark + 1)} - table.open - table.aborted
    inside = range(span[0], span[1] + 1)
    assert [write_ids.is_write_id_valid(i) for i in inside] == [i in committed for i in inside]
    assert write_ids.is_range_valid(*span) is share([i in committed for i in inside])
    assert write_ids.is_range_aborted(*span) is share([i in table.aborted for i in inside])


@given(answers(), spans)
def test_a_compactor_stops_below_the_lowest_open_write_id(table: TableWriteIds, span: tuple[int, int]) -> None:
    write_ids = compactor_list(table)
    mark = min(table.open, default=table.high_water_mark + 1) - 1
    assert write_ids.high_water_mark == mark
    assert write_ids.open == ()
    assert write_ids.aborted == tuple(sorted(i for i in table.aborted if i <= mark))
    assert write_ids.is_range_valid(*span) is (ALL if span[1] <= mark else NONE)
    assert not any(write_ids.is_write_id_valid(i) for i in table.open | table.aborted)
    assert not any(write_ids.is_valid_base(i) for i in range(mark + 1, 30))


@given(answers(), st.integers(0, 24), spans)
def test_a_cleaner_looks_at_nothing_above_its_mark(table: TableWriteIds, mark: int, span: tuple[int, int]) -> None:
    write_ids = cleaner_list(table, mark)
    assert write_ids.high_water_mark == min(mark, table.high_water_mark)
    if span[1] > write_ids.high_water_mark:
        assert write_ids.is_range_valid(*span) is NONE
        assert write_ids.is_range_aborted(*span) is not ALL
    else:
        assert write_ids.is_range_valid(*span) is reader_list(table).is_range_valid(*span)
        assert write_ids.is_range_aborted(*span) is reader_list(table).is_range_aborted(*span)


@given(answers(), st.sampled_from([reader_list, compactor_list]))
def test_every_write_id_list_is_read_back_from_its_text(table: TableWriteIds, make: object) -> None:
    write_ids = reader_list(table) if make is reader_list else compactor_list(table)
    assert ValidWriteIdList.parse(str(write_ids), write_ids.view) == write_ids


@given(
    st.integers(0, 2**62),
    st.sets(st.integers(1, 2**62), max_size=5),
    st.sets(st.integers(1, 2**62), max_size=5),
)
def test_every_txn_list_is_read_back_from_its_text(mark: int, open_txns: set[int], aborted: set[int]) -> None:
    txns = ValidTxnList(mark, tuple(open_txns), tuple(aborted - open_txns))
    assert ValidTxnList.parse(str(txns)) == txns


@pytest.mark.parametrize(
    ("write_ids", "text"),
    [
        (reader_list(answer(5)), "db.t:5:9223372036854775807::"),
        (reader_list(answer(9, (7, 8), (2, 3))), "db.t:9:7:7,8:2,3"),
        (reader_list(answer(9, (), (2, 3))), "db.t:9:9223372036854775807::2,3"),
        (compactor_list(answer(9, (7, 8), (2, 9))), "db.t:6:7::2"),
        (compactor_list(answer(9, (7, 8))), "db.t:6:9223372036854775807::"),
        (ValidWriteIdList(None, 3), "null:3:9223372036854775807::"),
    ],
)
def test_a_list_is_written_as_hive_writes_it(write_ids: ValidWriteIdList, text: str) -> None:
    assert str(write_ids) == text


def test_ranges_as_hive_4_writes_them_are_read_and_written_as_plain_ids() -> None:
    write_ids = ValidWriteIdList.parse("db.t:30:10:10-12,20:1-2,5")
    assert (write_ids.open, write_ids.aborted) == ((10, 11, 12, 20), (1, 2, 5))
    assert str(write_ids) == "db.t:30:10:10,11,12,20:1,2,5"
    assert ValidTxnList.parse("30:10:10-12:").open == (10, 11, 12)


def test_separators_may_be_missing_at_the_end() -> None:
    assert ValidTxnList.parse("30:9223372036854775807") == ValidTxnList(30)
    assert ValidTxnList.parse("30:4:4") == ValidTxnList(30, (4,))


@pytest.mark.parametrize(
    "text", ["", "db.t", "db.t:5", "db.t:x:1::", "db.t:5:1:a:", "db.t:5:1:9-3:", "db.t:5:1:::", "a:1-99:"]
)
def test_a_text_that_is_no_write_id_list_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="unchanged"):
        ValidWriteIdList.parse(text)


@pytest.mark.parametrize("text", ["", "5", "x:1::", "5:1:1-999999999999:"])
def test_a_text_that_is_no_txn_list_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="unchanged"):
        ValidTxnList.parse(text)


def test_a_compactors_list_names_no_open_write_ids() -> None:
    with pytest.raises(ConfigurationError, match="open write ids"):
        ValidWriteIdList.parse("db.t:9:7:7:2", WriteIdView.COMPACTOR)


def test_a_compacted_base_may_hold_no_open_write_id() -> None:
    write_ids = reader_list(answer(9, (5,)))
    assert [i for i in range(12) if write_ids.is_valid_base(i)] == [0, 1, 2, 3, 4]
    assert [i for i in range(12) if reader_list(answer(9, (), (5,))).is_valid_base(i)] == list(range(10))


def test_the_lowest_open_write_id_counts_beside_an_exception_only() -> None:
    table = TableWriteIds("db.t", 9, frozenset(), frozenset(), 5)
    assert reader_list(table).min_open is None
    assert reader_list(TableWriteIds("db.t", 9, frozenset(), frozenset({2}), 5)).min_open == 5


def test_transactions_are_valid_up_to_the_mark_unless_open_or_aborted() -> None:
    txns = ValidTxnList(10, (7, 4), (9, 2))
    assert [i for i in range(13) if txns.is_txn_valid(i)] == [0, 1, 3, 5, 6, 8, 10]
    assert [i for i in range(13) if txns.is_txn_aborted(i)] == [2, 9]
    assert txns.min_open == 4
    assert ValidTxnList(10).min_open is None


def test_a_transactions_own_list_leaves_itself_and_all_later_ones_out() -> None:
    txns = ValidTxnList(10, (4, 7, 8), (2, 9))
    assert txns.as_of(7) == ValidTxnList(7, (4,), (2,))
    assert txns.as_of(12) == ValidTxnList(10, (4, 7, 8), (2, 9))


@pytest.mark.parametrize(
    ("min_open_txn", "compaction_txn", "seen", "unseen"),
    [
        (20, 7, (5, 7), (8, 10, 19)),
        (7, 7, (5, 6), (7, 8)),
        (6, 7, (5,), (6, 7)),
    ],
    ids=["later compactions", "a reader as old as the compaction", "an older reader"],
)
def test_a_cleaner_counts_no_compaction_that_is_newer_than_its_own(
    min_open_txn: int, compaction_txn: int, seen: tuple[int, ...], unseen: tuple[int, ...]
) -> None:
    txns = cleaner_txns(min_open_txn, compaction_txn, ())
    assert all(map(txns.is_txn_valid, seen))
    assert not any(map(txns.is_txn_valid, unseen))
    assert not any(map(txns.is_txn_aborted, unseen))


def test_a_cleaner_knows_the_aborted_compactions_below_every_open_transaction() -> None:
    txns = cleaner_txns(20, 7, (3, 12, 25))
    assert [txns.is_txn_aborted(txn) for txn in (3, 7, 12, 25)] == [True, False, True, False]
    assert not any(map(txns.is_txn_valid, (3, 12, 25)))
