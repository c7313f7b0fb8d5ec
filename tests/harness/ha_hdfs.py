"""An HDFS with two NameNodes, of which one is active, and the other takes over when it is told to."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.harness.hdfs_server import DATANODE, HOST, NAMENODE, HdfsServer
from tests.harness.ports import free_port

NAMESERVICE = "ns1"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"


class HaHdfs(HdfsServer):
    """Two NameNodes that share their journal by a folder, without ZooKeeper: the tests say which one is active."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ports = {name: (free_port(), free_port()) for name in ("nn1", "nn2")}
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
            self._run(NAMENODE, "-format", "-nonInteractive", "-force", configuration=self._configuration("nn1"))
            self.start_one("nn1")
            copy = ("-bootstrapStandby", "-nonInteractive", "-force")
            self._run(NAMENODE, *copy, configuration=self._configuration("nn2"))
            self.start_one("nn2")
            self._start(DATANODE)
            self._activate("nn1")
        except BaseException:
            self.stop()
            raise

    def start_one(self, name: str) -> None:
        """Starts a NameNode, as standby, and waits until it answers."""
        self._start(NAMENODE, name, self._configuration(name))
        self._wait_until(lambda: self._state(name) is not None)

    def kill_active(self) -> None:
        """The active NameNode dies; nobody is active."""
        self._groups.pop(self.active).end(signal.SIGKILL)

    def fail_over(self) -> None:
        """The standby becomes active, and waits for no word of the other's; that one, where it lives, is standby."""
        if self.active in self._groups:
            self._administer("-transitionToStandby", self.active)
        self._activate(self.standby)

    def restore(self) -> None:
        """Starts again what was killed."""
        if self.standby not in self._groups:
            self.start_one(self.standby)

    def _activate(self, name: str) -> None:
        self._administer("-transitionToActive", "--forceactive", name)
        self.active = name
        self._wait_until(lambda: self._state(name) == "active" and self._is_ready())

    def _administer(self, *arguments: str) -> None:
        self._run(_ADMIN, "-ns", NAMESERVICE, *arguments, configuration=self.client_configuration, says="Y\n")

    def _state(self, name: str) -> str | None:
        """``active`` or ``standby``; None where it does not answer."""
        status = self._bean(f"http://{HOST}:{self._ports[name][1]}", "NameNodeStatus")
        return None if status is None else str(status["State"])

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
            self._write_server_settings(self._configuration(name), {**self._hdfs_settings(), **own})

    def _hdfs_settings(self) -> dict[str, str]:
        settings = {**super()._hdfs_settings(), **self.client_settings["hdfs-site"]}
        del settings["dfs.namenode.http-address"]
        return {
            **settings,
            "dfs.namenode.shared.edits.dir": (self.folder / "journal").as_uri(),
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.automatic-failover.enabled": "false",
        }
