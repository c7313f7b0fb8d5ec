"""This project's compactor, as it is set upon tables of either version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness.hive_engine import HiveEngine
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_site import Site

SETTINGS = CompactionSettings(
    thresholds=Thresholds(delta_num_threshold=1),
    minor_pairs_on_hive_3=True,  # Otherwise such minors are majors there, and Hive 3 would read no minor of both kinds.
)


@dataclass(frozen=True)
class Compacted:
    """What became of one partition.

    :param targets: the directories that were made; none where there was nothing to merge.
    """

    entity: Entity
    targets: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Compactor:
    """Worker, queue and Cleaner on the engine's own metastore; one partition at a time."""

    site: Site

    def compact(self, entity: Entity, kind: CompactionType) -> Compacted:
        """Merges and publishes; nothing is deleted."""
        outcome = self.site.compact(DuePartition(entity, kind, "the judge wants to see it"))
        assert outcome.state in (OutcomeState.COMPACTED, OutcomeState.NOTHING_TO_MERGE), outcome
        return Compacted(entity, outcome.targets, outcome.message)

    def clean(self, entity: Entity) -> None:
        """Deletes what the compaction replaced."""
        for cleaning in self.site.clean(entity):
            assert cleaning.state is CleaningState.CLEANED, cleaning


@contextmanager
def compactor_for(hive: HiveEngine, database: str, settings: CompactionSettings = SETTINGS) -> Iterator[Compactor]:
    """The compactor that works on a database of an engine."""
    server = hive.metastore
    hive_database = None if server.database_url is None else MetastoreDatabase(server.database_url)
    addresses = [MetastoreAddress(server.host, server.port)]
    with ThriftAdmin(server.host, server.port) as admin, AcidMetastoreClient(addresses, user="judge") as client:
        yield Compactor(Site(server, admin, client, database, settings, hive_database=hive_database))
