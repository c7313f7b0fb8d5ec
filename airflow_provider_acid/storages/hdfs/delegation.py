"""Delegation tokens of HDFS that YARN gives the containers of an application, which have no tickets of Kerberos.

Spark gets them when the application is submitted, and YARN renews them as long as it runs. Each container finds them
in a file (``HADOOP_TOKEN_FILE_LOCATION``), in the format of Hadoop's ``Credentials`` and ``Token``: numbers and lengths
as ``WritableUtils`` writes them. WebHDFS takes the same tokens that Hadoop's own protocol does.
"""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_acid.exceptions import ConfigurationError

TOKEN_FILE_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
MOST_BYTES = 1 << 20
"""Of a file of tokens; a token has some hundred."""

_MAGIC = b"HDTS"
_WRITABLE = 0
_KIND = "HDFS_DELEGATION_TOKEN"
_NAMESERVICE = "ha-hdfs:"


@dataclass(frozen=True)
class DelegationToken:
    """One token.

    :param service: whom it is for: ``ip:port`` or ``host:port`` of a NameNode, or ``ha-hdfs:nameservice``.
    :param owner: who its bearer is: a principal, or a plain name where another acts for it.
    :param url_form: as WebHDFS wants it; a secret.
    """

    service: str
    owner: str
    url_form: str = field(repr=False)

    @property
    def user(self) -> str:
        """The owner's first name, before ``/`` and ``@``."""
        return self.owner.partition("@")[0].partition("/")[0]

    def is_for(self, hosts: Collection[str], nameservices: Collection[str]) -> bool:
        """Whether it is for one of these NameNodes.

        :param hosts: their names and their numbers.
        """
        if self.service.startswith(_NAMESERVICE):
            return self.service.removeprefix(_NAMESERVICE) in nameservices
        return self.service.rpartition(":")[0] in hosts


def given_token(hosts: Collection[str], nameservices: Collection[str]) -> DelegationToken | None:
    """The token for one HDFS that YARN gave this process; None where it gave none at all.

    It goes to nobody else: whoever has it may do whatever its owner may.

    :param hosts: of its NameNodes.
    :param nameservices: by which Hadoop's settings know it.
    :raises ConfigurationError: the file cannot be understood, or has none for this HDFS.
    """
    path = os.environ.get(TOKEN_FILE_VARIABLE)
    if not path:
        return None
    tokens = read_tokens(Path(path))
    names_and_numbers = _with_addresses(hosts)
    found = next((token for token in tokens if token.is_for(names_and_numbers, nameservices)), None)
    if found is None:
        known = ", ".join(token.service for token in tokens) or "no HDFS at all"
        raise ConfigurationError(
            f"delegation tokens in {TOKEN_FILE_VARIABLE}",
            f"none is for {' or '.join(sorted({*nameservices, *hosts}))}, but for {known}",
            "name this HDFS in spark.kerberos.access.hadoopFileSystems, and as it is called there in authorities of "
            "the HDFS options",
        )
    return found


def read_tokens(file: Path) -> list[DelegationToken]:
    """The tokens for HDFS in a file.

    :raises ConfigurationError: it cannot be read or understood.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES)
    except OSError as error:
        raise _unusable(f"cannot be read ({error.strerror})") from error
    reader = _Reader(data)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.take(1)[0] != _WRITABLE:
        raise _unusable("is of no format that is known")
    return list(reader.tokens())


class _Reader:
    """Hadoop's ``Writable`` values, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def tokens(self) -> Iterator[DelegationToken]:
        for _ in range(self.number()):
            self.bytes()  # The name under which its client keeps it.
            start = self._place
            identifier = self.bytes()
            self.bytes()
            kind, service = self.text(), self.text()
            if kind == _KIND:
                whole = self._data[start : self._place]
                yield DelegationToken(service, _owner(identifier), base64.urlsafe_b64encode(whole).decode().rstrip("="))

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._place:
            raise _unusable("ends early")
        self._place += count
        return self._data[self._place - count : self._place]

    def number(self) -> int:
        """A ``VInt``: small ones in one byte, others behind a byte that says of how many, and of which sign."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            return first
        is_negative = first < -120
        value = int.from_bytes(self.take(-120 - first if is_negative else -112 - first), "big")
        return ~value if is_negative else value

    def bytes(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        try:
            return self.bytes().decode()
        except UnicodeDecodeError as error:
            raise _unusable("holds a name that is no UTF-8") from error


def _owner(identifier: bytes) -> str:
    reader = _Reader(identifier)
    if reader.take(1) != b"\0":
        raise _unusable("holds a token of no version that is known")
    return reader.text()


def _with_addresses(hosts: Collection[str]) -> set[str]:
    """The hosts, and their numbers: by default a token is for an address, without its host's name."""
    found = set(hosts)
    for host in hosts:
        try:
            found.update(str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
        except OSError:
            continue
    return found


def _unusable(reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"the file of delegation tokens in {TOKEN_FILE_VARIABLE}", reason, "look at what made it; YARN does, as a rule"
    )
