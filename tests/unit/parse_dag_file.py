"""Run a DAG file as Airflow's parser does, where any touch of network or database is an error; print its DAGs.

A program of its own, because importing Airflow fixes its configuration: ``python parse_dag_file.py FILE``, with
``AIRFLOW_HOME`` set to an empty folder. Prints ``{"dag_id": ["task_id", …], …}`` as JSON in the last line.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import NoReturn


def refuse_network(*_: object) -> NoReturn:
    raise AssertionError("a DAG file must not touch the network")


def main(dag_file: str) -> None:
    home = Path(os.environ["AIRFLOW_HOME"])
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    # No such folder: whoever opens the database fails.
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{home}/no/such/folder/airflow.db"
    import airflow.sdk

    socket.socket.connect = refuse_network  # type: ignore[assignment, method-assign]
    socket.socket.connect_ex = refuse_network  # type: ignore[assignment, method-assign]
    socket.getaddrinfo = refuse_network
    names = runpy.run_path(dag_file, run_name="dag_file")
    dags = {value.dag_id: value for value in names.values() if isinstance(value, airflow.sdk.DAG)}
    for dag in dags.values():
        dag.validate()
    print(json.dumps({dag_id: sorted(dag.task_ids) for dag_id, dag in dags.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
