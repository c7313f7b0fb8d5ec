"""Answers of servers that speak HTTP, with a recorded reply of metastore 4.0.1 in them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.metastore.access.http import Http, HttpCalls
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import (
    BufferedCalls,
    CallSocket,
    MetastoreAddress,
    SocketTransport,
)
from tests.fuzz.replies import FOLDER, Recorded
from tests.harness.fuzzing.subject import Subject


class _Answers:
    """Opens connections over each of which the same answer comes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        socket = CallSocket(address, timeout_seconds)
        socket.setHandle(Recorded(self._answer))
        return SocketTransport(socket, BufferedCalls(HttpCalls(socket, Http())))


def seeds() -> Sequence[bytes]:
    """What Jetty answers, and what proxies may."""
    reply = (FOLDER / "4-get_all_databases").read_bytes()
    return [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nServer: Jetty\r\n\r\n%b" % (len(reply), reply),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%b\r\n%x;a=b\r\n%b\r\n0\r\n\r\n"
        % (reply[:5], len(reply) - 5, reply[5:]),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\nConnection: close\r\n\r\n" + reply,
    ]


def read(document: bytes) -> None:
    """The names of databases come out, or an error of this package."""
    client = AcidMetastoreClient([MetastoreAddress("recorded")], transport_factory=_Answers(document), user="fuzz")
    assert all(isinstance(name, str) for name in client.databases())


SUBJECT = Subject("http_answers", seeds, read)
