"""The examples of docs/deploy.md for YARN, made to fit one machine."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from airflow_provider_acid.filesystem import Storages
from tests.harness.executor_faults import Fault, settings_of
from tests.harness.hdfs_server import HdfsServer
from tests.harness.java import SHORT_LIVED, find_java
from tests.harness.spark_homes import ON_HDFS, executor_python
from tests.harness.spark_sites import LOCAL_SPARK, SparkSite
from tests.harness.thrift_admin import ThriftAdmin
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.remote_tables import RemoteTable
from tests.unit.test_documented_settings import yarn_examples

ARCHIVE = "/environments/compaction.tar.gz"
"""On HDFS, by the documents."""

_LOOPBACK = "127.0.0.1"
_JVM_OPTIONS = " ".join(SHORT_LIVED)
_SMALL = {
    **{f"spark.{role}.memory": "512m" for role in ("driver", "executor", "yarn.am")},
    **{f"spark.{role}.extraJavaOptions": _JVM_OPTIONS for role in ("driver", "executor", "yarn.am")},
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": _LOOPBACK,
    "spark.executorEnv.SPARK_LOCAL_IP": _LOOPBACK,
    "spark.ui.enabled": "false",
    # By default 3 s, of which each new executor waits for several.
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
}


def yarn_site(
    yarn: YarnCluster,
    spark: Path,
    mode: str,
    faults: tuple[Fault, ...] = (),
    extra: Mapping[str, object] = MappingProxyType({}),
    **parameters: Any,
) -> SparkSite:
    """The documented example of a deploy mode.

    :param spark: its folder, which the examples do not know.
    :param extra: of the connection, in place of what the example has.
    :param parameters: of the operator, beside those of the example, or in their place; ``conf`` is beside its settings.
    """
    connection, example = yarn_examples()[mode]
    address = {"yarn_resourcemanager_webapp_address": yarn.web_address} if mode == "cluster" else {}
    of_machine = {"spark.yarn.jars": f"local:{spark}/jars/*"}
    if mode == "client":
        of_machine |= {"spark.pyspark.driver.python": str(executor_python(ON_HDFS)), "spark.driver.host": _LOOPBACK}
    given = parameters.pop("conf", {})
    conf = {**example["conf"], **of_machine, **_SMALL, **given, **(settings_of(*faults) if faults else {})}
    return SparkSite(
        {**connection, "extra": {**connection["extra"], **address, **extra}},
        {**example, "num_executors": 2, "conf": conf, **parameters},
        {
            **{name: LOCAL_SPARK.environment[name] for name in ("PYTHONPATH", "SPARK_LOCAL_IP")},
            "PATH": os.pathsep.join((str(spark / "bin"), LOCAL_SPARK.environment["PATH"])),
            "SPARK_HOME": str(spark),
            "HADOOP_CONF_DIR": str(yarn.client_configuration),
            "JAVA_HOME": str(find_java().resolve().parents[1]),
        },
    )


def upload_environment(storages: Storages, hdfs: HdfsServer, folder: Path) -> None:
    """Puts the executors' Python at :data:`ARCHIVE`, whose directory exists.

    :param folder: for the archive, while it is made.
    """
    path = folder / "environment.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(executor_python(ON_HDFS).parents[1], ".", filter=_without_ballast)
    parent, _, name = ARCHIVE.rpartition("/")
    with storages.open(f"{hdfs.uri}{parent}").create(name) as file:
        file.write(path.read_bytes())


def _without_ballast(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Each node unpacks the archive: a third of it is what only compilers and pyarrow's own tests need."""
    return None if {"include", "tests"} & set(Path(file.name).parts) else file


def name_queue(table: RemoteTable, queue: str) -> None:
    """In the table's properties, as for Hive's own jobs."""
    with ThriftAdmin(table.server.host, table.server.port) as admin:
        property = {"compactor.mapreduce.job.queuename": queue}
        admin.set_table_properties(table.table.database, table.table.name, property)
