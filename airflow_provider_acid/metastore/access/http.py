"""Thrift inside HTTP, as of Hive 4: one POST for each call, on a connection that stays open."""

from __future__ import annotations

import getpass
import io
import socket
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, RemoteDisconnected
from typing import TYPE_CHECKING, Final, cast

from thrift.transport.TTransport import TTransportBase, TTransportException

from airflow_provider_acid.metastore.access.jwt import Jwt
from airflow_provider_acid.metastore.thrift.binary_protocol import SPEAKS_TLS, UnusableConnectionError
from airflow_provider_acid.metastore.thrift.transport import CallSocket

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DEFAULT_PATH = "metastore"

_PART_BYTES = 64 * 2**10
_BINARY_PORT: Final = "(metastore.server.thrift.transport.mode=binary)"


@dataclass(frozen=True)
class Http:
    """Where the metastore is on its server, and who the client is there.

    :param path: as the server's ``metastore.client.thrift.http.path`` has it: in Hive 4.0.1 to 4.2.1 it reads that,
        and not ``metastore.server.thrift.http.path``.
    :param jwt: says who the client is; None for a server that asks for no token.
    :param user: who the client is without a token; None for the process's user. Whoever reaches the port can say so.
    """

    path: str = DEFAULT_PATH
    jwt: Jwt | None = None
    user: str | None = None

    @property
    def target(self) -> str:
        """The path as a request has it."""
        return f"/{self.path.strip('/')}"


class HttpCalls(TTransportBase):  # type: ignore[misc]
    """What is written is sent as one request, what is read is the answer's body.

    :param calls: the connection, with its limits for time and bytes.
    """

    def __init__(self, calls: CallSocket, http: Http) -> None:
        self._calls = calls
        self._http = http
        self._answer = io.BytesIO()
        self._was_answered = False

    def open(self) -> None:
        """Connect.

        :raises TTransportException: the server cannot be reached.
        """
        self._calls.open()

    def close(self) -> None:
        """Give the connection up."""
        self._calls.close()

    def begin_call(self) -> None:
        """Time and bytes count from here."""
        self._calls.begin_call()

    def flush(self) -> None:
        """Nothing is left to be sent."""

    def read(self, size: int) -> bytes:
        """Some of the answer's next bytes.

        :raises TTransportException: there are no more.
        """
        data = self._answer.read(size)
        if not data:
            raise TTransportException(message="the HTTP answer ends in the middle of Thrift's")
        return data

    def write(self, data: bytes) -> None:
        """Send a request and wait for its answer.

        :raises TTransportException: see :meth:`CallSocket.read`; as :class:`UnusableConnectionError` where the answer
            is none of a metastore that speaks HTTP, or says that it does not want this client.
        """
        jwt = self._http.jwt
        token = None if jwt is None else jwt.token()
        who = {"x-actor-username": self._http.user or getpass.getuser()}
        if token is not None:
            who = {"Authorization": f"Bearer {token}"}
        try:
            status, body = self._exchange(data, {"Content-Type": "application/x-thrift", **who})
        # Python's library reads as many bytes as a server says, be it less than none.
        except (HTTPException, ValueError, OverflowError) as error:
            # Not with the error as its cause: that shows what the server said, which may be what it was told.
            raise self._no_http(error) from None
        self._was_answered = True
        if status != HTTPStatus.OK:
            raise self._refusal(status, token)
        self._answer = io.BytesIO(body)

    def _exchange(self, data: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = HTTPConnection(self._calls.host, self._calls.port)
        connection.sock = cast(socket.socket, _Wire(self._calls))
        connection.request("POST", self._http.target, data, headers)
        response = connection.getresponse()
        body = _body(response)
        if response.will_close:
            self._calls.close()
        return response.status, body

    def _no_http(self, error: Exception) -> TTransportException:
        if isinstance(error, RemoteDisconnected):
            if self._was_answered:
                return TTransportException(TTransportException.END_OF_FILE, "the server hung up without an answer")
            return UnusableConnectionError(
                "the server hung up instead of speaking HTTP, as ports do that speak plain Thrift",
                f"take http out of the connection's extra where the metastore has none {_BINARY_PORT}; else look at "
                "its log",
                is_final=False,
            )
        if str(error).startswith("\x15\x03"):
            return UnusableConnectionError(*SPEAKS_TLS)
        return UnusableConnectionError(
            f"this port does not speak HTTP ({type(error).__name__})",
            f"name the port of a metastore that does, or take http out of the connection's extra {_BINARY_PORT}",
            is_final=False,
        )

    def _refusal(self, status: int, token: str | None) -> UnusableConnectionError:
        """An answer without Thrift in it."""
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            if self._http.jwt is not None and token is not None:
                return self._http.jwt.refusal(token)
            return UnusableConnectionError(
                f"the server wants a JWT (HTTP status {status})",
                "enter one as the connection's password, or name a file with one by jwt_file in its extra",
                was_sent=False,
            )
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return UnusableConnectionError(
                f"there is no metastore at {self._http.target} (HTTP status {status})",
                "set http_path to the metastore's own metastore.client.thrift.http.path",
                was_sent=False,
            )
        return UnusableConnectionError(
            f"{self._http.target} was answered by HTTP status {status} in place of Thrift",
            "look at the metastore's log, and at that of a proxy before it",
            is_final=False,
        )


class _Wire:
    """What ``http.client`` takes for a socket: a request is sent as a whole, and then its answer read."""

    def __init__(self, calls: CallSocket) -> None:
        self._calls = calls
        self._request = bytearray()

    def sendall(self, data: bytes) -> None:
        self._request += data

    def makefile(self, mode: str) -> io.BufferedReader:
        self._calls.write(bytes(self._request))
        return io.BufferedReader(_Received(self._calls))

    def close(self) -> None:
        """The connection is closed when the answer was read."""


class _Received(io.RawIOBase):
    def __init__(self, calls: CallSocket) -> None:
        self._calls = calls

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)
        try:
            data = self._calls.read(len(room))
        except TTransportException as error:
            if error.type == TTransportException.END_OF_FILE:
                return 0
            raise
        room[: len(data)] = data
        return len(data)


def _body(response: HTTPResponse) -> bytes:
    """All of it; never is room made for what the server only says it will send."""
    return b"".join(iter(lambda: response.read(_PART_BYTES), b""))
