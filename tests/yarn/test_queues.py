"""A queue of the cluster that a table names and YARN does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.airflow_connections import connections_to
from tests.harness.compaction_chain import Chain
from tests.harness.operator_process import TaskProcess
from tests.harness.spark_homes import the_spark
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.remote_tables import RemoteTable
from tests.yarn.sites import name_queue, yarn_site

UNKNOWN = "no_such_queue"


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_a_queue_that_yarn_does_not_know_is_told_at_once_and_is_no_failure_of_a_partition(
    yarn: YarnCluster, table: RemoteTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    before = {application.id for application in yarn.applications()}
    name_queue(table, UNKNOWN)
    storage = {"hdfs": table.place.storages.of(HdfsOptions).to_json()}
    for name, value in connections_to(table.server, storage=storage).items():
        monkeypatch.setenv(name, value)
    sensor = AcidCompactionSensor(
        task_id="due",
        tables=[f"{table.table.database}.*"],
        delta_num_threshold=0,
        override_no_auto_compaction=True,
    )
    answer = sensor.poke({})
    assert answer.xcom_value is not None
    [due] = answer.xcom_value
    task = TaskProcess(table.server, due, tmp_path / "task", "run", yarn_site(yarn, the_spark().folder, mode), storage)
    assert task.wait() == 1
    assert f"AirflowFailException: {len(due)} of {len(due)} partitions failed: " in task.log()
    assert f"queue {UNKNOWN} of the cluster: " in task.log()
    [application] = [each for each in yarn.applications() if each.id not in before]
    assert (application.state, application.queue) == ("FAILED", UNKNOWN)
    for entity in table.entities:
        chain = Chain.on(table.server, entity)
        with chain.client() as client:
            assert [row.state for row in chain.queue(client).rows(entity)] == [CompactionState.REFUSED]
    assert sensor.poke({}).xcom_value == [due]
    assert table.read() == table.expected
