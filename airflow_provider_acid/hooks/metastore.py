"""The Airflow connection to a Hive metastore."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from sqlalchemy.engine import URL

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks.connection_form import (
    CONNECTION_TYPE,
    HIDDEN_FIELDS,
    PLACEHOLDERS,
    RELABELING,
    airflow_2_widgets,
)
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.hooks.other_connections import database_url, s3_credentials
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.rights import missing_rights
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import check_metastore, queue_of
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.connection import DEFAULT_TIMEOUT_SECONDS
from airflow_provider_acid.metastore.thrift.transport import DEFAULT_PORT, MetastoreAddress
from airflow_provider_acid.storages.s3.options import S3Options

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

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
    """

    addresses: tuple[MetastoreAddress, ...]
    timeout_seconds: float
    user: str | None
    database_url: URL | None = field(default=None, repr=False)
    housekeeping_elsewhere: bool = False
    storages: Storages = field(default_factory=Storages)
    access: MetastoreAccess = MetastoreAccess()

    def open(self) -> AcidMetastoreClient:
        """A client for the calling thread; nothing is sent yet."""
        return AcidMetastoreClient(
            self.addresses, transport_factory=self.access, timeout_seconds=self.timeout_seconds, user=self.user
        )

    @cached_property
    def database(self) -> MetastoreDatabase | None:
        """The metastore's database, shared by all threads; None where none is configured.

        :raises ConfigurationError: its driver is not installed, or it is of a kind that Hive has no schema for.
        """
        return None if self.database_url is None else MetastoreDatabase(self.database_url)

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


class AcidMetastoreHook(BaseHook):
    """Opens clients of a Hive metastore.

    :param hive_acid_conn_id: a connection of type ``hive_acid``: host (several, separated by commas, each with an
        optional ``:port``, for failover), port, and in extra ``timeout_seconds``, ``user``, ``metastore_db_conn_id``
        (the id of a connection to the metastore's own database), ``housekeeping_elsewhere``, ``storage`` (see
        ``docs/storage.md``), and what ``docs/security.md`` says of TLS and Kerberos. Login and password are for a
        metastore that asks for them.
    """

    conn_name_attr = "hive_acid_conn_id"
    default_conn_name = "hive_acid_default"
    conn_type = CONNECTION_TYPE
    hook_name = "Hive ACID metastore"

    @staticmethod
    def get_connection_form_widgets() -> dict[str, Any]:
        """The fields of Airflow 2's connection form; Airflow 3 reads the provider info."""
        return airflow_2_widgets()

    @staticmethod
    def get_ui_field_behaviour() -> dict[str, Any]:
        """Names and examples of the other fields there; Airflow 3 reads the provider info."""
        return {"hidden_fields": list(HIDDEN_FIELDS), "relabeling": RELABELING, "placeholders": PLACEHOLDERS}

    def __init__(self, hive_acid_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.hive_acid_conn_id = hive_acid_conn_id

    def endpoint(self) -> MetastoreEndpoint:
        """Where the metastore is and how to talk to it.

        :raises ConfigurationError: a connection does not exist; the metastore's names no host, or an address or
            other field that cannot be used, or the one that its S3 options name holds no key.
        """
        connection = self._found(self.hive_acid_conn_id, f"make one of type {self.hook_name}")
        database_id = connection.extra_dejson.get("metastore_db_conn_id")
        endpoint = endpoint_of(connection, self._database_connection(database_id) if database_id else None)
        s3 = endpoint.storages.of(S3Options)
        if s3.connection_id is None:
            return endpoint
        key = s3_credentials(self._found(s3.connection_id, "make it, or take connection_id out of the S3 options"))
        return replace(endpoint, storages=endpoint.storages.using(replace(s3, credentials=key)))

    def _database_connection(self, conn_id: object) -> Connection:
        return self._found(str(conn_id), "make it, or correct metastore_db_conn_id in the hive_acid connection's extra")

    def _found(self, conn_id: str, remedy: str) -> Connection:
        try:
            return self.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise ConfigurationError(f"connection {conn_id}", "does not exist", remedy) from error

    def get_conn(self) -> AcidMetastoreClient:
        """A client for the calling thread; a context manager that closes its connection."""
        return self.endpoint().open()

    def test_connection(self) -> tuple[bool, str]:
        """Ask the metastore what it can do, for the button of the connection form."""
        try:
            endpoint = self.endpoint()
            with endpoint.open() as client:
                hive = client.probe()
                endpoint.open_queue(client)
            missing = [] if endpoint.database is None else missing_rights(endpoint.database)
        except AcidError as error:
            return False, str(error)
        if missing:
            return False, (
                f"Hive metastore {hive.version} answers, but the login of its database lacks rights: "
                f"{'; '.join(missing)}. Remedy: run docs/grants-postgresql.sql or docs/grants-mysql.sql for it."
            )
        how = "" if endpoint.database is None else ", and so does its database"
        return True, f"Hive metastore {hive.version} answers{how} and can be used"


def endpoint_of(connection: Connection, database: Connection | None = None) -> MetastoreEndpoint:
    """The endpoint that Airflow connections describe; errors as for :meth:`AcidMetastoreHook.endpoint`.

    :param database: to the metastore's own database.
    """
    extra = ConnectionExtra.of(connection)
    addresses = _addresses(extra.subject, connection.host or "", connection.port or DEFAULT_PORT)
    return MetastoreEndpoint(
        tuple(addresses),
        _timeout_seconds(extra),
        extra.text("user"),
        None if database is None else database_url(database),
        extra.flag("housekeeping_elsewhere"),
        _storages(extra.values.get("storage")),
        extra.access(),
    )


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
