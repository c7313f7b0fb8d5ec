"""The Airflow connection with a key to an S3 store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.storages.s3.options import S3Credentials

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

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
