"""An HDFS with two NameNodes, of which one is active, and the other takes over when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.harness.hdfs_server import HOST, START_SECONDS, HdfsServer, write_settings
from tests.harness.ports import free_port
from tests.harness.process_group import ProcessGroup, start_group

NAMESERVICE = "ns1"
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"


class HaHdfs(HdfsServer):
    """Two NameNodes that share their journal by a folder, without ZooKeeper: the tests say which one is active."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ports = {name: (free_port(), free_port()) for name in ("nn1", "nn2")}
        self._namenodes: dict[str, ProcessGroup] = {}
        self.active = "nn1"

    @property
    def uri(self) -> str:
        """``hdfs://`` and the nameservice."""
        return f"hdfs://{NAMESERVICE}"

    @property
    def web_addresses(self) -> tuple[str, ...]:
        """``host:port`` of the NameNodes, in an order that has nothing to do with which one is active."""
        return tuple(f"{HOST}:{web}" for _, web in self._ports.values())

    @property
    def web_address(self) -> str:
        """``http://host:port`` of the active one."""
        return f"http://{HOST}:{self._ports[self.active][1]}"

    @property
    def standby(self) -> str:
        """The name of the other."""
        return next(name for name in self._ports if name != self.active)

    @property
    def client_settings(self) -> dict[str, dict[str, str]]:
        """Of clients in Java, by the name of their file."""
        settings = super().client_settings
        service = {
            "dfs.nameservices": NAMESERVICE,
            f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(self._ports),
            f"dfs.client.failover.proxy.provider.{NAMESERVICE}": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
        }
        for name, (rpc, web) in self._ports.items():
            service[f"dfs.namenode.rpc-address.{NAMESERVICE}.{name}"] = f"{HOST}:{rpc}"
            service[f"dfs.namenode.http-address.{NAMESERVICE}.{name}"] = f"{HOST}:{web}"
        return {**settings, "hdfs-site": {**settings["hdfs-site"], **service}}

    def start(self) -> None:
        """Formats both, and starts them and the DataNode; the first is active.

        :raises RuntimeError: one of them ended, or not ready within ``START_SECONDS``; nothing is left running.
        """
        self._write_settings()
        try:
            self._run(_NAMENODE, "-format", "-nonInteractive", "-force", of="nn1")
            self.start_one("nn1")
            self._run(_NAMENODE, "-bootstrapStandby", "-nonInteractive", "-force", of="nn2")
            self.start_one("nn2")
            self._start(_DATANODE)
            self._activate("nn1")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all three."""
        for name in list(self._namenodes):
            self._namenodes.pop(name).end(signal.SIGKILL)
        super().stop()

    def start_one(self, name: str) -> None:
        """Starts a NameNode, as standby, and waits until it answers."""
        command = self._command(_NAMENODE, configuration=self._configuration(name))
        with self.log_file(name).open("ab") as log:
            self._namenodes[name] = start_group(command, self.folder, stdout=log)
        self._wait(lambda: self._state(name) is not None)

    def kill_active(self) -> None:
        """The active NameNode dies; nobody is active."""
        self._namenodes.pop(self.active).end(signal.SIGKILL)

    def fail_over(self) -> None:
        """The standby becomes active, and waits for no word of the other's; that one, where it lives, is standby."""
        if self.active in self._namenodes:
            self._run(_ADMIN, "-ns", NAMESERVICE, "-transitionToStandby", self.active)
        self._activate(self.standby)

    def restore(self) -> None:
        """Starts again what was killed."""
        if self.standby not in self._namenodes:
            self.start_one(self.standby)

    def _activate(self, name: str) -> None:
        self._run(_ADMIN, "-ns", NAMESERVICE, "-transitionToActive", "--forceactive", name, says=b"Y\n")
        self.active = name
        self._wait(lambda: self._state(name) == "active" and self._is_ready())

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            ended = [name for name, group in self._namenodes.items() if group.leader.poll() is not None]
            if ended or time.monotonic() > deadline:
                words = " | ".join(self.log_file(name).read_text(errors="replace")[-1000:] for name in self._ports)
                raise RuntimeError(f"HDFS with two NameNodes is not ready: {words}")
            time.sleep(0.1)

    def _state(self, name: str) -> str | None:
        """``active`` or ``standby``; None where it does not answer."""
        query = f"http://{HOST}:{self._ports[name][1]}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
        try:
            with urllib.request.urlopen(query, timeout=START_SECONDS) as answer:
                return str(json.load(answer)["beans"][0]["State"])
        except (OSError, ValueError, KeyError, IndexError):
            return None

    def _run(self, main_class: str, *arguments: str, of: str | None = None, says: bytes = b"") -> None:
        configuration = self._configuration(of) if of else self.client_configuration
        command = self._command(main_class, *arguments, configuration=configuration)
        done = subprocess.run(command, cwd=self.folder, input=says, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{main_class} {' '.join(arguments)} fails: {done.stderr.decode()[-2000:]}")

    def _configuration(self, name: str) -> Path:
        return self.folder / name

    def _write_settings(self) -> None:
        super()._write_settings()
        for name in self._ports:
            own = {
                "dfs.ha.namenode.id": name,
                "dfs.namenode.name.dir": (self.folder / f"name-{name}").as_uri(),
                # Default 60 and 120 s: how far the standby is behind.
                "dfs.ha.tail-edits.period": "1s",
                "dfs.ha.log-roll.period": "1s",
            }
            core, hdfs = self._core_settings(), {**self._hdfs_settings(), **own}
            write_settings(self._configuration(name), {"core-site": core, "hdfs-site": hdfs}, "INFO")
            (self._configuration(name) / "webapps" / "hdfs").mkdir(parents=True, exist_ok=True)

    def _hdfs_settings(self) -> dict[str, str]:
        settings = {**super()._hdfs_settings(), **self.client_settings["hdfs-site"]}
        del settings["dfs.namenode.http-address"]
        return {
            **settings,
            "dfs.namenode.shared.edits.dir": (self.folder / "journal").as_uri(),
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.automatic-failover.enabled": "false",
        }
