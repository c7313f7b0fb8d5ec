"""Answers over HTTP of servers of HDFS, with a listing as Hadoop 3.4.3 gives it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Sequence
from functools import cache

from airflow_provider_acid.storages.hdfs.errors import storage_errors
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs_session import WebHdfsSession
from tests.harness.fuzzing.subject import Subject

_STATUS = {
    "accessTime": 0, "blockSize": 0, "childrenNum": 1, "fileId": 16390, "group": "supergroup", "length": 0,
    "modificationTime": 1732579200000, "owner": "hive", "pathSuffix": "base_0000003", "permission": "755",
    "replication": 0, "storagePolicy": 0, "type": "DIRECTORY",
}  # fmt: skip
_LISTING = json.dumps({"FileStatuses": {"FileStatus": [_STATUS]}}).encode()


class _Server:
    """Says the same to everybody, and hangs up."""

    def __init__(self) -> None:
        self.answer = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.session = WebHdfsSession(
            f"http://127.0.0.1:{self._socket.getsockname()[1]}", HdfsOptions(user="fuzz", timeout_seconds=4)
        )
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(2**16)
                connection.sendall(self.answer)


@cache
def _server() -> _Server:
    return _Server()


def seeds() -> Sequence[bytes]:
    """What Jetty answers, whole and in chunks."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return [
        head + b"Content-Length: %d\r\n\r\n%b" % (len(_LISTING), _LISTING),
        head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(_LISTING), _LISTING),
    ]


def read(document: bytes) -> None:
    """Some answer comes out, or an error of this package."""
    server = _server()
    server.answer = document
    with storage_errors("hdfs://fuzz/w", "cannot be listed"):
        assert isinstance(server.session.call("GET", "/w", {"op": "LISTSTATUS"}).content, bytes)


SUBJECT = Subject("webhdfs_answers", seeds, read, cases=300)
