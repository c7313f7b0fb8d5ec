"""How a connection to the metastore comes about; ``metastore/access/`` puts TLS, SASL and HTTP in."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from typing import Protocol

from thrift.protocol.TProtocol import TProtocolBase
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportBase, TTransportException

from airflow_provider_acid.metastore.thrift.binary_protocol import AnswerProtocol

DEFAULT_PORT = 9083

MAX_ANSWER_BYTES = 128 * 2**20
"""Of one answer. A table's million partition names of 100 characters need 105 MB, a batch of 1,000 partitions of a
table with 1,500 columns 100 MB."""

_READ_BYTES = 64 * 2**10


@dataclass(frozen=True)
class MetastoreAddress:
    """Where a metastore listens."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Transport(Protocol):
    """An open connection to one metastore."""

    @property
    def protocol(self) -> TProtocolBase:
        """The Thrift protocol to read from and write to.

        Each flush of its transport begins a call, whose time and whose answer's bytes are limited from there on.
        """

    def is_open(self) -> bool:
        """Whether the connection still stands, as far as can be seen without sending anything."""

    def close(self) -> None:
        """Give the connection up; never raises."""

    def interrupt(self) -> None:
        """Make a read that another thread is blocked in end with an error; never raises."""


class TransportFactory(Protocol):
    """Opens connections.

    A factory is shared by the clients of several threads and must not keep state of a connection.
    """

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> Transport:
        """Connect to ``address``.

        :param timeout_seconds: limit for connecting, and for every later call as a whole.
        :raises thrift.transport.TTransport.TTransportException: it cannot be reached.
        """


class CallSocket(TSocket):  # type: ignore[misc]
    """A socket on which a call has so much time, from its sending to the last byte of its answer, and so many bytes.

    A limit for each wait alone would let a server that sends a byte now and then hold a call for ever.
    """

    def __init__(self, address: MetastoreAddress, timeout_seconds: float) -> None:
        super().__init__(address.host, address.port, socket_keepalive=True)
        self._seconds = timeout_seconds
        self.setTimeout(timeout_seconds * 1000)
        self.begin_call()

    def begin_call(self) -> None:
        """Time and bytes count from here."""
        self._ends = time.monotonic() + self._seconds
        self._bytes_left = MAX_ANSWER_BYTES

    def read(self, size: int) -> bytes:
        """Some of the answer's next bytes.

        :raises TTransportException: none came in time, too many came, or the connection is gone.
        """
        if self._bytes_left <= 0:
            raise TTransportException(
                TTransportException.SIZE_LIMIT, f"the answer has more than {MAX_ANSWER_BYTES} bytes"
            )
        self._limit_wait()
        try:
            data: bytes = super().read(min(size, _READ_BYTES, self._bytes_left))
        except TTransportException as error:
            raise self._too_late() if error.type == TTransportException.TIMED_OUT else error from error
        self._bytes_left -= len(data)
        return data

    def readAll(self, size: int) -> bytes:  # noqa: N802 - Thrift's name
        """Exactly so many of the answer's next bytes; see :meth:`read`."""
        data = bytearray()
        while len(data) < size:
            data += self.read(size - len(data))
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Send all of it.

        :raises TTransportException: the server does not take it in time, or the connection is gone.
        """
        if self.handle is None:
            raise TTransportException(TTransportException.NOT_OPEN, "the connection is closed")
        self._limit_wait()
        try:
            self.handle.sendall(data)
        except TimeoutError as error:
            raise self._too_late() from error
        except OSError as error:
            raise TTransportException(message=f"the request could not be sent ({error})", inner=error) from error

    def _limit_wait(self) -> None:
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise self._too_late()
        if self.handle is not None:
            self.handle.settimeout(seconds)

    def _too_late(self) -> TTransportException:
        return TTransportException(
            TTransportException.TIMED_OUT, f"no complete answer within {self._seconds:g} s (read timeout)"
        )


class CallStream(Protocol):
    """What calls are written to and answers read from, by Thrift's names: :class:`CallSocket`, or what is on it."""

    def begin_call(self) -> None:
        """Time and bytes count from here."""


class BufferedCalls(TBufferedTransport):  # type: ignore[misc]
    """Thrift's own buffer, which its C code reads from; a flush sends a call."""

    def __init__(self, calls: CallStream) -> None:
        super().__init__(calls, _READ_BYTES)
        self._calls = calls

    def flush(self) -> None:
        """Send a call, whose time begins now."""
        self._calls.begin_call()
        super().flush()


class SocketTransport:
    """Binary protocol over a socket.

    :param calls: what the protocol writes to and reads from, with the socket at its end; begins a call with each flush.
    """

    def __init__(self, tcp: CallSocket, calls: TTransportBase) -> None:
        self._tcp = tcp
        self._calls = calls
        self.protocol = AnswerProtocol(calls)

    def is_open(self) -> bool:
        """See :meth:`Transport.is_open`: a server that went away is noticed here."""
        return bool(self._tcp.isOpen())

    def close(self) -> None:
        """See :meth:`Transport.close`."""
        with contextlib.suppress(OSError):
            self._calls.close()

    def interrupt(self) -> None:
        """See :meth:`Transport.interrupt`: closing alone would not wake a blocked reader, shutting down does."""
        handle = self._tcp.handle
        if handle is not None:
            with contextlib.suppress(OSError):
                # That of a socket inside TLS would let what another thread is about to send pass unencrypted.
                socket.socket.shutdown(handle, socket.SHUT_RDWR)


class PlainTransportFactory:
    """Connects without encryption and authentication."""

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> SocketTransport:
        """See :meth:`TransportFactory.connect`."""
        tcp = CallSocket(address, timeout_seconds)
        transport = SocketTransport(tcp, BufferedCalls(tcp))
        tcp.open()
        return transport
