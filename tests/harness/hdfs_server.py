"""A real HDFS, a NameNode and a DataNode of Hadoop 3.4.3, started and stopped from Python."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.harness.jars import JarList, distribution
from tests.harness.java import SHORT_LIVED, find_java
from tests.harness.ports import free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

HADOOP_VERSION = "3.4.3"
START_SECONDS = 90
HOST = "localhost"
"""As the servers name themselves: WebHDFS sends its clients on to this name."""

NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_JVM_OPTIONS = (
    *("-Xmx256m", *SHORT_LIVED, "-Djava.net.preferIPv4Stack=true"),
    # Without it WebHDFS answers 500.
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
)
# Default 400 ms: what the writer of a small file waits before it asks again whether the DataNode has the block.
_QUICK_CLOSE = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    # Each wait is twice the last, and a busy machine's DataNode may take a second: 5 + 10 + … + 2560 ms.
    "dfs.client.block.write.locateFollowingBlock.retries": "10",
}
_LOGGING = """\
log4j.rootLogger={level}, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{{ISO8601}} %p %c{{2}}: %m%n
"""


class HdfsServer(Startable):
    """One NameNode and one DataNode with their data, settings and logs below ``folder``.

    As a context manager it is started on entry and stopped on exit, and it never outlives this Python process.
    Permissions are checked; the user of this process is the superuser, and may act for any other (``doas``).
    Without Kerberos a client is who it says it is.

    :param folder: of everything that belongs to this server; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.superuser = pwd.getpwuid(os.geteuid()).pw_name
        self.port = free_port()
        self.web_port = free_port()
        self._data_ports = {name: free_port() for name in ("address", "http.address", "ipc.address")}
        self._groups: dict[str, ProcessGroup] = {}

    @property
    def uri(self) -> str:
        """``hdfs://host:port``, the default file system of its clients."""
        return f"hdfs://{HOST}:{self.port}"

    @property
    def web_address(self) -> str:
        """``http://host:port`` of the NameNode, for WebHDFS and ``/jmx``."""
        return f"http://{HOST}:{self.web_port}"

    @property
    def data_port(self) -> int:
        """Where the DataNode hands blocks to clients in Java."""
        return self._data_ports["address"]

    @property
    def datanode_web_address(self) -> str:
        """``http://host:port`` that WebHDFS sends readers and writers to."""
        return f"http://{HOST}:{self._data_ports['http.address']}"

    @property
    def client_settings(self) -> dict[str, dict[str, str]]:
        """Of clients in Java, by the name of their file."""
        return {"core-site": {"fs.defaultFS": self.uri}, "hdfs-site": {"dfs.replication": "1", **_QUICK_CLOSE}}

    @property
    def client_configuration(self) -> Path:
        """A folder with the settings of JVM clients, libhdfs and Hive: what ``HADOOP_CONF_DIR`` names."""
        return self.folder / "client"

    @property
    def metastore_settings(self) -> dict[str, str]:
        """The same settings for a metastore, which has one file for them."""
        return {name: value for file in self.client_settings.values() for name, value in file.items()}

    @property
    def jars(self) -> list[Path]:
        """What clients in Java need, downloaded where it is not cached."""
        return sorted((distribution(_jar_list()) / "jars").glob("*.jar"))

    @property
    def class_path(self) -> str:
        """Of clients in Java: their settings and each jar by its name."""
        return os.pathsep.join(map(str, (self.client_configuration, *self.jars)))

    def start(self) -> None:
        """Formats a new file system where there is none, and starts both servers.

        :raises RuntimeError: one of them ended, or not ready within ``START_SECONDS``; nothing is left running.
        """
        self._write_settings()
        if not self._name_folder.exists():
            self._run(NAMENODE, "-format", "-nonInteractive", "-force")
        try:
            self._start(NAMENODE)
            self._start(DATANODE)
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all servers, also suspended ones; nothing happens where none runs."""
        for name in list(self._groups):
            self._groups.pop(name).end(signal.SIGKILL)

    def stop_namenode(self) -> None:
        """Ends the NameNode: connections to it are refused from now on."""
        self._groups.pop(_name(NAMENODE)).end(signal.SIGTERM)

    def start_namenode(self) -> None:
        """Starts it again with what it knew, and waits until the DataNode has found it."""
        self._start(NAMENODE)
        self.wait_until_ready()

    def restart_namenode(self) -> None:
        """Both, one after the other."""
        self.stop_namenode()
        self.start_namenode()

    def suspend(self) -> None:
        """Neither server answers from now on; connections are still accepted, as by a machine that hangs."""
        for group in self._groups.values():
            os.killpg(group.leader.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Ends what :meth:`suspend` began."""
        for group in self._groups.values():
            os.killpg(group.leader.pid, signal.SIGCONT)

    def log_file(self, server: str) -> Path:
        """What a server (``NameNode``, ``DataNode``) wrote."""
        return self.folder / f"{server}.log"

    def pids(self) -> dict[str, int]:
        """The process ids of the servers that run, by name."""
        return {name: group.leader.pid for name, group in self._groups.items() if group.leader.poll() is None}

    def wait_until_ready(self) -> None:
        """Until a file can be written.

        :raises RuntimeError: a server ended, or ``START_SECONDS`` were not enough.
        """
        self._wait_until(self._is_ready)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            ended = set(self._groups) - set(self.pids())
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"HDFS at {self.uri} is not ready: {self._last_words()}")
            time.sleep(0.1)

    @property
    def _name_folder(self) -> Path:
        return self.folder / "name"

    @property
    def _server_configuration(self) -> Path:
        return self.folder / "server"

    def _write_settings(self) -> None:
        write_settings(self.client_configuration, self.client_settings, "ERROR")
        self._write_server_settings(self._server_configuration, self._hdfs_settings())

    def _write_server_settings(self, folder: Path, hdfs: Mapping[str, str]) -> None:
        write_settings(folder, {"core-site": self._core_settings(), "hdfs-site": hdfs}, "INFO")
        # The jars have no web pages, and the servers refuse to start without these folders.
        for name in ("hdfs", "datanode"):
            (folder / "webapps" / name).mkdir(parents=True, exist_ok=True)

    def _core_settings(self) -> dict[str, str]:
        return {
            **self.client_settings["core-site"],
            "hadoop.tmp.dir": str(self.folder / "tmp"),
            f"hadoop.proxyuser.{self.superuser}.hosts": "*",
            f"hadoop.proxyuser.{self.superuser}.users": "*",
        }

    def _hdfs_settings(self) -> dict[str, str]:
        return {
            **_QUICK_CLOSE,
            "dfs.namenode.name.dir": self._name_folder.as_uri(),
            "dfs.datanode.data.dir": (self.folder / "data").as_uri(),
            "dfs.replication": "1",
            "dfs.permissions.enabled": "true",
            "dfs.namenode.http-address": f"{HOST}:{self.web_port}",
            **{f"dfs.datanode.{name}": f"{HOST}:{port}" for name, port in self._data_ports.items()},
            "dfs.datanode.hostname": HOST,
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.safemode.extension": "0",
            # Default 0.999, rounded down: of a single block it would wait for none, and then not know where it is.
            "dfs.namenode.safemode.threshold-pct": "1.0",
            "dfs.namenode.edits.noeditlogchannelflush": "true",
        }

    def _run(self, main_class: str, *arguments: str, configuration: Path | None = None, says: str = "") -> None:
        command = self._command(main_class, *arguments, configuration=configuration)
        done = subprocess.run(command, cwd=self.folder, input=says, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{_name(main_class)} {' '.join(arguments)} fails: {done.stderr[-1000:]}")

    def _start(self, main_class: str, name: str | None = None, configuration: Path | None = None) -> None:
        name = name or _name(main_class)
        with self.log_file(name).open("ab") as log:
            command = self._command(main_class, configuration=configuration)
            self._groups[name] = start_group(command, self.folder, stdout=log)

    def _command(self, main_class: str, *arguments: str, configuration: Path | None = None) -> list[str]:
        class_path = os.pathsep.join(map(str, (configuration or self._server_configuration, *self.jars)))
        return [str(find_java()), *_JVM_OPTIONS, *self.java_options, "-cp", class_path, main_class, *arguments]

    @property
    def java_options(self) -> list[str]:
        """Of each program of Hadoop that is to work with this HDFS."""
        return []

    def _is_ready(self) -> bool:
        state = self._bean(self.web_address, "FSNamesystemState")
        return state is not None and state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational"

    def _bean(self, web_address: str, name: str) -> dict[str, Any] | None:
        """What a NameNode says of itself; None where it does not answer, or has not begun to know."""
        try:
            beans = json.loads(self._get(f"{web_address}/jmx?qry=Hadoop:service=NameNode,name={name}"))["beans"]
        except (OSError, ValueError):
            return None
        return beans[0] if beans else None

    def _get(self, url: str) -> bytes:
        """What a NameNode's web server answers."""
        with urllib.request.urlopen(url, timeout=START_SECONDS) as answer:
            content: bytes = answer.read()
            return content

    def _last_words(self) -> str:
        logs = [self.log_file(name) for name in self._groups]
        return " | ".join(line for log in logs for line in log.read_text(errors="replace").splitlines()[-5:])


def _jar_list() -> JarList:
    return JarList(f"hadoop-{HADOOP_VERSION}", Path(__file__).with_name("hdfs-server") / "jars.sha256")


def _name(main_class: str) -> str:
    return main_class.rpartition(".")[2]


def write_settings(folder: Path, files: Mapping[str, Mapping[str, str]], log_level: str) -> None:
    """Writes a folder that programs of Hadoop take their settings from.

    :param files: settings by the name of their file, ``core-site`` and so on.
    :param log_level: of what they write to their standard error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j.properties").write_text(_LOGGING.format(level=log_level))
    for name, settings in files.items():
        properties = "\n".join(
            f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items()
        )
        (folder / f"{name}.xml").write_text(f"<configuration>\n{properties}\n</configuration>\n")
