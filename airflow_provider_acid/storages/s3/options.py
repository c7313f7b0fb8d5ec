"""How an S3 store is reached, and by whom: the one travels to Spark's executors in plain JSON, the other never does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import urlsplit

from airflow_provider_acid.exceptions import ConfigurationError

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@dataclass(frozen=True)
class S3Options:
    """How one S3 store is reached. Nothing here is secret but the credentials, which stay in this process.

    :param endpoint: URL of a store that is not Amazon's, ``https://minio.example.com:9000``; None for Amazon, or for
        what AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL name in the environment.
    :param region: of the buckets; None for what AWS's own settings say.
    :param path_style: whether buckets are part of the path and not of the host's name; None for yes with an endpoint.
    :param ca_file: PEM file with the certificates to trust; None for the usual ones.
    :param connection_id: Airflow connection with the credentials, used in Airflow's processes only; None for AWS's own
        chain (environment, profile, role of the machine), which Spark's driver and executors always use.
    :param temporary_directory: where a file is kept until it is uploaded, one per task; None for the system's.
    :param timeout_seconds: longest wait for a part of a server's answer.
    :param credentials: a key for it; None for AWS's own chain.
    """

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    ca_file: str | None = None
    connection_id: str | None = None
    temporary_directory: str | None = None
    timeout_seconds: float = 60.0
    credentials: S3Credentials | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the values.

        :raises ConfigurationError: one cannot be used.
        """
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        if self.timeout_seconds <= 0:
            raise _wrong("timeout_seconds", f"is {self.timeout_seconds:g}", "use a number above 0")

    @property
    def endpoint_url(self) -> str | None:
        """The endpoint, also where the environment names it; None for Amazon."""
        named = self.endpoint or next((os.environ[name] for name in _ENDPOINT_VARIABLES if os.environ.get(name)), None)
        return None if named is None else named.rstrip("/")

    @property
    def uses_path_style(self) -> bool:
        """Whether buckets are part of the path."""
        return self.endpoint_url is not None if self.path_style is None else self.path_style

    def to_json(self) -> dict[str, object]:
        """A JSON object; what has its default is left out, and so is the key."""
        values = {name: getattr(self, name) for name in _KINDS}
        return {name: value for name, value in values.items() if value != getattr(S3Options, name)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> S3Options:
        """Options from a JSON object, as :meth:`to_json` or a person writes them.

        :raises ConfigurationError: a name is unknown, or a value has the wrong type or cannot be used.
        """
        for name, value in data.items():
            if name not in _KINDS:
                raise _wrong(name, "is unknown", f"use {', '.join(sorted(_KINDS))}")
            expected, types = _KINDS[name]
            if not isinstance(value, types) or (isinstance(value, bool) and name != "path_style"):
                raise _wrong(name, "has the wrong type", f"use {expected}")
        values: dict[str, Any] = dict(data)
        return cls(**values)


@dataclass(frozen=True)
class S3Credentials:
    """A key that a person or a hook handed in; never printed, and never sent to another process.

    :param access_key: its public part.
    :param secret_key: its secret part.
    :param session_token: of temporary keys.
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def __reduce__(self) -> NoReturn:
        """Refuse: what is pickled travels in Spark's closures, and lies in its logs and temporary files."""
        raise ConfigurationError(
            "S3 credentials",
            "are not sent to other processes",
            "give the Spark executors credentials of their own, by the environment, a profile or a role",
        )


_TEXT: tuple[str, tuple[type, ...]] = ("a string", (str, type(None)))
_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "endpoint": _TEXT,
    "region": _TEXT,
    "path_style": ("true or false", (bool, type(None))),
    "ca_file": _TEXT,
    "connection_id": _TEXT,
    "temporary_directory": _TEXT,
    "timeout_seconds": ("a number", (int, float)),
}


def _check_endpoint(endpoint: str) -> None:
    remedy = "use http://host:port or https://host:port"
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        raise _wrong("endpoint", "is not a URL", remedy) from None
    if parts.username is not None or parts.password is not None:
        raise _wrong("endpoint", "holds credentials", f"{remedy}; credentials belong into the Airflow connection")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise _wrong("endpoint", "is not the URL of a server", remedy)


def _wrong(name: str, reason: str, remedy: str) -> ConfigurationError:
    """Without the value: somebody may have put a secret into the wrong place."""
    return ConfigurationError(f"S3 option {name}", reason, remedy)
