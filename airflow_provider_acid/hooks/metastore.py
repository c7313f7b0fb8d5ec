"""The Airflow connection to a Hive metastore."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_acid.doctor.diagnosis import quick_look
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.hooks.connection_form import (
    CONNECTION_TYPE,
    HIDDEN_FIELDS,
    PLACEHOLDERS,
    RELABELING,
    airflow_2_widgets,
)
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.hooks.other_connections import database_url, s3_credentials
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import DEFAULT_PORT
from airflow_provider_acid.storages.s3.options import S3Options

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection


TEST_CALL_SECONDS = 10.0
"""That the form's test waits for one call."""


class AcidMetastoreHook(BaseHook):
    """Opens clients of a Hive metastore.

    :param hive_acid_conn_id: a connection of type ``hive_acid``: host (several, separated by commas, each with an
        optional ``:port``, for failover), port, and in extra ``timeout_seconds``, ``user``, ``metastore_db_conn_id``
        (the id of a connection to the metastore's own database), ``housekeeping_elsewhere``, ``storage`` (see
        ``docs/storage.md``), and what ``docs/security.md`` says of TLS, Kerberos and HTTP. Login and password are for a
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
        """What the doctor finds without looking at any table, within about half a minute; for the connection form."""
        try:
            endpoint = self.endpoint()
            hasty = replace(
                endpoint,
                timeout_seconds=min(endpoint.timeout_seconds, TEST_CALL_SECONDS),
                database_patience_seconds=TEST_CALL_SECONDS,
            )
            findings = quick_look(hasty)
        except AcidError as error:
            return False, str(error)
        problems, warnings = (
            " ".join(
                f"{finding.seen}. Remedy: {finding.remedy}." for finding in findings if finding.severity is severity
            )
            for severity in (Severity.PROBLEM, Severity.WARNING)
        )
        if problems:
            return False, problems
        how = "" if endpoint.database_url is None else ", and so does its database"
        return True, f"{findings[0].seen}{how} and can be used" + (f". Warning: {warnings}" if warnings else "")


def endpoint_of(connection: Connection, database: Connection | None = None) -> MetastoreEndpoint:
    """The endpoint that Airflow connections describe; errors as for :meth:`AcidMetastoreHook.endpoint`.

    :param database: to the metastore's own database.
    """
    extra = ConnectionExtra.of(connection)
    url = None if database is None else database_url(database)
    return MetastoreEndpoint.of(extra, connection.host or "", connection.port or DEFAULT_PORT, url)
