"""A directory of its own on the tests' HDFS, for what is particular to HDFS."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from tests.harness.hdfs_server import HdfsServer
from tests.storage.hdfs_stores import USER, Administrator

ODD_NAMES = [
    "ds=a%2Fb",
    "ds=a b",
    "ds=50%",
    "ds=%25",
    "ds=ü#1?x=2",
    "a+b&c=d;e",
    "日本",
    "p=🐘",
    "p=u\u0308",
    "it's [not] {odd}",
    "~._-!*()",
]


class HdfsSite:
    """A directory that belongs to ``USER``, and storages in it.

    :param name: of the directory.
    """

    def __init__(self, server: HdfsServer, name: str = "t") -> None:
        self.server = server
        parent = f"/sites/{uuid.uuid4().hex}"
        self.parent = Administrator(server, parent)
        self.root = f"{parent}/{name}"
        self.administrator = Administrator(server, self.root)
        self.administrator.call("PUT", "", "MKDIRS")
        self.administrator.give_away("")
        self.location = f"{server.uri}{self.root}"
        self.options = HdfsOptions((server.web_address,), user=USER, timeout_seconds=60)

    def web(self, **changes: Any) -> WebHdfsStorage:
        """A storage over HTTP, with other options."""
        return WebHdfsStorage(self.location, replace(self.options, **changes))

    def arrow(self, **changes: Any) -> ArrowHdfsStorage:
        """A storage that reads by libhdfs, with other options."""
        return ArrowHdfsStorage(self.location, replace(self.options, **changes))

    def status(self, path: str) -> dict[str, Any]:
        """What HDFS says about a file or directory."""
        found: dict[str, Any] = self.administrator.call("GET", path, "GETFILESTATUS").json()["FileStatus"]
        return found
