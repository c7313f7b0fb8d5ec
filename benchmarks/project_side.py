"""This project's merge, run as its Spark application runs it: in a session of two task slots."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.acid.write_ids import TableWriteIds, compactor_list
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app.bucket_tasks import RunItem
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, PartitionState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.planning import plan_compaction
from benchmarks.acid_tables import Shape
from benchmarks.metering import Meter, this_process, tree_of
from benchmarks.spark_places import SLOTS, SparkPlace

_POLICY = CompactionPolicy(hive=HIVE_3, minor_pairs_on_hive_3=True)
_STORAGES = Storages()


def plan_for(folder: Path, shape: Shape, type: CompactionType) -> CompactionPlan:
    """The plan of a compaction, with its staging directory, as the operator makes them on Hive 3.

    :param folder: of the table, whose write ids are 1 to ``shape.write_ids``.
    """
    storage = _STORAGES.open(str(folder))
    known = compactor_list(TableWriteIds("d.t", shape.write_ids))
    partition = PartitionState(
        entity=Entity("d", "t"),
        location=str(folder),
        directory=acid_directory(storage.list(), known, None),
        write_ids=known,
        columns=shape.kind.columns,
        bucketed=False,
        table_parameters=shape.properties,
    )
    token = new_token()
    plan = plan_compaction(partition, AttemptNames(token, staging_name(token), 0), type, "benchmark", _POLICY)
    open_staging(storage, plan)
    return plan


class ProjectSide:
    """Compacts in one Spark session.

    :param place: where that session's tasks run.
    :param jvm: the driver's process id.
    :param run_folder: where tasks report how far they are.
    :param start_seconds: what starting the session took.
    """

    name = "project"

    def __init__(
        self, spark: SparkSession, place: SparkPlace, jvm: int, run_folder: Path, start_seconds: float
    ) -> None:
        self._spark = spark
        self._run_folder = run_folder
        self._processes = lambda: [*this_process(), *tree_of(jvm)(), *place.processes()]
        self.start_seconds = start_seconds

    def meter(self) -> Meter:
        """Of the session's processes and this one, which is the driver."""
        return Meter(self._processes)

    def compact(self, folder: Path, shape: Shape, type: CompactionType, meter: Meter) -> Path:
        """Merge and verify; the directory of the result, which stays where it was staged."""
        plan = plan_for(folder, shape, type)
        run = self._run_folder / uuid.uuid4().hex
        run.mkdir()
        with meter.running():
            result = run_plan(self._spark, plan, RunItem(_STORAGES, str(run), 0, SLOTS))
        if result.error is not None:
            raise RuntimeError(result.error)
        (output,) = plan.outputs
        return folder / plan.staged(output.kind)


@contextmanager
def project_side(run_folder: Path, place: SparkPlace) -> Iterator[ProjectSide]:
    """A Spark session, ended with the block, its JVM with it."""
    environment = dict(os.environ)
    os.environ.update(place.environment)
    before = {child.pid for child in psutil.Process().children()}
    start = time.perf_counter()
    own = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.scheduler.mode": "FAIR"}
    settings = {**place.settings, **own}
    conf = SparkConf().setMaster(place.master).setAppName("benchmark").setAll(list(settings.items()))
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    try:
        seconds = time.perf_counter() - start
        spark.sparkContext.setLogLevel("ERROR")
        (jvm,) = {child.pid for child in psutil.Process().children()} - before
        if place.package is not None:
            spark.sparkContext.addPyFile(str(place.package))
        yield ProjectSide(spark, place, jvm, run_folder, seconds)
    finally:
        spark.stop()
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            # The JVM ends with its input.
            gateway.proc.communicate()
            SparkContext._gateway = SparkContext._jvm = None
        os.environ.clear()
        os.environ.update(environment)
