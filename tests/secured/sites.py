"""A database in a metastore that speaks more than plain Thrift, and the whole chain of a compaction there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.harness.metastore_server import MetastoreServer
from tests.harness.plain_job import run_plainly
from tests.harness.server_admin import admin_of
from tests.integration.compaction_site import AcidTable, Site

_NUMBERS = count(1)


@contextmanager
def site_over(client: AcidMetastoreClient, server: MetastoreServer) -> Iterator[Site]:
    """A new database, worked on by a client."""
    with admin_of(server) as admin, client:
        database = f"secured{next(_NUMBERS)}"
        admin.create_database(database)
        url = server.database_url
        site = Site(server, admin, client, database, hive_database=None if url is None else MetastoreDatabase(url))
        yield site
        site.close()


def run_the_chain(site: Site) -> None:
    """Inserts into a partition, begin, merge, publish, clean."""
    table = site.table(partitions=["p=1"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=1")
    compacted = site.compact(table.entity("p=1"))
    assert compacted.state is OutcomeState.COMPACTED, compacted
    [cleaned] = site.clean(table.entity("p=1"))
    assert cleaned.state is CleaningState.CLEANED, cleaned
    assert table.directories("p=1") == [compacted.targets[0]]
    assert table.values() == [1, 2, 3]


def end_the_chain(table: AcidTable, active: ActiveCompaction, values: list[int]) -> None:
    """Merges, publishes and cleans what was begun for a whole table, which has these values then."""
    outcome = table.site.worker().finish(active, run_plainly(active.plan))
    assert isinstance(outcome, Outcome)
    assert outcome.state is OutcomeState.COMPACTED
    assert table.site.clean(table.entity())[0].state is CleaningState.CLEANED
    assert table.values() == values
