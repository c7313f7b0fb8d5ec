"""Parse DAG files as Airflow does, where any touch of network or database is an error; print what is in them.

A program of its own, because importing Airflow fixes its configuration: ``python parse_dag_files.py FILE…``, with
``AIRFLOW_HOME`` set to an empty folder. Its last line is JSON: for each file its DAGs with their tasks, and the error.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn


def refuse_network(*_: object) -> NoReturn:
    raise AssertionError("a DAG file must not touch the network")


def main(dag_files: list[str]) -> None:
    home = Path(os.environ["AIRFLOW_HOME"])
    # No such folder: whoever opens the database fails.
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{home}/no/such/folder/airflow.db"
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    airflow_2 = find_spec("airflow.sdk") is None
    dagbag: Any = import_module("airflow.models.dagbag" if airflow_2 else "airflow.dag_processing.dagbag")

    for owner, call in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        setattr(owner, call, refuse_network)
    found = {}
    for dag_file in dag_files:
        bag = dagbag.DagBag(dag_file, safe_mode=False)
        dags = {dag_id: sorted(dag.task_ids) for dag_id, dag in bag.dags.items()}
        found[dag_file] = {"dags": dags, "error": "\n".join(bag.import_errors.values())}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
