"""A Spark standalone cluster, a master with two workers, started and stopped from Python."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.harness.java import find_java, spark_options
from tests.harness.ports import free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.spark_homes import SparkHome
from tests.harness.startable import Startable

START_SECONDS = 90
MASTER_HOST = "127.0.0.1"
WORKER_HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two, for Spark starts no speculative copy of a task on the host that the first runs on."""

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_JVM_OPTIONS = " ".join(spark_options())


class SparkCluster(Startable):
    """One master and two workers with two task slots each, on loopback, with their logs below ``folder``.

    As a context manager it is started on entry and stopped on exit, and it never outlives this Python process.

    :param folder: of everything that belongs to this cluster; made where it is missing.
    :param home: Spark itself.
    """

    def __init__(self, folder: Path, home: SparkHome) -> None:
        self.folder = folder.resolve()
        self.home = home
        self.port = free_port()
        self.web_port = free_port()
        self._groups: dict[str, ProcessGroup] = {}

    @property
    def connection(self) -> dict[str, object]:
        """The Airflow connection to it."""
        return {"conn_type": "spark", "host": f"spark://{MASTER_HOST}", "port": self.port}

    @property
    def environment(self) -> dict[str, str]:
        """For whoever runs ``spark-submit``."""
        return {
            **self._environment(MASTER_HOST),
            "PATH": os.pathsep.join((str(self.home.folder / "bin"), os.environ["PATH"])),
        }

    @property
    def settings(self) -> dict[str, str]:
        """For every application: small executors with a Python that lacks this package."""
        return {
            "spark.pyspark.python": str(self.home.python),
            "spark.driver.host": MASTER_HOST,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": _JVM_OPTIONS,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": _JVM_OPTIONS,
            "spark.ui.enabled": "false",
            # No task is begun before both executors are there, so that each gets some.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        }

    def start(self) -> None:
        """Starts all three and waits until both workers are registered.

        :raises RuntimeError: one of them ended, or ``START_SECONDS`` were not enough; nothing is left running.
        """
        # Without the folder of settings: an archive of classes fits where the class path begins with Spark's jars.
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            ports = ["--port", str(self.port), "--webui-port", str(self.web_port)]
            self._start("master", MASTER_HOST, _MASTER, *ports)
            for number, host in enumerate(WORKER_HOSTS):
                size = ["--cores", "2", "--memory", "1g", "--webui-port", str(free_port())]
                place = ["--work-dir", str(self.folder / f"worker-{number}")]
                master = f"spark://{MASTER_HOST}:{self.port}"
                self._start(f"worker-{number}", host, _WORKER, *size, *place, master)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all three, and the executors; nothing happens where none runs."""
        for name in reversed(list(self._groups)):
            self._groups.pop(name).end(signal.SIGTERM)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Those of master and workers, whose children the executors are."""
        return tuple(group.leader.pid for group in self._groups.values())

    def executor_folders(self, file: str) -> list[Path]:
        """The working folders of all executors that were given a file of this name, by worker."""
        return sorted(found.parent for found in self.folder.glob(f"worker-*/*/*/{file}"))

    @property
    def version(self) -> str:
        """Spark's, by the master's own word."""
        log = self._log_file("master").read_text()
        [version] = {found[1] for found in re.finditer(r"Running Spark version (\S+)", log)}
        return version

    def state(self) -> dict[str, Any]:
        """What the master's web server says."""
        with urllib.request.urlopen(f"http://{MASTER_HOST}:{self.web_port}/json/", timeout=START_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _environment(self, host: str) -> dict[str, str]:
        return {
            "SPARK_HOME": str(self.home.folder),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _JVM_OPTIONS,
            "JAVA_HOME": os.environ.get("JAVA_HOME") or str(find_java().resolve().parent.parent),
            # Nothing of this process's own path may help an executor.
            "PYTHONPATH": "",
        }

    def _start(self, name: str, host: str, main_class: str, *arguments: str) -> None:
        command = [str(self.home.folder / "bin" / "spark-class"), main_class, "--host", host, *arguments]
        environment: Mapping[str, str] = self._environment(host)
        with self._log_file(name).open("ab") as log:
            self._groups[name] = start_group(command, self.folder, stdout=log, environment=environment)

    def _log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            ended = [name for name, group in self._groups.items() if group.leader.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"Spark at port {self.port} is not ready: {self._last_words()}")
            time.sleep(0.1)

    def _last_words(self) -> str:
        logs = (self._log_file(name).read_text(errors="replace") for name in self._groups)
        return " | ".join(line for log in logs for line in log.splitlines()[-5:])

    def _is_ready(self) -> bool:
        try:
            return bool(self.state()["aliveworkers"] == len(WORKER_HOSTS))
        except (OSError, ValueError):
            return False
