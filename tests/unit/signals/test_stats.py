"""Measurements reach Airflow's own backend, and one that fails stops nothing."""

from __future__ import annotations

import logging

import pytest
from airflow.providers.common.compat.sdk import Stats

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.signals import metrics
from airflow_provider_acid.signals.measurements import Measurement
from airflow_provider_acid.signals.stats import cleaner_cycle, initiator_cycle, send

TAGS = {"conn_id": "hive", "dag_id": "d"}


class Backend:
    """Notes what Airflow's Stats are told."""

    def __init__(self) -> None:
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, int] = {}
        self.tags: list[object] = []

    def gauge(self, name: str, value: float, *, tags: dict[str, str]) -> None:
        self.gauges[name] = value
        self.tags.append(tags)

    def incr(self, name: str, count: int, *, tags: dict[str, str]) -> None:
        self.counters[name] = self.counters.get(name, 0) + count
        self.tags.append(tags)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    noted = Backend()
    monkeypatch.setattr(Stats, "gauge", noted.gauge)
    monkeypatch.setattr(Stats, "incr", noted.incr)
    return noted


def test_gauges_are_set_and_counters_grow_under_the_prefix_with_tags(backend: Backend) -> None:
    for _ in range(2):
        send([Measurement(metrics.DUE, 3), Measurement(metrics.DELETED, 2)], TAGS)
    assert backend.gauges == {"hive_acid.due_partitions": 3}
    assert backend.counters == {"hive_acid.cleaning_deleted": 4}
    assert backend.tags == [TAGS] * 4


def test_a_backend_that_fails_is_told_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(Stats, "gauge", fail)
    with caplog.at_level(logging.WARNING):
        send([Measurement(metrics.DUE, 3), Measurement(metrics.EVALUATED, 3)], TAGS)
    assert [record.getMessage() for record in caplog.records] == ["Metrics were not sent: OSError: no route to host"]


def test_a_look_is_measured(backend: Backend) -> None:
    with initiator_cycle(TAGS) as measured:
        measured(Evaluation(skipped=("one",)))
    assert backend.gauges["hive_acid.passed_over"] == 1
    assert 0 <= backend.gauges["hive_acid.compaction_initiator_cycle_duration"] < 60_000
    assert backend.counters == {"hive_acid.compaction_initiator_failure_counter": 0}


def test_a_look_that_fails_is_counted_and_fails(backend: Backend) -> None:
    with pytest.raises(ValueError, match="gone"), initiator_cycle(TAGS):
        raise ValueError("gone")
    assert (backend.gauges, backend.counters) == ({}, {"hive_acid.compaction_initiator_failure_counter": 1})


def test_a_cleaning_is_measured_and_its_failure_counted(backend: Backend) -> None:
    with cleaner_cycle(TAGS) as measured:
        measured([Cleaning(Entity("d", "t"), 1, CleaningState.CLEANED, "m", ("a",))])
    grown = {name: count for name, count in backend.counters.items() if count}
    assert grown == {"hive_acid.cleaning_cleaned": 1, "hive_acid.cleaning_deleted": 1}
    with pytest.raises(ValueError, match="gone"), cleaner_cycle(TAGS):
        raise ValueError("gone")
    assert backend.counters["hive_acid.compaction_cleaner_failure_counter"] == 1
