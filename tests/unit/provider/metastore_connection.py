"""The connection to a metastore that tests write and read."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook

SetConnection = Callable[..., None]
"""Sets fields of the default connection; the fixture ``set_connection``."""


def endpoint() -> MetastoreEndpoint:
    """What the default connection describes."""
    return AcidMetastoreHook().endpoint()
