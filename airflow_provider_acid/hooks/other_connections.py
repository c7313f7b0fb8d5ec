"""The other Airflow connections that one to a metastore names: to its database, and with a key to an S3 store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.engine import URL

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.storages.s3.options import S3Credentials

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


_ELSEWHERE = ("role_arn", "profile_name", "credential_process")
"""What Amazon's own connections may say in extra about keys that are found out by other means."""


def s3_credentials(connection: Connection) -> S3Credentials:
    """The key in a connection of type ``aws``: access key as login, secret key as password, and in extra perhaps
    ``aws_session_token``.

    :raises ConfigurationError: it holds no key.
    """
    extra = connection.extra_dejson
    subject = f"connection {connection.conn_id}"
    access_key, secret_key = connection.login, connection.password
    if not access_key or not secret_key:
        named = next((name for name in _ELSEWHERE if extra.get(name)), None)
        reason = "holds no access key and secret key" + (f", but {named}, which is not followed" if named else "")
        raise ConfigurationError(
            subject,
            reason,
            "enter them as login and password, or take connection_id out of the S3 options: then the machine's own "
            "profile or role is used",
        )
    token = extra.get("aws_session_token")
    return S3Credentials(access_key, secret_key, str(token) if token else None)
