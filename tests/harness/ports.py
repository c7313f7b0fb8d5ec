"""Ports of the loopback interface for servers that tests start, each given once."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

HOST = "127.0.0.1"

_FIRST_PORT = 16_384
_ENOUGH_PORTS = 10_000
_PORT_ATTEMPTS = 100
_OUTGOING_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")

_given: set[int] = set()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on, and that no test process alive was given before.

    Outgoing connections are given none of these ports where that can be seen to: a server may be started on it later,
    and again after a while.

    :raises OSError: none was found.
    """
    for _ in range(_PORT_ATTEMPTS):
        port = _bound_port(_quiet_port())
        if port is not None and _is_ours(port):
            return port
    raise OSError(errno.EADDRINUSE, f"no free port in {_PORT_ATTEMPTS} attempts")


def _quiet_port() -> int:
    """A port that the system does not give to outgoing connections; 0, for any, where it leaves too few."""
    try:
        end = int(_OUTGOING_PORTS.read_text().split()[0])
    except OSError:
        return 0
    # Not of the generator that tests seed: two of them would get the same ports.
    return random.SystemRandom().randrange(_FIRST_PORT, end) if end > _FIRST_PORT + _ENOUGH_PORTS else 0


def _bound_port(wanted: int) -> int | None:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, wanted))
        except OSError:
            return None
        port: int = probe.getsockname()[1]
        return port


def _is_ours(port: int) -> bool:
    """Claims a port for this process: what it starts there may take seconds until it listens.

    The claim is a lock on one byte of a file that all test processes of this user share, and ends with the process.
    """
    if port in _given:
        return False
    try:
        fcntl.lockf(_claims(os.getpid()), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except BlockingIOError:
        return False
    _given.add(port)
    return True


@cache
def _claims(process_id: int) -> IO[bytes]:
    """Stays open: closing it would end the claims. A forked process opens its own."""
    return Path(tempfile.gettempdir(), f"airflow-provider-acid-ports-{os.getuid()}").open("ab")
