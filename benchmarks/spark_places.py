"""Where this project's tasks run: on two local task slots, or on a standalone cluster of two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from airflow_provider_acid.compaction.run.application import (
    application_arguments,
    write_key_file,
    write_package_archive,
)
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.shipped_files import shipped_file
from benchmarks.metering import tree_of
from tests.harness.spark_cluster import SparkCluster
from tests.harness.spark_homes import spark_home

SLOTS = 2
"""Tasks at the same time, wherever they run."""


@dataclass(frozen=True)
class SparkPlace:
    """A master, and what its applications are started with.

    :param python: of the tasks.
    :param settings: Spark's, for every application.
    :param package: what is sent to tasks that do not find this project by themselves.
    :param roots: process ids of master and workers, whose children the executors are.
    """

    master: str = f"local[{SLOTS}]"
    python: Path = Path(sys.executable)
    settings: Mapping[str, str] = field(default_factory=dict)
    package: Path | None = None
    roots: Sequence[int] = ()

    @property
    def options(self) -> list[str]:
        """Of ``spark-submit``."""
        settings = {**self.settings, "spark.ui.enabled": "false"}
        package = ["--py-files", str(self.package)] if self.package is not None else []
        return ["--master", self.master, *package, *_as_options(settings)]

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables by which Spark finds the Pythons and their packages, and talks to nobody else."""
        return {
            "PYTHONPATH": os.pathsep.join(place for place in sys.path if place),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def submit(self, run: RunDirectory, folder: Path) -> None:
        """Carry out a run by this project's application, from its start to its end.

        :param folder: for the file with the run's key.
        :raises RuntimeError: it failed.
        """
        key_file = write_key_file(folder, run.key)
        submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
        application = (str(shipped_file("spark_jobs/compact.py")), *application_arguments(run, key_file))
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            [submit, *self.options, *application], env=environment, capture_output=True, text=True, check=False
        )
        key_file.unlink()
        if done.returncode:
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])

    def processes(self) -> Sequence[psutil.Process]:
        """Those of master, workers and executors, as of now."""
        return [process for root in self.roots for process in tree_of(root)()]


@contextmanager
def cluster_place(folder: Path) -> Iterator[SparkPlace]:
    """A standalone cluster on loopback, whose executors get this package from the application alone."""
    with SparkCluster(folder, spark_home()) as cluster:
        yield SparkPlace(
            f"{cluster.connection['host']}:{cluster.port}",
            cluster.home.python,
            # One executor with one task slot on each worker.
            {**cluster.settings, "spark.pyspark.driver.python": sys.executable, "spark.cores.max": str(SLOTS)},
            write_package_archive(folder),
            cluster.process_ids,
        )


def _as_options(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
