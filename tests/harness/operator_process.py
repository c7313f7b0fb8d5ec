"""The compaction operator in a process of its own, as an Airflow worker runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import psutil

from tests.harness.airflow_connections import connections_to
from tests.harness.compaction_chain import wait_until
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_sites import LOCAL_SPARK, SparkSite

ROOT = Path(__file__).parents[2]
_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.harness.operator_process import main
main(sys.argv[1])
"""
"""Not by PYTHONPATH, which spark-submit would hand on."""

START_SECONDS = 300
IDLE_TIMEOUT_SECONDS = 60
"""So long that the application ends because it is done, not since its operator is silent: who removes the run directory
depends on that, the next run or the application (``tests/integration/test_spark_job.py``)."""


class TaskProcess:
    """One try of a compaction task with a real ``spark-submit``.

    :param folder: for Airflow's home and the log.
    :param run_id: of the DAG's run; tries of one task share it.
    :param spark: where the application runs, with all parameters of the operator but the partitions.
    :param storage: the connection's storage options.
    """

    def __init__(
        self,
        server: MetastoreServer,
        partitions: Sequence[Mapping[str, object]],
        folder: Path,
        run_id: str,
        spark: SparkSite,
        storage: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / f"operator.{len(list(folder.glob('operator.*')))}.log"
        argument = json.dumps({"partitions": partitions, "run_id": run_id, "parameters": dict(spark.parameters)})
        environment = {
            **os.environ,
            **connections_to(server, storage=storage),
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark.connection),
            **spark.environment,
        }
        with self._log.open("wb") as log:
            self._process = psutil.Popen(
                [sys.executable, "-c", _PROGRAM, argument],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def application(self) -> list[psutil.Process]:
        """The application's processes that this machine's ``spark-submit`` started, itself included.

        On a machine alone: the JVM, the Python driver, and the executor's Python workers.
        """
        return list(self._process.children(recursive=True))

    def kill(self) -> None:
        """Kills the operator alone."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        """Asks it to end, as Airflow does with a task that is killed, and waits until it has."""
        self._process.terminate()
        self._process.wait(timeout=START_SECONDS)

    def wait(self) -> int:
        """Waits for the end; the exit code."""
        return int(self._process.wait(timeout=START_SECONDS))

    def log(self) -> str:
        """What it printed, the Spark application's output too."""
        return self._log.read_text(errors="replace")


class OperatorProcess(TaskProcess):
    """One on this machine alone, whose run directory is a local one.

    :param runs: an existing folder for the run directory; tries and runs of one table share it.
    """

    def __init__(
        self, server: MetastoreServer, partitions: Sequence[Mapping[str, object]], folder: Path, runs: Path, run_id: str
    ) -> None:
        self.runs = runs
        parameters = {
            **LOCAL_SPARK.parameters,
            "run_directory": f"file:{self.runs}",
            "max_active_partitions": 1,
            "idle_timeout_seconds": IDLE_TIMEOUT_SECONDS,
        }
        super().__init__(server, partitions, folder, run_id, replace(LOCAL_SPARK, parameters=parameters))

    def wait_for(self, name: str) -> None:
        """Waits until a file of this name appears in the run directory."""

        def is_there() -> bool:
            assert self._process.poll() is None, self.log()
            return any(self.runs.rglob(name))

        wait_until(is_there, START_SECONDS)

    def python_workers(self) -> list[psutil.Process]:
        """The processes in which the executor runs Python."""
        return [process for process in self.application() if _runs(process, "pyspark.daemon")]


def main(argument: str) -> None:
    """Run the operator; SIGTERM calls its ``on_kill``, as Airflow's task runner does."""
    from airflow_provider_acid.operators.compaction import AcidCompactionOperator

    wanted = json.loads(argument)
    task: Any = SimpleNamespace(dag_id="dag", run_id=wanted["run_id"], task_id="compact", map_index=0)
    operator = AcidCompactionOperator(task_id="compact", partitions=wanted["partitions"], **wanted["parameters"])
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    print(json.dumps(operator.execute({"ti": task})))


def _runs(process: psutil.Process, word: str) -> bool:
    try:
        return word in process.cmdline()
    except psutil.Error:
        # It has ended meanwhile, and nobody has waited for it yet.
        return False
