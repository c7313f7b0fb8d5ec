"""Sensor, operator and cleaner with a Spark standalone cluster of two workers.

The executors run in the workers' processes, with a Python that has pyarrow, pyorc and protobuf; this package reaches
driver and executors by ``--py-files`` alone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from airflow_provider_acid.shipped_files import shipped_file
from tests.harness.spark_cluster import SparkCluster
from tests.integration.cluster_runs import (
    ON_EACH_SPARK,
    PARTITIONS,
    check_cleaned,
    due_items,
    due_table,
    executors_of,
    operator,
    rows_of,
    run,
)
from tests.integration.compaction_site import Site

pytestmark = ON_EACH_SPARK

SPARKS_REFUSAL = "Cluster deploy mode is currently not supported for python applications on standalone clusters"


def test_what_the_sensor_finds_is_merged_on_the_workers_published_and_cleaned(
    site: Site, cluster: SparkCluster
) -> None:
    table = due_table(site)
    before = rows_of(table)
    sensor = AcidCompactionSensor(task_id="due", tables=[f"{site.database}.*"], delta_num_threshold=1)
    answer = sensor.poke({})
    assert answer.xcom_value is not None
    [due] = answer.xcom_value
    already_running = executors_of(cluster)

    compacted = run(operator(cluster, due))

    assert [item["state"] for item in compacted] == ["compacted", "compacted"]
    started = executors_of(cluster) - already_running
    assert {folder.parts[0] for folder in started} == {"worker-0", "worker-1"}
    assert rows_of(table) == before
    cleaned = AcidCleanerOperator(task_id="clean", partitions=compacted, deferrable=False, poll_seconds=0.1).execute({})
    assert [item["state"] for item in cleaned] == ["cleaned", "cleaned"]
    assert rows_of(table) == before
    check_cleaned(table)


def test_the_executors_have_this_package_from_nowhere_else(cluster: SparkCluster, tmp_path: Path) -> None:
    program = "import pyarrow, pyorc, google.protobuf; import airflow_provider_acid"
    done = subprocess.run(
        [cluster.home.python, "-c", program], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'airflow_provider_acid'"


def test_an_application_without_this_package_changes_nothing(site: Site, cluster: SparkCluster) -> None:
    table = due_table(site)
    before = table.fingerprint()
    with pytest.raises(
        AirflowException, match="No module named 'airflow_provider_acid'.* Remedy: leave ship_package on"
    ):
        run(operator(cluster, due_items(table), ship_package=False))
    assert table.fingerprint() == before


def test_cluster_deploy_mode_is_refused_as_spark_would_before_anything_is_asked_for(
    site: Site, cluster: SparkCluster, tmp_path: Path
) -> None:
    table = due_table(site)
    with pytest.raises(AirflowFailException, match="use deploy mode 'client'") as refusal:
        run(operator(cluster, due_items(table), deploy_mode="cluster"))
    assert [site.rows(table.entity(partition)) for partition in PARTITIONS] == [[], []]
    master = f"{cluster.connection['host']}:{cluster.port}"
    assert str(refusal.value).startswith(f"deploy mode 'cluster' on {master}: is not possible")
    command = [
        "spark-submit",
        "--master",
        master,
        "--deploy-mode",
        "cluster",
        str(shipped_file("spark_jobs/compact.py")),
    ]
    spark = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert spark.returncode != 0
    assert SPARKS_REFUSAL in spark.stderr
