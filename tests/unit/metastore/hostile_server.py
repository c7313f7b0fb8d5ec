"""A server that answers every call with bytes that a test chose."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress

REPLY, EXCEPTION = 2, 3
LIST, STRUCT, TEXT, I32, MAP = b"\x0f", b"\x0c", b"\x0b", b"\x08", b"\x0d"
STOP = b"\0"


@dataclass(frozen=True)
class Asked:
    """A call as it arrived."""

    name: bytes
    number: int

    def head(self, *, name: bytes | None = None, number: int | None = None, type: int = REPLY) -> bytes:
        """How the answer to it begins, unless a test wants it otherwise."""
        told = self.number if number is None else number
        return struct.pack("!I", 0x80010000 | type) + text(name or self.name) + struct.pack("!i", told)


Answer = Callable[[Asked, socket.socket], object]
"""Sends what a test chose; the connection is closed after it."""


def text(value: bytes) -> bytes:
    """A text or binary value with its length."""
    return struct.pack("!i", len(value)) + value


def field(type: bytes, number: int, value: bytes = b"") -> bytes:
    """A field's head and value."""
    return type + struct.pack("!h", number) + value


def list_of(type: bytes, declared: int, items: bytes = b"") -> bytes:
    """A list that says it has so many items."""
    return type + struct.pack("!i", declared) + items


@contextmanager
def server(answer: Answer) -> Iterator[tuple[MetastoreAddress, list[Asked]]]:
    """The address of a server, and the calls it got."""
    asked: list[Asked] = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                (length,) = struct.unpack("!i", data[4:8])
                (number,) = struct.unpack("!i", data[8 + length : 12 + length])
                asked.append(Asked(data[8 : 8 + length], number))
                if answer(asked[-1], connection) is not KEEP:
                    return

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        try:
            yield MetastoreAddress("127.0.0.1", listener.getsockname()[1]), asked
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


KEEP = object()
"""Returned by an :data:`Answer` after which the connection stays."""
