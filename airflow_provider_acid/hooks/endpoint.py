"""All that is needed to open a client of a metastore, without Airflow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy.engine import URL

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.database.database import PATIENCE_SECONDS, MetastoreDatabase
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import check_metastore, queue_of
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.connection import DEFAULT_TIMEOUT_SECONDS, Reached
from airflow_provider_acid.metastore.thrift.transport import DEFAULT_PORT, MetastoreAddress

MAX_PORT = 65_535

_ADDRESS = re.compile(r"(thrift://)?(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:/\[\]\s]+))(:(?P<port>\d+))?/?")
"""A host as people write it; also as an element of ``hive.metastore.uris``."""


@dataclass(frozen=True)
class MetastoreEndpoint:
    """All that is needed to open a client, without Airflow: what threads and triggers carry around.

    :param database_url: of the metastore's own database; None where none is configured. Holds a password.
    :param housekeeping_elsewhere: whether another instance of the same metastore aborts dead transactions.
    :param storages: opens the locations of the metastore's tables.
    :param access: opens connections to the metastore.
    :param database_patience_seconds: how long an outage of its database is waited for.
    """

    addresses: tuple[MetastoreAddress, ...]
    timeout_seconds: float
    user: str | None
    database_url: URL | None = field(default=None, repr=False)
    housekeeping_elsewhere: bool = False
    storages: Storages = field(default_factory=Storages)
    access: MetastoreAccess = MetastoreAccess()
    database_patience_seconds: float = PATIENCE_SECONDS

    @classmethod
    def of(
        cls, extra: ConnectionExtra, hosts: str, port: int = DEFAULT_PORT, database_url: URL | None = None
    ) -> MetastoreEndpoint:
        """What a connection's fields describe.

        :param hosts: one or several, separated by commas, each perhaps with a port of its own.
        :param port: of those that name none.
        :raises ConfigurationError: one of them cannot be used.
        """
        return cls(
            tuple(_addresses(extra.subject, hosts, port)),
            _timeout_seconds(extra),
            extra.text("user"),
            database_url,
            extra.flag("housekeeping_elsewhere"),
            _storages(extra.values.get("storage")),
            extra.access(),
        )

    def open(self) -> AcidMetastoreClient:
        """A client for the calling thread; nothing is sent yet."""
        return self._client(self.addresses, self._reached)

    def open_at(self, address: MetastoreAddress) -> AcidMetastoreClient:
        """The same for one of the addresses alone."""
        return self._client((address,), None)

    def _client(self, addresses: tuple[MetastoreAddress, ...], reached: Reached | None) -> AcidMetastoreClient:
        return AcidMetastoreClient(
            addresses,
            transport_factory=self.access,
            timeout_seconds=self.timeout_seconds,
            user=self.user,
            reached=reached,
        )

    @cached_property
    def _reached(self) -> Reached:
        """Shared by all clients."""
        return Reached()

    @cached_property
    def database(self) -> MetastoreDatabase | None:
        """The metastore's database, shared by all threads; None where none is configured.

        :raises ConfigurationError: its driver is not installed, or it is of a kind that Hive has no schema for.
        """
        if self.database_url is None:
            return None
        return MetastoreDatabase(self.database_url, patience_seconds=self.database_patience_seconds)

    @property
    def write_records(self) -> WriteRecords | None:
        """What that database knows of writes, asked for nothing yet; None, and errors, as for :attr:`database`."""
        return None if self.database is None else WriteRecords(self.database)

    def check(self, client: AcidMetastoreClient) -> Hive:
        """What the metastore can do; errors as for :func:`~..metastore.queues.open_queue`."""
        return check_metastore(client, self.database, housekeeping_elsewhere=self.housekeeping_elsewhere)

    def open_queue(self, client: AcidMetastoreClient, checked: Hive | None = None) -> CompactionQueue:
        """The compaction queue behind a client; errors as for :func:`~..metastore.queues.open_queue`.

        :param checked: the result of an earlier :meth:`check`, for a caller that changes no table and comes often.
        """
        return queue_of(client, self.database, checked or self.check(client))

    @contextmanager
    def connect(self) -> Iterator[tuple[AcidMetastoreClient, CompactionQueue]]:
        """A client for the calling thread, with its queue; errors as for :func:`~..metastore.queues.open_queue`."""
        with self.open() as client:
            yield client, self.open_queue(client)


def _storages(options: object) -> Storages:
    """From an object in extra, or from the text of one, as Airflow's form gives it."""
    if isinstance(options, str):
        return Storages.from_json(options or "{}")
    return Storages.from_options(options or {})


def _timeout_seconds(extra: ConnectionExtra) -> float:
    text = extra.text("timeout_seconds")
    if text is None:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        value = extra.values["timeout_seconds"]
        raise extra.wrong(f"timeout_seconds is {value!r}", "give a number of seconds, e.g. 60")
    return seconds


def _addresses(subject: str, hosts: str, default_port: int) -> Sequence[MetastoreAddress]:
    texts = [text for text in (part.strip() for part in hosts.split(",")) if text]
    if not texts:
        raise ConfigurationError(subject, "names no host", "enter the metastore's host name")
    return [_address(subject, text, default_port) for text in texts]


def _address(subject: str, text: str, default_port: int) -> MetastoreAddress:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ConfigurationError(subject, f"{text!r} is no address", "write host or host:port, separated by commas")
    port = int(match["port"] or default_port)
    if not 1 <= port <= MAX_PORT:
        raise ConfigurationError(subject, f"the port of {text!r} is {port}", f"give a port from 1 to {MAX_PORT}")
    return MetastoreAddress(match["ipv6"] or match["host"], port)
