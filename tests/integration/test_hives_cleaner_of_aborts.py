"""Hive 4's Cleaner looks after aborted writes by itself: what it deletes then, and the setting that forbids it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.hive4.server_check import cleans_aborts
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import wait_until
from tests.harness.hive_engine_program import HIVE_4_2, engine_program, later_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.conftest import make_site
from tests.integration.test_rivals_meanwhile import Rival


@pytest.fixture
def told_site(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Site]:
    """A Hive 4.2.1 whose Cleaner is on, and leaves aborted writes to compactions."""
    program = later_metastore_program(engine_program(HIVE_4_2, tmp_path_factory.mktemp("hive-program")))
    database = ServerDatabase(postgres, "hive_4.2.1_without_cleaner_of_aborts")
    server = MetastoreServer.with_its_threads(tmp_path_factory.mktemp("metastore"), program, database)
    server.cleans_aborts = False
    with server:
        yield from make_site(server)


def replaced_beside_a_reader(site: Site) -> AcidTable:
    """A compacted partition with a write that was aborted yesterday, and a reader who began before the compaction."""
    table = site.table(partitions=["p=a"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    aborted = table.write("p=a").insert(4).abort()
    site.reader(table, "p=a")
    assert site.compact(table.entity("p=a")).state is OutcomeState.COMPACTED
    site.server.server_database.query(f'UPDATE "TXNS" SET "TXN_STARTED" = 1000 WHERE "TXN_ID" = {aborted.txn}')
    return table


def let_it_clean(table: AcidTable) -> None:
    """A compaction of Hive's own, which its Cleaner cleans."""
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    rival = Rival.begin(table, CompactionType.MINOR, "p=a", 3)
    rival.finish(1, 2, 3)
    wait_until(lambda: table.site.row(rival.claimed.id).state is CompactionState.SUCCEEDED)


def sources(table: AcidTable) -> list[str]:
    return [name for name in table.visible("p=a") if name.startswith("delta_")]


@pytest.mark.parametrize("site", ["hive_4_1", "hive_4_2"], indirect=True)
def test_by_default_it_deletes_what_a_reader_still_needs_and_we_know_of_it(site: Site) -> None:
    """Where a version stops doing so, the warning can go."""
    assert cleans_aborts(site.client)
    table = replaced_beside_a_reader(site)
    wait_until(lambda: not sources(table))
    assert table.values() == [1, 2, 3], "whoever begins now reads the base"


def test_told_to_leave_aborted_writes_alone_it_deletes_nothing(told_site: Site) -> None:
    assert not cleans_aborts(told_site.client)
    table = replaced_beside_a_reader(told_site)
    # What it would do by itself comes last in each of its rounds, so the first of these may belong to one begun before.
    for name in ("cleaned_first", "cleaned_next"):
        let_it_clean(told_site.table(name, partitions=["p=a"]))
    assert len(sources(table)) == 4
