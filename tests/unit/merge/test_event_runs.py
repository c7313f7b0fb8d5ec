"""Events merged from sorted runs are the same as events that were sorted all at once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.merge.keys import event_runs
from airflow_provider_acid.merge.keys.event_runs import EVENT_FIELDS, ascends, gather_runs, joined

Event = tuple[int, int, int]

EVENTS = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(1, 3))


@pytest.fixture(autouse=True, scope="module")
def short_runs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_runs, "_RUN_EVENTS", 5)
        patch.setattr(event_runs, "_BLOCK_EVENTS", 6)
        yield


def batch_of(events: list[Event]) -> pa.RecordBatch:
    columns = [pa.array([event[place] for event in events], pa.int64()) for place in range(3)]
    return pa.RecordBatch.from_arrays(columns, names=EVENT_FIELDS)


def rows_of(batch: pa.RecordBatch) -> list[Event]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def in_order(events: list[Event]) -> list[Event]:
    return sorted(set(events), key=lambda event: (event[0], event[1], -event[2]))


@given(st.lists(st.lists(EVENTS, max_size=8), max_size=12))
def test_every_event_comes_once_and_in_order_however_often_they_are_asked_for(batches: list[list[Event]]) -> None:
    runs = gather_runs(map(batch_of, batches))
    events = [event for batch in batches for event in batch]
    assert runs.events == len(events)
    for _ in range(2):
        assert [row for batch in runs.merged() for row in rows_of(batch)] == in_order(events)


@given(st.lists(st.lists(st.tuples(st.just(1), st.integers(0, 1 << 62), st.just(2)), max_size=8), max_size=12))
def test_no_more_events_are_merged_at_once_than_a_block_has(batches: list[list[Event]]) -> None:
    events = list({event for batch in batches for event in batch})
    runs = gather_runs([batch_of(events)[start : start + 3] for start in range(0, len(events), 3)])
    for batch in runs.merged():
        assert batch.num_rows <= max(event_runs._BLOCK_EVENTS, len(runs.runs))


@pytest.mark.parametrize("values", [127, 128, 129, 32_767, 32_768, 32_769])
def test_numbers_of_as_many_values_as_a_place_can_tell_come_back(values: int) -> None:
    events = [(number, 5, 2**40 - number) for number in range(values)]
    runs = gather_runs([batch_of(events)])
    assert [row for batch in runs.merged() for row in rows_of(batch)] == in_order(events)


@given(st.lists(EVENTS, max_size=8))
def test_that_events_ascend_is_said_of_those_in_order_that_come_once(events: list[Event]) -> None:
    assert ascends(batch_of(events)) == (events == in_order(events))


@given(st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=4))
def test_joined_batches_hold_the_rows_of_all(batches: list[list[Event]]) -> None:
    assert rows_of(joined([batch_of(batch) for batch in batches])) == [event for batch in batches for event in batch]
