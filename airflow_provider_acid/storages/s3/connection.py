"""The two libraries that speak to one S3 store: Arrow lists and reads, boto3 makes conditional requests."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

from airflow_provider_acid.storages.s3.errors import boto3_is_missing
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options

if TYPE_CHECKING:
    from botocore.httpsession import URLLib3Session
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS = 10
ATTEMPTS = 4
POOL = 16
"""Connections kept open; so many requests run at once at most."""

_REGION = "us-east-1"
"""Of stores that know no regions."""


@dataclass(frozen=True)
class S3Connection:
    """One store, for as many locations and threads as there are.

    :param options: how it is reached.
    :param credentials: a key that was handed in; None for AWS's own chain.
    """

    options: S3Options
    credentials: S3Credentials | None

    @property
    def has_conditions(self) -> bool:
        """Whether conditional requests can be made at all."""
        return importlib.util.find_spec("boto3") is not None

    @cached_property
    def arrow(self) -> S3FileSystem:
        """The file system that lists, reads, and writes in one stroke."""
        endpoint = self.options.endpoint_url
        address = {} if endpoint is None else {"endpoint_override": urlsplit(endpoint).netloc}
        if endpoint is not None:
            address["scheme"] = urlsplit(endpoint).scheme
        settings: dict[str, Any] = {
            **address,
            "region": self._region,
            "access_key": self.credentials.access_key if self.credentials else None,
            "secret_key": self.credentials.secret_key if self.credentials else None,
            "session_token": self.credentials.session_token if self.credentials else None,
            "request_timeout": self.options.timeout_seconds,
            "connect_timeout": CONNECT_SECONDS,
            "force_virtual_addressing": endpoint is not None and not self.options.uses_path_style,
            # One write call then sends part after part from the caller's buffer, without copies of it.
            "background_writes": False,
            "allow_delayed_open": True,
        }
        if self.options.ca_file is not None:
            settings["tls_ca_file_path"] = self.options.ca_file
        return S3FileSystem(**settings)

    def boto(self, subject: str, doing: str) -> S3Client:
        """The client for conditional requests; it can be shared by threads.

        :param subject: what errors are about.
        :param doing: what boto3 is needed for.
        :raises ConfigurationError: boto3 is not installed.
        """
        if not self.has_conditions:
            raise boto3_is_missing(subject, doing)
        return self._client

    @cached_property
    def _client(self) -> S3Client:
        import boto3
        from botocore.config import Config

        endpoint, key = self.options.endpoint_url, self.credentials
        config = Config(
            # Signatures of version 2, the default for signed URLs, do not cover conditions.
            signature_version="s3v4",
            connect_timeout=CONNECT_SECONDS,
            read_timeout=self.options.timeout_seconds,
            retries={"mode": "standard", "max_attempts": ATTEMPTS},
            max_pool_connections=POOL,
            s3={"addressing_style": "path" if self.options.uses_path_style else "auto"},
            # Amazon's newer checksums are unknown to other stores.
            request_checksum_calculation="when_supported" if endpoint is None else "when_required",
            response_checksum_validation="when_supported" if endpoint is None else "when_required",
        )
        # A session of its own: the default one is not made for threads.
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=endpoint,
            region_name=self._region,
            verify=self.options.ca_file,
            aws_access_key_id=key.access_key if key else None,
            aws_secret_access_key=key.secret_key if key else None,
            aws_session_token=key.session_token if key else None,
            config=config,
        )
        return cast("S3Client", client)

    @cached_property
    def signed_session(self) -> URLLib3Session:
        """What sends requests that were signed before; as boto3 makes it, with the machine's proxies and certificates.

        The store closes none of its connections after a request, and to make one takes as long as a request.
        """
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        session: Any = URLLib3Session
        made: URLLib3Session = session(
            verify=self.options.ca_file or True,
            proxies=get_environ_proxies(self.options.endpoint_url or "https://s3.amazonaws.com"),
            timeout=(CONNECT_SECONDS, self.options.timeout_seconds),
            max_pool_connections=POOL,
        )
        return made

    @property
    def _region(self) -> str | None:
        named = self.options.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return named or (_REGION if self.options.endpoint_url is not None else None)


def connection(options: S3Options, credentials: S3Credentials | None) -> S3Connection:
    """The connection of this process to a store; made once, since a client takes longer than many requests."""
    return _connection(options, credentials, os.getpid())


@lru_cache(maxsize=16)
def _connection(options: S3Options, credentials: S3Credentials | None, process: int) -> S3Connection:
    return S3Connection(options, credentials)
