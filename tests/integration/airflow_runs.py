"""An Airflow with its database, by whose command line tests run the DAGs once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.airflow_commands import AirflowCommands
from tests.harness.airflow_connections import connections_to
from tests.harness.metastore_server import MetastoreServer

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
    """An Airflow installation that runs the DAGs on one metastore."""

    def __init__(self, commands: AirflowCommands, metastore: MetastoreServer) -> None:
        self.commands = commands
        self.log = commands.home / "last_command.log"
        self.metastore = metastore
        self._environment = {
            "AIRFLOW__HIVE_ACID__TASK_RETRIES": "0",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            **connections_to(metastore),
        }

    def call(self, *arguments: str, options: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a command, with more options of ``[hive_acid]``; its exit code, and what it said.

        That can be read in :attr:`log` meanwhile.
        """
        environment = {f"AIRFLOW__HIVE_ACID__{name.upper()}": text for name, text in (options or {}).items()}
        exit_code = self.commands.run(arguments, {**self._environment, **environment}, self.log)
        return exit_code, self.log.read_text()

    def run(self, **params: object) -> Run:
        """Run the compaction once, on all tables unless told otherwise."""
        return self.run_dag("acid_compaction", {"tables": [f"{DATABASE}.*"], "delta_num_threshold": 1, **params})

    def run_dag(self, dag_id: str, conf: Mapping[str, object], **options: str) -> Run:
        """Run a DAG once."""
        exit_code, output = self.call("dags", "test", dag_id, "--conf", json.dumps(conf), options=options)
        with sqlite3.connect(self.commands.home / "airflow.db") as database:
            (run_id, state) = database.execute("SELECT run_id, state FROM dag_run ORDER BY id DESC LIMIT 1").fetchone()
            tasks = database.execute("SELECT task_id, state FROM task_instance WHERE run_id = ?", [run_id]).fetchall()
        database.close()
        states = {task: Counter(state for name, state in tasks if name == task) for task, _ in tasks}
        return Run(exit_code, state, states, output[-20_000:])

    def queue(self) -> Mapping[str, str]:
        """The newest state of every table or partition in the metastore's compaction queue."""
        addresses = [MetastoreAddress(self.metastore.host, self.metastore.port)]
        with AcidMetastoreClient(addresses) as client:
            rows = sorted(client.compactions(), key=lambda row: row.id)
        return {str(row.entity): row.state.value for row in rows}
