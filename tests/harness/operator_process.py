"""The compaction operator in a process of its own, as an Airflow worker runs it: ``python -m`` with a JSON argument."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from tests.harness.airflow_connections import connections_to
from tests.harness.compaction_chain import wait_until
from tests.harness.metastore_server import MetastoreServer

ROOT = Path(__file__).parents[2]
START_SECONDS = 300
IDLE_TIMEOUT_SECONDS = 60
"""So long that the application ends because it is done, not since its operator is silent: who removes the run directory
depends on that, the next run or the application (``tests/integration/test_spark_job.py``)."""


class OperatorProcess:
    """One try of a compaction task with a real ``spark-submit``.

    :param folder: for Airflow's home and the log.
    :param runs: an existing folder for the run directory; tries and runs of one table share it.
    :param run_id: of the DAG's run; tries of one task share it.
    """

    def __init__(
        self, server: MetastoreServer, partitions: Sequence[Mapping[str, object]], folder: Path, runs: Path, run_id: str
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.runs = runs
        self._log = folder / f"operator.{len(list(folder.glob('operator.*')))}.log"
        argument = json.dumps({"partitions": partitions, "run_directory": f"file:{self.runs}", "run_id": run_id})
        environment = {
            **os.environ,
            **connections_to(server),
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._log.open("wb") as log:
            self._process = psutil.Popen(
                [sys.executable, "-m", __name__, argument],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, name: str) -> None:
        """Waits until a file of this name appears in the run directory."""

        def is_there() -> bool:
            assert self._process.poll() is None, self.log()
            return any(self.runs.rglob(name))

        wait_until(is_there, START_SECONDS)

    def application(self) -> list[psutil.Process]:
        """The processes of the Spark application: the JVM, the Python driver, and the executor's Python workers."""
        return list(self._process.children(recursive=True))

    def python_workers(self) -> list[psutil.Process]:
        """The processes in which the executor runs Python."""
        return [process for process in self.application() if _runs(process, "pyspark.daemon")]

    def kill(self) -> None:
        """Kills the operator alone."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        """Waits for the end; the exit code."""
        return int(self._process.wait(timeout=START_SECONDS))

    def log(self) -> str:
        """What it printed, the Spark application's output too."""
        return self._log.read_text(errors="replace")


def main(argument: str) -> None:
    """Run the operator."""
    from airflow_provider_acid.operators.compaction import AcidCompactionOperator

    wanted = json.loads(argument)
    task: Any = SimpleNamespace(dag_id="dag", run_id=wanted["run_id"], task_id="compact", map_index=0)
    operator = AcidCompactionOperator(
        task_id="compact",
        partitions=wanted["partitions"],
        run_directory=wanted["run_directory"],
        max_active_partitions=1,
        idle_timeout_seconds=IDLE_TIMEOUT_SECONDS,
        conf={"spark.ui.enabled": "false"},
    )
    print(json.dumps(operator.execute({"ti": task})))


if __name__ == "__main__":
    main(sys.argv[1])


def _runs(process: psutil.Process, word: str) -> bool:
    try:
        return word in process.cmdline()
    except psutil.Error:
        # It has ended meanwhile, and nobody has waited for it yet.
        return False
