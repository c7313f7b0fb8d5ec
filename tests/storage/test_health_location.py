"""Figures and history for the page in Airflow's UI are kept on every kind of store."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.health.files import day_of, now_ms
from airflow_provider_acid.health.history import RecordMaker, TaskPlace
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recorder import EvaluationRecorder
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY, HealthStore
from airflow_provider_acid.plan.plan import CompactionType
from tests.storage.stores import Store
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages

METASTORE = "hive_acid_default"
PARTITION = Entity("d", "t", "p=00001")


class StoragesOf(Storages):
    """Opens the store and what is below it."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def open(self, location: str) -> Storage:
        assert location.startswith(self._store.location.rstrip("/"))
        return self._store.open(location[len(self._store.location) :].strip("/"))


def location(store: Store) -> str:
    return store.uri("health")


def health_store(store: Store) -> HealthStore:
    return HealthStore.at(location(store), StoragesOf(store))


def reader(store: Store) -> HealthReader:
    return HealthReader(lambda: store.open("health"))


def evaluate(store: Store, partitions: int) -> None:
    site = EvaluatedTables({"t": partitions}, FakeStorages())
    with EvaluationRecorder(METASTORE, looks_at_all=True) as recorder:
        site.observer = recorder
        site.evaluate()
        recorder.publish(health_store(store))


def compacted(token: str, days_ago: int) -> RecordMaker:
    ended_ms = now_ms() - days_ago * MILLISECONDS_PER_DAY
    return RecordMaker(METASTORE, TaskPlace("dag", "run", "compact", 2), ended_ms, token)


def add_history(store: Store, token: str, days_ago: int) -> None:
    asked = [DuePartition(PARTITION, CompactionType.MINOR, "asked")]
    outcome = Outcome(PARTITION, OutcomeState.COMPACTED, "12 deltas", 3, ("base_0000009_v7",), 100, 60, 9, 1.5)
    health_store(store).add_history(compacted(token, days_ago).of_outcomes(asked, [outcome]))


def files(store: Store, kind: str) -> list[str]:
    return sorted(name for name in store.names() if name.endswith(kind))


def test_the_partitions_of_the_last_evaluation_are_read_back(store: Store) -> None:
    for partitions in (3, 2):
        evaluate(store, partitions)
        rows = reader(store).health().partitions.to_pylist()
        assert sorted(row["partition"] for row in rows) == [f"p={number:05d}" for number in range(partitions)]
        assert {row["deltas"] for row in rows} == {3}
        assert len(reader(store).directories(METASTORE, PARTITION)) == 3
        assert len(files(store, ".parquet")) == 1


def test_the_history_is_read_back_also_after_its_files_were_merged(store: Store) -> None:
    for token, days_ago in (("a", 2), ("b", 2), ("c", 0)):
        add_history(store, token, days_ago)
    found = reader(store).health()
    assert {record.id for record in found.history} == {"a/0", "b/0", "c/0"}
    assert len(files(store, ".jsonl")) == 3

    health_store(store).merge_history(day_of(now_ms()) - timedelta(days=1))

    assert len(files(store, ".jsonl")) == 2
    again = reader(store).health()
    assert {record.id for record in again.history} == {"a/0", "b/0", "c/0"}


def test_nothing_is_known_of_a_location_that_nobody_wrote_to(store: Store) -> None:
    found = reader(store).health()
    assert (found.partitions.num_rows, found.history) == (0, ())
