"""Sensor, operators and housekeeping send their figures, with the connection and the DAG they are of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AssetAlias, Stats
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.assets.table import acid_table
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.housekeep.report import Chore, Deed, HousekeepingReport
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.operators import cleaner, compaction, housekeeping
from airflow_provider_acid.sensors import compaction as sensor

ENTITY = Entity("d", "t", "p=1")
PARTITIONS: list[dict[str, Any]] = [{"database": "d", "table": "t", "partition": "p=1"}]


class Site:
    """Stands for Initiator, Cleaner, Housekeeper and batch, whatever they are made with, and for Airflow's Stats."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.tags: set[tuple[tuple[str, str], ...]] = set()

    def __call__(self, *_: object, **__: object) -> Site:
        return self

    def evaluate(self, selection: object) -> Evaluation:
        return Evaluation(skipped=("one",))

    def clean(self, entities: object) -> tuple[Cleaning, ...]:
        return (Cleaning(ENTITY, 1, CleaningState.CLEANED, "m", ("a",)),)

    def sweep(self, selection: object) -> HousekeepingReport:
        return HousekeepingReport((Deed(ENTITY, Chore.REMOVED, "m"),), (), ())

    def start(self) -> None: ...

    def application_ended(self, refusal: object) -> None: ...

    def wait_until_planned(self) -> None: ...

    def join(self) -> tuple[Outcome, ...]:
        return (Outcome(ENTITY, OutcomeState.COMPACTED, "m", 1, ("base_1",), 10, 5, 1),)

    def send(self, name: str, value: float, *, tags: dict[str, str]) -> None:
        self.sent[name] = value
        self.tags.add(tuple(tags.items()))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site()
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setattr(AcidMetastoreClient, "probe", lambda self: HIVE_4)
    # No thread of its own but housekeeping.
    monkeypatch.setattr(
        AcidMetastoreClient, "config_value", lambda self, name: "true" if "housekeeping" in name else "false"
    )
    monkeypatch.setattr(sensor, "Initiator", made)
    monkeypatch.setattr(cleaner, "Cleaner", made)
    monkeypatch.setattr(housekeeping, "Housekeeper", made)
    monkeypatch.setattr(connected_batch, "CompactionBatch", made)
    monkeypatch.setattr(Stats, "gauge", made.send)
    monkeypatch.setattr(Stats, "incr", made.send)
    with DAG("nightly"):
        yield made
    assert made.tags == {(("conn_id", "metastore"), ("dag_id", "nightly"))}


def test_the_sensor_sends_what_it_saw(site: Site) -> None:
    sensor.AcidCompactionSensor(task_id="s", tables="d.*", hive_acid_conn_id="metastore").poke({})
    assert site.sent["hive_acid.passed_over"] == 1
    assert site.sent["hive_acid.compaction_num_failed"] == 0


def test_the_operator_sends_what_came_of_its_partitions(site: Site) -> None:
    compaction.AcidCompactionOperator(task_id="c", partitions=PARTITIONS, hive_acid_conn_id="metastore").execute({})
    assert site.sent["hive_acid.outcome_compacted"] == 1
    assert site.sent["hive_acid.merged_input_bytes"] == 10


def test_also_of_those_that_failed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "join", lambda: (Outcome(ENTITY, OutcomeState.FAILED, "no disk"),))
    task = compaction.AcidCompactionOperator(task_id="c", partitions=PARTITIONS, hive_acid_conn_id="metastore")
    with pytest.raises(Exception, match="no disk"):
        task.execute({})
    assert {name: count for name, count in site.sent.items() if count} == {"hive_acid.outcome_failed": 1}


def test_the_cleaner_sends_what_it_deleted(site: Site) -> None:
    task = cleaner.AcidCleanerOperator(task_id="c", partitions=PARTITIONS, hive_acid_conn_id="metastore")
    task.execute({})
    assert site.sent["hive_acid.cleaning_deleted"] == 1


def test_housekeeping_sends_what_it_did(site: Site) -> None:
    task = housekeeping.AcidHousekeepingOperator(task_id="h", tables="d.*", hive_acid_conn_id="metastore")
    task.execute({})
    assert site.sent["hive_acid.housekeeping_removed"] == 1
    assert site.sent["hive_acid.compaction_num_failed"] == 0


def test_the_operator_fills_the_events_of_its_outlets(site: Site) -> None:
    orders = acid_table("metastore", "d", "t")
    task = compaction.AcidCompactionOperator(
        task_id="c", partitions=PARTITIONS, hive_acid_conn_id="metastore", outlets=[orders, AssetAlias("compacted")]
    )
    events = OutletEventAccessors()
    task.execute({"outlet_events": events})
    assert events[orders].partition_keys == {"p=1"}
    (event,) = events[AssetAlias("compacted")].asset_alias_events
    assert event.dest_asset_key.uri == "hive-acid://not.asked:9083/d/t"


def test_the_operator_tells_openlineage_of_its_tables(site: Site) -> None:
    task = compaction.AcidCompactionOperator(task_id="c", partitions=PARTITIONS, hive_acid_conn_id="metastore")
    task.execute({})
    lineage = task.get_openlineage_facets_on_complete(None)
    assert lineage is not None
    assert [(dataset.namespace, dataset.name) for dataset in lineage.outputs] == [("hive://not.asked:9083", "d.t")]
