"""What the operator tells its batch of the time window, and what it tells people of many failures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.operators.compaction import AcidCompactionOperator


class BatchMadeError(Exception):
    """Instead of a batch; with what it was to have."""

    def __init__(self, window_end: WindowEnd | None) -> None:
        super().__init__()
        self.window_end = window_end


@pytest.fixture(autouse=True)
def _no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_none(*_: object, window_end: WindowEnd | None, **__: object) -> NoReturn:
        raise BatchMadeError(window_end)

    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(connected_batch, "CompactionBatch", make_none)


def execute(window: str | None) -> None:
    partitions = [{"database": "d", "table": "t"}]
    operator = AcidCompactionOperator(task_id="c", partitions=partitions, time_window=window, time_zone="Europe/Berlin")
    operator.execute({})


def test_the_end_of_the_window_that_is_open_is_an_absolute_moment() -> None:
    with pytest.raises(BatchMadeError) as made:
        execute("00:00-23:59")
    expected = WindowEnd.of(TimeWindow.of("00:00-23:59", "Europe/Berlin"))
    assert made.value.window_end is not None
    assert abs(made.value.window_end.ends_seconds - expected.ends_seconds) < 120


@pytest.mark.parametrize("window", [None, "", "None"])
def test_without_a_window_there_is_no_end(window: str | None) -> None:
    with pytest.raises(BatchMadeError) as made:
        execute(window)
    assert made.value.window_end is None


def test_a_window_that_cannot_be_read_is_refused_by_name() -> None:
    with pytest.raises(AirflowFailException, match="^parameter time_window: is 'at night'.* Remedy: write it like"):
        execute("at night")


class RefusingBatch:
    """Refuses everything, and needs no application for it."""

    def __init__(self, items: Sequence[DuePartition], *_: object, **__: object) -> None:
        self._items = items

    def start(self) -> None: ...

    def wait_until_planned(self) -> None: ...

    def application_ended(self, refusal: object) -> None: ...

    def join(self) -> tuple[Outcome, ...]:
        return tuple(Outcome(item.entity, OutcomeState.REFUSED, "odd") for item in self._items)


def test_of_many_failures_the_error_names_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_batch, "CompactionBatch", RefusingBatch)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    partitions = [{"database": "d", "table": "t", "partition": f"p={number}"} for number in range(8)]
    with pytest.raises(AirflowFailException) as failure:
        AcidCompactionOperator(task_id="c", partitions=partitions).execute({})
    named = "; ".join(f"d.t/p={number}: odd" for number in range(5))
    assert str(failure.value) == f"8 of 8 partitions failed: {named}; and 3 more, see the log"
