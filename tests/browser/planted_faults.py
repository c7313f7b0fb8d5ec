"""Twelve faults of a site that the doctor names, planted in a real metastore and mended as he says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import STAGING_PREFIX
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.doctor_site import DELTA_NUM
from tests.integration.twin_tables import make_twins

DATABASE = "attic"
MISSPELT = "sails.*"
CHECKS = {
    "dead transactions are aborted": "warning",
    "oldest transaction": "problem",
    "dead clients": "problem",
    "waiting requests": "warning",
    "silent claims": "problem",
    "repeated failures": "problem",
    "tables that cannot be compacted": "problem",
    "table patterns": "warning",
    "run directory": "problem",
    "remains of dead compactions": "warning",
    "twin results": "problem",
    "tables that nobody compacts": "note",
}
"""The checks that name them, and how bad each is."""

TWO_DAYS_MS = 2 * 86_400_000
REAPING_SECONDS = 60


class PlantedFaults:
    """What is wrong with a site: a metastore without housekeeping, on a database server, and its user's home.

    :param patterns: with which the doctor is asked.
    """

    def __init__(self, server: MetastoreServer, home: Path) -> None:
        self._server = server
        self._runs = home / ".airflow_acid"
        self.patterns: tuple[str, ...] = (f"{DATABASE}.*", MISSPELT)

    def plant(self) -> None:
        """Make them."""
        assert not self._server.reaper
        with self._site() as site:
            make_twins(site)
            self._plant_claims(site)
            (_inserts(site, "odd").folder() / "delta_odd").mkdir()
            (_inserts(site, "left").folder() / f"{STAGING_PREFIX}0123456789abcdef").mkdir()
            _inserts(site, "alone", {"no_auto_compaction": "true", DELTA_NUM: "1"})
            assert site.client.compact(_inserts(site, "asked").entity(), CompactionType.MAJOR).accepted
            site.reader(_inserts(site, "read"))
            self._age(site)
            # It stays open, as that of a client who died.
            site.open_txns.clear()
        self._runs.mkdir()
        self._runs.chmod(0o777)

    def mend(self) -> None:
        """What the doctor's remedies say."""
        self._server.reaper = True
        self._server.restart()
        with self._site() as site:
            self._wait_until_dead_clients_are_aborted(site)
            self._keep_house(site)
            site.withdraw_requests()
            failed = AcidTable(site, "failing", site.admin.table_location(DATABASE, "failing"))
            assert site.compact(failed.entity()).state is OutcomeState.COMPACTED
            (site.admin.table_location(DATABASE, "odd") / "delta_odd").rmdir()
            site.admin.set_table_properties(DATABASE, "alone", {"no_auto_compaction": "false", DELTA_NUM: "10"})
        self._runs.chmod(0o700)
        self.patterns = (f"{DATABASE}.*",)

    def _plant_claims(self, site: Site) -> None:
        failing = _inserts(site, "failing")
        for number in range(2):
            site.worker().abandon(site.begin(failing.entity(), f"task {number}"), "no disk")
        site.begin(_inserts(site, "claimed").entity())

    def _age(self, site: Site) -> None:
        """All that is open and waits was begun two days ago."""
        query = self._server.server_database.query
        query(
            f"""UPDATE "TXNS" SET "TXN_STARTED" = "TXN_STARTED" - {TWO_DAYS_MS},"""
            f""" "TXN_LAST_HEARTBEAT" = "TXN_LAST_HEARTBEAT" - {TWO_DAYS_MS} WHERE "TXN_STATE" = 'o'"""
        )
        query(
            f"""UPDATE "COMPACTION_QUEUE" SET "CQ_ENQUEUE_TIME" = "CQ_ENQUEUE_TIME" - {TWO_DAYS_MS},"""
            f""" "CQ_START" = "CQ_START" - {TWO_DAYS_MS} WHERE "CQ_STATE" IN ('i', 'w')"""
        )

    def _wait_until_dead_clients_are_aborted(self, site: Site) -> None:
        """Which the metastore does by itself now."""
        deadline = time.monotonic() + REAPING_SECONDS
        while left := site.client.open_transactions().open:
            assert time.monotonic() < deadline, f"transactions {left} are still open"
            time.sleep(0.2)

    def _keep_house(self, site: Site) -> None:
        settings = replace(site.settings, minor_lock_wait_seconds=2.0)
        keeper = Housekeeper(
            site.client, site.queue, settings, forgotten_seconds=0, max_partitions=10, repair_twins=True
        )
        keeper.sweep(TableSelection.of([f"{DATABASE}.*"]))

    @contextmanager
    def _site(self) -> Iterator[Site]:
        server = self._server
        addresses = [MetastoreAddress(server.host, server.port)]
        with ThriftAdmin(server.host, server.port) as admin, AcidMetastoreClient(addresses, user="admin") as client:
            admin.create_database(DATABASE)
            url = server.server_database.url
            yield Site(server, admin, client, DATABASE, hive_database=MetastoreDatabase(url))


def _inserts(site: Site, name: str, properties: dict[str, str] | None = None) -> AcidTable:
    table = site.table(name, properties=properties or {})
    for value in range(3):
        table.insert(value)
    return table
