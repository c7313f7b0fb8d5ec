"""Sensor, operator and cleaner on a real YARN, with the examples of docs/deploy.md, and tables on a real HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.spark_homes import the_spark
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.airflow_tasks import run_tasks
from tests.storage.remote_tables import RemoteTable
from tests.yarn.sites import name_queue, yarn_site

ODD_NAME = "runs {{HOME}} }} <LOG_DIR> $HOME `id` %7D ü"
"""Of which YARN and its shells would take all but the letters for something else."""


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_sensor_operator_and_cleaner_work_in_containers(
    yarn: YarnCluster, table: RemoteTable, tmp_path: Path, mode: str
) -> None:
    before = [application.id for application in yarn.applications()]
    name_queue(table, "compaction")
    site = yarn_site(yarn, the_spark().folder, mode, run_directory=odd_directory(table))
    options = {"hdfs": table.place.storages.of(HdfsOptions).to_json()}
    compacted, cleaned = run_tasks(table.server, table.name, options, {}, tmp_path / "airflow", site)
    assert [item["state"] for item in compacted] == ["compacted"] * 3
    assert [item["state"] for item in cleaned] == ["cleaned"] * 3
    assert table.read() == table.expected
    for entity in table.entities:
        assert [found[:5] for found in table.names(entity)] == ["base_"]
    [application] = [each for each in yarn.applications() if each.id not in before]
    assert (application.state, application.queue) == ("FINISHED", "root.compaction")
    assert yarn.attempts(application.id) == 1


def odd_directory(table: RemoteTable) -> str:
    """A directory for run directories whose name YARN would change."""
    table.place.storages.open(table.place.uri).make_directory(ODD_NAME)
    return f"{table.place.uri}/{ODD_NAME}"
