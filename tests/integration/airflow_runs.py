"""An Airflow with its database, by whose command line tests run the DAGs once."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.airflow_connections import connections_to
from tests.harness.metastore_server import MetastoreServer

ROOT = Path(__file__).parents[2]
DATABASE = "demo"
"""Whose tables a compaction looks at unless told otherwise."""


@dataclass(frozen=True)
class Run:
    """What one run of the DAG came to.

    :param states: by task, how many of its instances ended in which state.
    :param output: the last of it.
    """

    exit_code: int
    state: str
    states: Mapping[str, Counter[str]]
    output: str


class Airflow:
    """An Airflow installation of its own that runs the DAGs on one metastore.

    :param home: with Airflow's database, which is made where it is not there.
    :param dags: the folder of the DAGs; the installed ones by default.
    """

    def __init__(self, home: Path, metastore: MetastoreServer, dags: Path = ROOT / "dags") -> None:
        self._home = home
        self.log = home / "last_command.log"
        self.metastore = metastore
        bin_folder = Path(sys.executable).parent
        self._airflow = str(bin_folder / "airflow")
        self._environment = {
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__HIVE_ACID__TASK_RETRIES": "0",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            **connections_to(metastore),
        }
        if not (home / "airflow.db").exists():
            self.call("db", "migrate", check=True)

    def call(
        self, *arguments: str, check: bool = False, options: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, with more options of ``[hive_acid]``; what it says can be read in :attr:`log` meanwhile."""
        self._home.mkdir(exist_ok=True)
        command = [self._airflow, *arguments]
        environment = {f"AIRFLOW__HIVE_ACID__{name.upper()}": text for name, text in (options or {}).items()}
        with self.log.open("w") as log:
            ended = subprocess.run(
                command,
                env={**self._environment, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        answer = subprocess.CompletedProcess(command, ended.returncode, self.log.read_text())
        if check:
            answer.check_returncode()
        return answer

    def run(self, **params: object) -> Run:
        """Run the compaction once, on all tables unless told otherwise."""
        return self.run_dag("acid_compaction", {"tables": [f"{DATABASE}.*"], "delta_num_threshold": 1, **params})

    def run_dag(self, dag_id: str, conf: Mapping[str, object], **options: str) -> Run:
        """Run a DAG once."""
        ended = self.call("dags", "test", dag_id, "--conf", json.dumps(conf), options=options)
        with sqlite3.connect(self._home / "airflow.db") as database:
            (run_id, state) = database.execute("SELECT run_id, state FROM dag_run ORDER BY id DESC LIMIT 1").fetchone()
            tasks = database.execute("SELECT task_id, state FROM task_instance WHERE run_id = ?", [run_id]).fetchall()
        database.close()
        states = {task: Counter(state for name, state in tasks if name == task) for task, _ in tasks}
        return Run(ended.returncode, state, states, ended.stdout[-20_000:])

    def queue(self) -> Mapping[str, str]:
        """The newest state of every table or partition in the metastore's compaction queue."""
        addresses = [MetastoreAddress(self.metastore.host, self.metastore.port)]
        with AcidMetastoreClient(addresses) as client:
            rows = sorted(client.compactions(), key=lambda row: row.id)
        return {str(row.entity): row.state.value for row in rows}
