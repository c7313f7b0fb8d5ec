"""Airflow as the demonstration runs it: an own home, SQLite, no examples, connections from the environment."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart.work_folder import REPOSITORY

DAG_ID = "acid_compaction"
STOP_SECONDS = 10

_FOREIGN_SETTINGS = ("AIRFLOW", "SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "HIVE_", "PYTHONPATH")
"""Beginnings of environment variables that would lead the demonstration to somebody's real installation."""

_SPARK_DEFAULTS = """\
spark.ui.enabled false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
"""
_UI_COMPONENTS = (
    ("api-server",),
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("triggerer", "--skip-serve-logs"),
)
"""What ``airflow standalone`` starts, but without its log servers: those listen on all of the machine's addresses."""


def prepare_environment(
    folder: Path, server: MetastoreServer, programs: Path = Path(sys.executable).parent
) -> dict[str, str]:
    """The environment of every Airflow process; its settings are written below ``folder``.

    :param programs: the folder of Airflow's commands, of ``spark-submit`` and Python.
    """
    home, spark = folder / "airflow", folder / "spark"
    home.mkdir()
    spark.mkdir()
    (spark / "spark-defaults.conf").write_text(_SPARK_DEFAULTS)
    own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_SETTINGS)}
    metastore = {"conn_type": "hive_acid", "host": server.host, "port": server.port}
    return {
        **own,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home),
        "HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"file:{folder / 'health'}",
        "AIRFLOW__HIVE_ACID__TASK_RETRIES": "0",  # a demonstration tells of the first failure at once
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_HIVE_ACID_DEFAULT": json.dumps(metastore),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PYSPARK_PYTHON": str(programs / "python"),
        "SPARK_CONF_DIR": str(spark),
        "SPARK_LOCAL_DIRS": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def migrate_database(environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Begins to make Airflow's database; needs no metastore."""
    return _start(["airflow", "db", "migrate"], environment, log)


def start_dag_test(
    environment: Mapping[str, str], log: Path, conf: Mapping[str, object], dag_id: str = DAG_ID
) -> subprocess.Popen[bytes]:
    """Begins ``airflow dags test``."""
    return _start(["airflow", "dags", "test", dag_id, "-c", json.dumps(conf)], environment, log)


def ui_environment(environment: Mapping[str, str], port: int) -> dict[str, str]:
    """The environment of an Airflow whose UI answers on a port of this machine alone, without a password."""
    return {
        **environment,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}/",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }


@dataclass(frozen=True)
class Component:
    """One of the processes that make an Airflow.

    :param name: what follows ``airflow`` on its command line.
    :param log: what it writes.
    """

    name: str
    log: Path
    process: subprocess.Popen[bytes]


def start_ui(environment: Mapping[str, str], logs: Path) -> Iterator[Component]:
    """Starts the components of an Airflow with a UI, one after the other."""
    for command in _UI_COMPONENTS:
        log = logs / f"airflow-{command[0]}.log"
        yield Component(command[0], log, _start(["airflow", *command], environment, log))


def free_port(preferred: int = 8080) -> int:
    """The preferred port where nobody has it, else any other."""
    for port in (preferred, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def end(*processes: subprocess.Popen[bytes]) -> None:
    """Ends processes with all they started, also where they themselves have ended already."""
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        _signal_group(process, signal.SIGTERM)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(deadline - time.monotonic(), 0))
    for process in processes:
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, how)


def _start(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """In a group of its own, so that exactly what was started here can be ended."""
    program = shutil.which(command[0], path=environment["PATH"])
    assert program, f"{command[0]} is not in {environment['PATH']}"
    with log.open("ab") as output:
        return subprocess.Popen(
            [program, *command[1:]],
            cwd=log.parent,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
