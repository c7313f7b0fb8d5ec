"""What checks look at: a metastore, its queue, and its database where that is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.evaluate.table_listing import RowsByEntity, rows_by_entity
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.doctor.sightings import Sightings
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionRow, LockInfo, TxnInfo
from airflow_provider_acid.storages.paths import split_location


class Endpoint(Protocol):
    """How a metastore is reached: a :class:`~..hooks.endpoint.MetastoreEndpoint`."""

    @property
    def addresses(self) -> tuple[MetastoreAddress, ...]:
        """Metastores of one and the same database, in order of preference."""

    @property
    def database(self) -> MetastoreDatabase | None:
        """The metastore's own; None where none is configured.

        :raises ConfigurationError: its driver is not installed, or it is of a kind that Hive has no schema for.
        """

    @property
    def housekeeping_elsewhere(self) -> bool:
        """Whether another instance of the same metastore aborts dead transactions."""

    def open(self) -> AcidMetastoreClient:
        """A client for the calling thread; nothing is sent yet."""

    def open_at(self, address: MetastoreAddress) -> AcidMetastoreClient:
        """The same for one of the addresses alone."""

    def check(self, client: AcidMetastoreClient) -> Hive:
        """What the metastore can do; errors as for :func:`~..metastore.queues.open_queue`."""


@dataclass(frozen=True)
class Site:
    """A metastore that answers and is one that can be worked with; each thing is asked for once.

    :param own_now_ms: this machine's clock at the time of the metastore's, in milliseconds since 1970.
    :param evaluation: what a sensor would find.
    :param sightings: what the listings of that evaluation showed besides.
    :param health_location: URI of the health store; None where there is none, or nobody said where.
    """

    endpoint: Endpoint
    client: AcidMetastoreClient
    queue: CompactionQueue
    settings: CompactionSettings
    selection: TableSelection
    now_ms: int
    own_now_ms: int
    evaluation: Evaluation
    sightings: Sightings = field(default_factory=Sightings)
    health_location: str | None = None

    @property
    def database(self) -> MetastoreDatabase | None:
        """The metastore's; None where it is not at hand."""
        return self.endpoint.database

    @cached_property
    def transactions(self) -> Sequence[TxnInfo]:
        """Open and aborted ones."""
        return self.client.transactions()

    @cached_property
    def rows_by_entity(self) -> RowsByEntity:
        """The queue and its history, of the tables that are looked at."""
        return rows_by_entity(self.queue.rows(), self.selection)

    @property
    def rows(self) -> Sequence[CompactionRow]:
        """The same, partition after partition."""
        return [row for of_entity in self.rows_by_entity.values() for row in of_entity]

    @cached_property
    def locks(self) -> Sequence[LockInfo]:
        """Held and waited for."""
        return self.client.show_locks()

    @property
    def location_per_store(self) -> Sequence[str]:
        """Of the first table on each store that has one."""
        stores = {split_location(place)[:2]: place for _, place in sorted(self.sightings.locations.items())[::-1]}
        return list(stores.values())

    def run_place(self, table_location: str) -> RunPlace:
        """Where a batch that begins with this table has its plans and results; errors as for :meth:`.RunPlace.of`."""
        return RunPlace.of(self.settings.storages, self.settings.run_directory, table_location)

    def setting(self, name: str) -> str:
        """A setting of the server; empty where it has none of that name."""
        return self.client.config_value(name).strip()

    def is_on(self, name: str) -> bool:
        """Whether a setting of the server is true."""
        return self.setting(name).lower() == "true"

    def age_seconds(self, since_ms: int) -> float:
        """How long ago that was by the metastore's clock."""
        return (self.now_ms - since_ms) / 1000
