"""How a connection to the metastore comes about; the one place to replace for TLS or SASL."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Protocol

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.protocol.TProtocol import TProtocolBase
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

DEFAULT_PORT = 9083


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
        """The Thrift protocol to read from and write to."""

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

        :param timeout_seconds: limit for connecting, and for every later wait for bytes.
        :raises thrift.transport.TTransport.TTransportException: it cannot be reached.
        """


class PlainTransport:
    """Binary protocol over a buffered TCP socket, without encryption and authentication."""

    def __init__(self, tcp: TSocket) -> None:
        self._tcp = tcp
        self._buffered = TBufferedTransport(tcp)
        self.protocol = TBinaryProtocolAcceleratedFactory().getProtocol(self._buffered)

    def is_open(self) -> bool:
        """See :meth:`Transport.is_open`: a server that went away is noticed here."""
        return bool(self._buffered.isOpen())

    def close(self) -> None:
        """See :meth:`Transport.close`."""
        with contextlib.suppress(OSError):
            self._buffered.close()

    def interrupt(self) -> None:
        """See :meth:`Transport.interrupt`: closing alone would not wake a blocked reader, shutting down does."""
        handle = self._tcp.handle
        if handle is not None:
            with contextlib.suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)


class PlainTransportFactory:
    """Connects without encryption and authentication."""

    def connect(self, address: MetastoreAddress, timeout_seconds: float) -> PlainTransport:
        """See :meth:`TransportFactory.connect`."""
        tcp = TSocket(address.host, address.port, socket_keepalive=True)
        tcp.setTimeout(timeout_seconds * 1000)
        transport = PlainTransport(tcp)
        tcp.open()
        return transport
