"""Where the page's application gets what it shows, by Airflow's configuration and connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

DEFAULT_METASTORE = AcidMetastoreHook.default_conn_name

QUEUE_TIMEOUT_SECONDS = 15.0
"""Longest wait for one answer of the metastore; people wait for the page."""


class Backends:
    """What is known of partitions, and the metastores behind Airflow's connections."""

    def __init__(self) -> None:
        self._readers: dict[str, HealthReader] = {}

    def reader(self) -> HealthReader | None:
        """The reader of ``[hive_acid] health_location``; None where it is not set."""
        location = option("health_location")
        if not location:
            return None
        return self._readers.setdefault(location, HealthReader(lambda: _open(location)))

    def keep_replaced_seconds(self) -> float:
        """How long what a compaction replaced is kept for an undo; 0: not at all."""
        return configured_settings().keep_replaced_seconds

    @contextmanager
    def metastore(self, conn_id: str) -> Iterator[tuple[AcidMetastoreClient, CompactionQueue]]:
        """A metastore and its queue, for the calling thread.

        :raises AcidError: it does not answer, or the connection cannot be used.
        """
        endpoint = AcidMetastoreHook(conn_id).endpoint()
        seconds = min(endpoint.timeout_seconds, QUEUE_TIMEOUT_SECONDS)
        with replace(endpoint, timeout_seconds=seconds).connect() as connected:
            yield connected


def _open(location: str) -> Storage:
    if location.startswith(("/", "file:")):
        return Storages().open(location)
    return AcidMetastoreHook(DEFAULT_METASTORE).endpoint().storages.open(location)
