"""The operator and Kubernetes: a real spark-submit in cluster mode, an API that records, a driver that runs here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark

from airflow_provider_acid.acid.arguments import from_argument
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.run.application import ARCHIVE_NAME, KEY_FILE
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness.compaction_chain import wait_until
from tests.harness.kubernetes_api import KubernetesApi, Pod
from tests.harness.operator_process import TaskProcess
from tests.harness.spark_sites import LOCAL_SPARK, SparkSite
from tests.integration.compaction_site import AcidTable, Site
from tests.unit.test_documented_settings import json_of

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"
ODD_NAME = "runs of 'us' \"$(SPARK_USER)\" $$ {{x}} %41 `id` ü;&"
"""``$(SPARK_USER)`` is what Kubernetes puts a variable of the container's environment in place of."""
LONG_PARTITION = "p=" + "x" * 250
"""Longer than a pod may be called."""
DRIVER_SECONDS = 120


class Cluster:
    """The documented connection and parameters, with the API of the tests and an upload path on this machine."""

    def __init__(self, folder: Path, api: KubernetesApi, site: Site, table: AcidTable, partition: str | None) -> None:
        connection, self.parameters = json_of("docs/deploy.md", "Kubernetes")
        host, port = connection["host"], urlsplit(api.url).port
        assert re.fullmatch(r"k8s://https://[a-z.]+", host)
        self.uploads, self.runs = folder / "uploads", folder / ODD_NAME
        self.runs.mkdir()
        self.uploads.mkdir()
        kubernetes_config = folder / "kubernetes.config"
        kubernetes_config.write_text(json.dumps(config_to(api.url)))
        conf = {**self.parameters["conf"], "spark.kubernetes.file.upload.path": self.uploads.as_uri()}
        spark = SparkSite(
            {**connection, "host": "k8s://http://127.0.0.1", "port": port},
            {**self.parameters, "conf": conf, "run_directory": f"file:{self.runs}"},
            {
                **LOCAL_SPARK.environment,
                "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
                "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(kubernetes_config),
            },
        )
        self.namespace = connection["extra"]["namespace"]
        self.task = TaskProcess(site.server, [asdict(table.entity(partition))], folder / "task", "run", spark)


def config_to(url: str) -> dict[str, Any]:
    """As ``kubectl`` and Airflow read it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": {"server": url}}],
        "users": [{"name": "tests", "user": {}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    }


def running_driver(folder: Path) -> Callable[[Pod], int]:
    """What the entry point of Spark's image does with the pod's arguments, on this machine with two task slots."""

    def run(pod: Pod) -> int:
        folder.mkdir()
        first, *arguments = pod.container["args"]
        assert first == "driver"
        properties = folder / "spark.properties"
        properties.write_text(pod.settings)
        arguments[arguments.index("--properties-file") + 1] = str(properties)
        here = {
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.port": "0",
            "spark.driver.blockManager.port": "0",
            "spark.pyspark.python": sys.executable,
            "spark.ui.enabled": "false",
        }
        settings = [part for name, value in here.items() for part in ("--conf", f"{name}={value}")]
        command = [str(SPARK_SUBMIT), *settings, "--deploy-mode", "client", *arguments]
        environment = {**os.environ, **LOCAL_SPARK.environment}
        with (folder / "log").open("wb") as log:
            return subprocess.run(
                command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=DRIVER_SECONDS
            ).returncode

    return run


def due_table(site: Site, partition: str) -> AcidTable:
    table = site.table(partitions=(partition,))
    for value in range(3):
        table.insert(value, partition=partition)
    return table


def options_of(arguments: list[str]) -> Mapping[str, str]:
    """Those of our script."""
    return dict(zip(arguments[::2], map(from_argument, arguments[1::2]), strict=True))


def test_the_driver_gets_script_arguments_and_key_as_they_are_and_the_pod_tells_no_secret(
    hive_4_site: Site, tmp_path: Path
) -> None:
    site = hive_4_site
    keys: list[bytes] = []
    open_to_others: list[Path] = []
    table = due_table(site, LONG_PARTITION)
    before = table.rows()
    run = running_driver(tmp_path / "driver")

    def with_uploads(pod: Pod) -> int:
        uploaded = {file.name: file for file in cluster.uploads.glob("*/*")}
        assert uploaded.keys() == {"compact.py", ARCHIVE_NAME, KEY_FILE}
        paths = (*uploaded.values(), *(file.parent for file in uploaded.values()))
        open_to_others.extend(path for path in paths if path.stat().st_mode & 0o077)
        keys.append(uploaded[KEY_FILE].read_bytes())
        return run(pod)

    with KubernetesApi(with_uploads) as api:
        cluster = Cluster(tmp_path, api, site, table, LONG_PARTITION)
        exit_code = cluster.task.wait()
    driver_log = tmp_path / "driver" / "log"
    assert exit_code == 0, cluster.task.log() + (driver_log.read_text() if driver_log.exists() else "")
    assert [item["state"] for item in json.loads(cluster.task.log().splitlines()[-1])] == ["compacted"]
    assert table.rows() == before
    assert {each.state for each in site.clean(table.entity(LONG_PARTITION))} == {CleaningState.CLEANED}
    assert table.rows() == before

    assert open_to_others == []
    [pod] = api.pods
    assert pod.path == f"/api/v1/namespaces/{cluster.namespace}/pods/{pod.name}"
    assert pod.container["image"] == cluster.parameters["conf"]["spark.kubernetes.container.image"]
    arguments = pod.container["args"]
    [script] = [number for number, word in enumerate(arguments) if word.endswith("/compact.py")]
    options = options_of(arguments[script + 1 :])
    assert options["--run-directory"].startswith((f"file:{cluster.runs}/", f"{cluster.runs}/"))
    assert not any("$" in word for word in arguments), "Kubernetes would look for its variables"
    [key] = keys
    told = "".join(each.body for each in api.asked)
    assert Path(options["--key-file"]).name in told
    for secret in (key.hex(), b64encode(key).decode(), key.decode("latin-1"), json.dumps(key.decode("latin-1"))[1:-1]):
        assert secret not in told
        assert secret not in cluster.task.log()


def test_a_driver_that_fails_is_told_by_the_name_of_its_pod_and_nothing_is_published(
    hive_4_site: Site, tmp_path: Path
) -> None:
    site = hive_4_site
    table = due_table(site, "p=1")
    before, files = table.rows(), table.fingerprint()
    with KubernetesApi(lambda pod: 7) as api:
        task = Cluster(tmp_path, api, site, table, "p=1").task
        assert task.wait() == 1
    [pod] = api.pods
    error = task.log()[task.log().rindex("AirflowException") :]
    assert "1 of 1 partitions failed" in error
    assert pod.name in error
    assert "exit code is: 7" in error
    assert (table.rows(), table.fingerprint()) == (before, files)
    # It read no plan, which is no fault of the partition.
    assert [row.state for row in site.rows(table.entity("p=1"))] == [CompactionState.REFUSED]
    assert site.client.open_transactions().open == ()


def test_a_task_that_is_killed_deletes_its_drivers_pod(hive_4_site: Site, tmp_path: Path) -> None:
    site = hive_4_site
    table = due_table(site, "p=1")
    files = table.fingerprint()

    def until_deleted(pod: Pod) -> int:
        pod.deleted.wait(DRIVER_SECONDS)
        return 143

    with KubernetesApi(until_deleted) as api:
        cluster = Cluster(tmp_path, api, site, table, "p=1")
        wait_until(lambda: "Identified spark driver pod" in cluster.task.log() or not cluster.task.is_running)
        assert cluster.task.is_running, cluster.task.log()
        cluster.task.terminate()
        [pod] = api.pods
        deleted = [each.path for each in api.asked if each.method == "DELETE"]
        assert deleted == [pod.path], cluster.task.log()
        assert pod.deleted.is_set()
    assert table.fingerprint() == files
    assert site.client.open_transactions().open == ()
