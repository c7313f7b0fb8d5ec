"""The Airflow connection to a Hive metastore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transport import DEFAULT_PORT, MetastoreAddress

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection


@dataclass(frozen=True)
class MetastoreEndpoint:
    """All that is needed to open a client, without Airflow: what threads and triggers carry around."""

    addresses: tuple[MetastoreAddress, ...]
    timeout_seconds: float
    user: str | None

    def open(self) -> AcidMetastoreClient:
        """A client for the calling thread; nothing is sent yet."""
        return AcidMetastoreClient(self.addresses, timeout_seconds=self.timeout_seconds, user=self.user)


class AcidMetastoreHook(BaseHook):
    """Opens clients of a Hive metastore.

    :param hive_acid_conn_id: a connection of type ``hive_acid``: host (several, separated by commas, each with an
        optional ``:port``, for failover), port, and in extra ``timeout_seconds``, ``user`` and
        ``metastore_db_conn_id``.
    """

    conn_name_attr = "hive_acid_conn_id"
    default_conn_name = "hive_acid_default"
    conn_type = "hive_acid"
    hook_name = "Hive ACID metastore"

    def __init__(self, hive_acid_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.hive_acid_conn_id = hive_acid_conn_id

    def endpoint(self) -> MetastoreEndpoint:
        """Where the metastore is and how to talk to it.

        :raises ConfigurationError: the connection names no host, or a port or time-out that is no number.
        """
        return endpoint_of(self.get_connection(self.hive_acid_conn_id))

    def get_conn(self) -> AcidMetastoreClient:
        """A client for the calling thread; a context manager that closes its connection."""
        return self.endpoint().open()

    def test_connection(self) -> tuple[bool, str]:
        """Ask the metastore what it can do, for the button of the connection form."""
        try:
            with self.get_conn() as client:
                facts = client.probe()
        except AcidError as error:
            return False, str(error)
        if not facts.supports_thrift_queue:
            return False, (
                f"Metastore {facts.version} answers, but cannot keep its compaction queue over Thrift (Hive 4 can). "
                "Remedy: use a Hive 4 metastore, or wait for a release that works on the database of Hive 3.1."
            )
        return True, f"Hive metastore {facts.version} answers and can be used"


def endpoint_of(connection: Connection) -> MetastoreEndpoint:
    """The endpoint that an Airflow connection describes; errors as for :meth:`AcidMetastoreHook.endpoint`."""
    extra = connection.extra_dejson
    subject = f"connection {connection.conn_id}"
    addresses = _addresses(subject, connection.host or "", connection.port or DEFAULT_PORT)
    try:
        timeout_seconds = float(extra.get("timeout_seconds") or 60)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(subject, "timeout_seconds is no number", "give seconds, e.g. 60") from error
    return MetastoreEndpoint(tuple(addresses), timeout_seconds, extra.get("user") or None)


def _addresses(subject: str, hosts: str, default_port: int) -> Sequence[MetastoreAddress]:
    addresses: list[MetastoreAddress] = []
    for text in filter(None, (part.strip() for part in hosts.split(","))):
        host, _, port = text.partition(":")
        if port and not port.isdigit():
            raise ConfigurationError(subject, f"the port in {text!r} is no number", "write host or host:port")
        addresses.append(MetastoreAddress(host, int(port) if port else default_port))
    if not addresses:
        raise ConfigurationError(subject, "names no host", "enter the metastore's host name")
    return addresses
