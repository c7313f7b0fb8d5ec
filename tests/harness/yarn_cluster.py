"""A real YARN beside an HDFS, a ResourceManager and two NodeManagers, started and stopped from Python."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from tests.harness.hdfs_server import HADOOP_VERSION, HOST, HdfsServer, write_settings
from tests.harness.jars import JarList, distribution
from tests.harness.java import SHORT_LIVED, find_java
from tests.harness.ports import free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

START_SECONDS = 90
NODES = ("node-0", "node-1")
NODE_MEBIBYTES = 4096
QUEUES = ("default", "compaction")

_SERVER = "org.apache.hadoop.yarn.server"
_MANAGER = "resource-manager"
_JVM_OPTIONS = (
    *("-Xmx256m", *SHORT_LIVED, "-Djava.net.preferIPv4Stack=true"),
    # Guice makes classes at run time; without these the servers end while starting.
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
)
_IN_CONTAINER = ("JAVA_HOME", "PATH", "LANG")
"""What containers take from the environment of their NodeManager."""

ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})


@dataclass(frozen=True)
class Application:
    """What the ResourceManager says of an application.

    :param state: see :data:`ENDED`.
    :param started: seconds since the epoch.
    :param finished: likewise; 0 where it has not ended.
    """

    id: str
    name: str
    queue: str
    state: str
    started: float
    finished: float

    @property
    def has_ended(self) -> bool:
        """Whether it has, in one way or the other."""
        return self.state in ENDED


class YarnCluster(Startable):
    """One ResourceManager and two NodeManagers on loopback, with settings, logs and containers below ``folder``.

    As a context manager it is started on entry and stopped on exit, and it never outlives this Python process.
    Containers, which have process groups of their own, are killed on exit; where this process is killed, they end when
    they find neither YARN nor HDFS.

    :param folder: of everything that belongs to this cluster; made where it is missing.
    :param hdfs: runs; where applications and their files are handed over.
    :param security: settings of servers and clients, where the HDFS has Kerberos.
    """

    def __init__(self, folder: Path, hdfs: HdfsServer, security: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder = folder.resolve()
        self.hdfs = hdfs
        self._security = security
        services = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
        self._addresses = {f"yarn.resourcemanager.{name}": f"{HOST}:{free_port()}" for name in services}
        self._groups: dict[str, ProcessGroup] = {}

    @property
    def web_address(self) -> str:
        """``http://host:port`` of the ResourceManager."""
        return f"http://{self._addresses['yarn.resourcemanager.webapp.address']}"

    @property
    def client_configuration(self) -> Path:
        """What ``HADOOP_CONF_DIR`` names."""
        return self.folder / "client"

    def start(self) -> None:
        """Starts all three and waits until both nodes are there.

        :raises RuntimeError: one of them ended, or ``START_SECONDS`` were not enough; nothing is left running.
        """
        self._write_settings(self.client_configuration, {}, "ERROR")
        manager = self._write_settings(self.folder / _MANAGER, _manager_settings(), "INFO")
        write_settings(manager, {"capacity-scheduler": _queue_settings()}, "INFO")
        try:
            self._start(_MANAGER, f"{_SERVER}.resourcemanager.ResourceManager")
            for node in NODES:
                self._write_settings(self.folder / node, _node_settings(self.folder / node), "INFO")
                self._start_node(node)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all three and every container; nothing happens where none runs."""
        for name in reversed(list(self._groups)):
            self._groups.pop(name).end(signal.SIGKILL)
        for process in self._processes(""):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def node_of(self, process: psutil.Process) -> str:
        """The one of :data:`NODES` that a container's process is on."""
        return Path(process.cwd()).relative_to(self.folder).parts[0]

    @contextmanager
    def without(self, node: str) -> Iterator[None]:
        """Kills a NodeManager and then its containers, which nobody is told, and starts it again after the block.

        It knows nothing of its containers then, and YARN hears that they are lost.
        """
        self._groups.pop(node).end(signal.SIGKILL)
        for process in self._processes("", node):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        try:
            yield
        finally:
            self._start_node(node)

    def applications(self) -> list[Application]:
        """All that were ever submitted, the oldest first."""
        found = (self._ask("apps")["apps"] or {}).get("app", [])
        applications = [
            Application(
                each["id"],
                each["name"],
                each["queue"],
                each["state"],
                each["startedTime"] / 1000,
                each["finishedTime"] / 1000,
            )
            for each in found
        ]
        return sorted(applications, key=lambda each: each.id)

    def attempts(self, application: str) -> int:
        """How often YARN has started an application."""
        return len(self._ask(f"apps/{application}/appattempts")["appAttempts"]["appAttempt"])

    def containers(self) -> int:
        """How many the ResourceManager holds to be on its nodes, of all applications."""
        return sum(int(node["numContainers"]) for node in self._ask("nodes")["nodes"]["node"])

    def processes(self, application: str) -> list[psutil.Process]:
        """Those of an application's containers; of all where it is empty."""
        return list(self._processes(application))

    def master(self, application: str) -> psutil.Process:
        """The Java process that holds an application together, and in cluster mode its driver."""
        (found,) = [
            process
            for process in self._processes(application)
            if process.name() == "java" and "_000001" in Path(process.cwd()).name
        ]
        return found

    def log(self, application: str) -> str:
        """What an application's containers wrote."""
        files = sorted(self.folder.glob(f"node-*/logs/{application}/*/std*"))
        return "\n".join(f"{file.parent.name} {file.name}:\n{file.read_text(errors='replace')}" for file in files)

    def _processes(self, application: str, *nodes: str) -> Iterator[psutil.Process]:
        """Their working directories are their containers'."""
        folders = tuple(f"{self.folder / node / 'local'}/" for node in nodes or NODES)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                cwd = process.cwd()
                if cwd.startswith(folders) and f"/appcache/{application}" in cwd:
                    yield process

    def _ask(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.web_address}/ws/v1/cluster/{path}", timeout=START_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _write_settings(self, folder: Path, settings: dict[str, str], log_level: str) -> Path:
        yarn = {"yarn.resourcemanager.hostname": HOST, **self._addresses, **self._security, **settings}
        write_settings(folder, {**self.hdfs.client_settings, "yarn-site": yarn}, log_level)
        return folder

    def _start_node(self, node: str) -> None:
        self._start(node, f"{_SERVER}.nodemanager.NodeManager")

    def _start(self, name: str, main_class: str) -> None:
        java = find_java().resolve()
        own = sorted((distribution(_jar_list()) / "jars").glob("*.jar"))
        class_path = os.pathsep.join(map(str, (self.folder / name, *self.hdfs.jars, *own)))
        # Nothing of this process's own path may help a container.
        environment = {"JAVA_HOME": str(java.parent.parent), "PYTHONPATH": ""}
        with self._log_file(name).open("ab") as log:
            command = [str(java), *_JVM_OPTIONS, *self.hdfs.java_options, "-cp", class_path, main_class]
            self._groups[name] = start_group(command, self.folder, stdout=log, environment=environment)

    def _log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            ended = [name for name, group in self._groups.items() if group.leader.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = (self._log_file(name).read_text(errors="replace") for name in ended or self._groups)
                words = " | ".join(line for log in logs for line in log.splitlines()[-5:])
                raise RuntimeError(f"YARN at {self.web_address} is not ready: {words}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        with suppress(OSError, ValueError):
            return bool(self._ask("metrics")["clusterMetrics"]["activeNodes"] == len(NODES))
        return False


def _jar_list() -> JarList:
    """What YARN's servers need beside HDFS's jars."""
    return JarList(f"yarn-{HADOOP_VERSION}", Path(__file__).with_name("yarn-cluster") / "jars.sha256")


def _manager_settings() -> dict[str, str]:
    return {
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": str(NODE_MEBIBYTES),
        # Default 1 s, of which each container waits for several.
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
    }


def _queue_settings() -> dict[str, str]:
    prefix = "yarn.scheduler.capacity"
    settings = {f"{prefix}.root.queues": ",".join(QUEUES), f"{prefix}.maximum-am-resource-percent": "1.0"}
    for queue in QUEUES:
        settings[f"{prefix}.root.{queue}.capacity"] = str(100 / len(QUEUES))
        settings[f"{prefix}.root.{queue}.maximum-capacity"] = "100"
        settings[f"{prefix}.root.{queue}.user-limit-factor"] = str(len(QUEUES))
    return settings


def _node_settings(folder: Path) -> dict[str, str]:
    services = ("address", "localizer.address", "webapp.address", "collector-service.address")
    return {
        **{f"yarn.nodemanager.{name}": f"{HOST}:{free_port()}" for name in services},
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.resource.memory-mb": str(NODE_MEBIBYTES),
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.vmem-check-enabled": "false",
        # Full disks of the machine are no part of any test.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.nodemanager.env-whitelist": ",".join(_IN_CONTAINER),
    }
