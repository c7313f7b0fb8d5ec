"""The Airflow connection to a metastore's own database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.engine import URL

from airflow_provider_acid.exceptions import ConfigurationError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

_DRIVERS = {
    "postgres": "postgresql+psycopg2",
    "postgresql": "postgresql+psycopg2",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
"""By type of the connection; another one is named by ``sqlalchemy_scheme`` in extra."""

_DRIVER_OPTIONS = frozenset(
    {
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "options", "connect_timeout", "application_name"),
        *("ssl_ca", "ssl_cert", "ssl_key", "ssl_check_hostname", "charset", "unix_socket"),
    }
)
"""What may lie in extra for the driver; Airflow's own hooks keep more there."""


def database_url(connection: Connection) -> URL:
    """The SQLAlchemy URL of a connection.

    :raises ConfigurationError: it is of a kind that Hive has no schema for, or names no database.
    """
    extra = connection.extra_dejson
    subject = f"connection {connection.conn_id}"
    driver = extra.get("sqlalchemy_scheme") or _DRIVERS.get(connection.conn_type or "")
    if not driver:
        raise ConfigurationError(
            subject,
            f"is of type {connection.conn_type!r}",
            'write {"sqlalchemy_scheme": "postgresql+psycopg2"} into its extra, or "mysql+pymysql"',
        )
    if not connection.schema:
        raise ConfigurationError(subject, "names no database", "enter the database's name in the field for the schema")
    return URL.create(
        str(driver),
        username=connection.login or None,
        password=connection.password or None,
        host=connection.host or None,
        port=connection.port or None,
        database=connection.schema,
        query={name: str(value) for name, value in extra.items() if name in _DRIVER_OPTIONS},
    )
