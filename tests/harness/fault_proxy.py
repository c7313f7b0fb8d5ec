"""A proxy for HTTP servers that loses requests and replies as a test says: WebHDFS with its redirects, S3."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import IO
from urllib.parse import unquote, urlsplit

from tests.harness.network_proxy import CHUNK_BYTES, Proxy, close

_NO_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


@dataclass
class Exchange:
    """A request, and what became of it.

    :param method: ``GET``, ``PUT``, …
    :param target: path and query, unescaped.
    :param request_bytes: of the body, passed on to the server.
    :param status: of the reply; 0 while there is none.
    :param reply_bytes: of the body, passed on to the client.
    """

    method: str
    target: str
    request_bytes: int = 0
    status: int = 0
    reply_bytes: int = 0


Matching = Callable[[Exchange], bool]
"""Chooses requests; sees neither bodies nor replies."""


@dataclass
class Fault:
    """What happens once, to one request.

    :param matching: chooses the requests that count.
    :param number: which of these it happens to, from 1.
    :param before: is done before the request is passed on.
    :param after: is done when the server's reply is there, before it is passed on or lost; where the request breaks
        off, before it does.
    :param request_limit: so many bytes of the body reach the server before the connection breaks; None for all,
        -1 for not even the head.
    :param reply_limit: so many bytes of the reply's body reach the client before the connection breaks, after the
        server has sent all of it; None for all, -1 for not even the head.
    """

    matching: Matching
    number: int = 1
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    request_limit: int | None = None
    reply_limit: int | None = None
    _happened: threading.Event = field(default_factory=threading.Event)

    @property
    def has_happened(self) -> bool:
        """Whether the request came."""
        return self._happened.is_set()

    def is_for(self, exchange: Exchange) -> bool:
        """Counts the request; whether it is the one."""
        if self.has_happened or not self.matching(exchange):
            return False
        self.number -= 1
        if self.number == 0:
            self._happened.set()
        return self.number == 0


class FaultProxy:
    """Stands before one or several HTTP servers that redirect to each other, one port each.

    :param addresses: ``http://host:port`` of each.
    """

    def __init__(self, *addresses: str) -> None:
        self.exchanges: list[Exchange] = []
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        parts = {address: urlsplit(address) for address in addresses}
        self._listeners = {
            address: _HttpProxy(self, str(part.hostname), int(part.port or 80)) for address, part in parts.items()
        }
        self._stack = ExitStack()

    def __enter__(self) -> FaultProxy:
        for listener in self._listeners.values():
            self._stack.enter_context(listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def addresses(self) -> Mapping[str, str]:
        """By the address of each server, the one that leads there through the proxy."""
        return {address: f"http://{one.host}:{one.port}" for address, one in self._listeners.items()}

    def lose_request(self, matching: Matching, number: int = 1) -> Fault:
        """The connection breaks before the server hears of the request."""
        return self.add(Fault(matching, number, request_limit=-1))

    def cut_request(
        self, matching: Matching, after_bytes: int, number: int = 1, after: Callable[[], object] | None = None
    ) -> Fault:
        """The connection breaks when so many bytes of the body were sent to the server, and ``after`` was done."""
        return self.add(Fault(matching, number, request_limit=after_bytes, after=after))

    def lose_reply(self, matching: Matching, number: int = 1, after: Callable[[], object] | None = None) -> Fault:
        """The server does what it is asked for, and the connection breaks before it can say so."""
        return self.add(Fault(matching, number, reply_limit=-1, after=after))

    def cut_reply(self, matching: Matching, after_bytes: int, number: int = 1) -> Fault:
        """The connection breaks when so many bytes of the reply's body have reached the client."""
        return self.add(Fault(matching, number, reply_limit=after_bytes))

    def delay(self, matching: Matching, seconds: float, number: int = 1) -> Fault:
        """The request takes longer."""
        return self.add(Fault(matching, number, before=lambda: time.sleep(seconds)))

    def do_before(self, matching: Matching, action: Callable[[], object], number: int = 1) -> Fault:
        """Something happens after the client sent the request and before the server gets it."""
        return self.add(Fault(matching, number, before=action))

    def add(self, fault: Fault) -> Fault:
        """Plans a fault."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def refuse(self, is_refusing: bool) -> None:
        """Whether new connections are closed at once; those that stand are cut."""
        for listener in self._listeners.values():
            listener.refuse(is_refusing)

    def fault_of(self, exchange: Exchange) -> Fault:
        """Notes a request; what is to happen to it, which is mostly nothing."""
        with self._lock:
            self.exchanges.append(exchange)
            chosen = [fault for fault in self._faults if fault.is_for(exchange)]
            return chosen[0] if chosen else Fault(lambda _: True)

    def through_here(self, line: bytes) -> bytes:
        """A header line that redirects to one of the servers leads through the proxy afterwards."""
        if line.lower().startswith(b"location:"):
            for address, own in self.addresses.items():
                line = line.replace(address.encode(), own.encode())
        return line


@dataclass(frozen=True)
class _Head:
    lines: list[bytes]

    @classmethod
    def read(cls, stream: IO[bytes]) -> _Head | None:
        """None where the connection ended."""
        lines = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line)
        return cls(lines) if line and lines else None

    @property
    def words(self) -> list[str]:
        return self.lines[0].decode("latin-1").split()

    @property
    def status(self) -> int:
        return int(self.words[1])

    def value(self, name: str) -> str:
        for line in self.lines[1:]:
            key, _, value = line.decode("latin-1").partition(":")
            if key.lower() == name:
                return value.strip().lower()
        return ""

    def body(self, stream: IO[bytes], *, ends_with_connection: bool = False) -> Iterator[tuple[bytes, int]]:
        """What follows on the wire, in pieces, each with the number of bytes of content in it."""
        if self.value("transfer-encoding") == "chunked":
            yield from _chunks(stream)
        elif length := self.value("content-length"):
            yield from _exactly(stream, int(length))
        elif ends_with_connection:
            while piece := stream.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
                yield piece, len(piece)


class _HttpProxy(Proxy):
    """One request after the other on each connection, as HTTP/1.1 without pipelining is."""

    def __init__(self, owner: FaultProxy, host: str, port: int) -> None:
        super().__init__(host, port)
        self._owner = owner

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, ValueError),
            client.makefile("rb") as asked,
            server.makefile("rb") as answered,
        ):
            while self._exchange(asked, client, answered, server):
                pass
        close(client)
        close(server)

    def _exchange(self, asked: IO[bytes], client: socket.socket, answered: IO[bytes], server: socket.socket) -> bool:
        """Whether the connection can be used again."""
        head = _Head.read(asked)
        if head is None or self.is_refusing:
            return False
        exchange = Exchange(head.words[0], unquote(head.words[1]))
        fault = self._owner.fault_of(exchange)
        if fault.before is not None:
            fault.before()
        if fault.request_limit == -1:
            return False
        self._send(server, head)
        reply = self._interim(head, answered, client)
        if reply is None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for piece, size in _limited(head.body(asked), fault.request_limit):
                    server.sendall(piece)
                    exchange.request_bytes += size
            if fault.request_limit is not None:
                self._finish(fault)
                return False
            reply = self._verdict(answered, client)
        return reply is not None and self._reply(exchange, fault, reply, answered, client)

    def _interim(self, head: _Head, answered: IO[bytes], client: socket.socket) -> _Head | None:
        """The server's verdict where the client waits for it before it sends the body; None where it may go on."""
        if head.value("expect") != "100-continue":
            return None
        reply = _Head.read(answered)
        if reply is not None and reply.status == HTTPStatus.CONTINUE:
            self._send(client, reply)
            return None
        return reply

    def _verdict(self, answered: IO[bytes], client: socket.socket) -> _Head | None:
        """The reply after those that are none; DataNodes say "continue" to clients that did not ask."""
        reply = _Head.read(answered)
        while reply is not None and reply.status == HTTPStatus.CONTINUE:
            self._send(client, reply)
            reply = _Head.read(answered)
        return reply

    def _reply(self, exchange: Exchange, fault: Fault, head: _Head, answered: IO[bytes], client: socket.socket) -> bool:
        exchange.status = head.status
        has_body = exchange.method != "HEAD" and head.status not in _NO_BODY
        body = head.body(answered, ends_with_connection=True) if has_body else iter(())
        if fault.reply_limit is not None:
            # Only then has the server done all it was asked for.
            body = iter(list(body))
        self._finish(fault)
        if fault.reply_limit != -1:
            self._send(client, head)
            for piece, size in _limited(body, fault.reply_limit):
                exchange.reply_bytes += size
                client.sendall(piece)
        is_bounded = not has_body or head.value("transfer-encoding") or head.value("content-length")
        return bool(is_bounded) and fault.reply_limit is None and head.value("connection") != "close"

    @staticmethod
    def _finish(fault: Fault) -> None:
        if fault.after is not None:
            fault.after()

    def _send(self, end: socket.socket, head: _Head) -> None:
        end.sendall(b"".join(map(self._owner.through_here, head.lines)) + b"\r\n")


def _exactly(stream: IO[bytes], length: int) -> Iterator[tuple[bytes, int]]:
    while length > 0:
        piece = stream.read1(min(length, CHUNK_BYTES))  # type: ignore[attr-defined]
        if not piece:
            raise ConnectionResetError("the body is shorter than announced")
        length -= len(piece)
        yield piece, len(piece)


def _chunks(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    while size := int((line := stream.readline()).split(b";")[0], 16):
        yield line, 0
        yield from _exactly(stream, size)
        yield stream.readline(), 0
    yield line, 0
    while (line := stream.readline()) not in (b"\r\n", b""):
        yield line, 0
    yield line, 0


def _limited(body: Iterator[tuple[bytes, int]], limit: int | None) -> Iterator[tuple[bytes, int]]:
    """The body up to a number of bytes of its content; what is left of it stays where it is."""
    for piece, size in body:
        if limit is None:
            yield piece, size
        elif size <= limit:
            yield piece, size
            limit -= size
        else:
            yield piece[:limit], limit
            return
