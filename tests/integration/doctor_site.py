"""What the doctor's checks see of a real metastore, and faults that several tests plant there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.doctor.diagnosis import CHECKS
from airflow_provider_acid.doctor.finding import Finding
from airflow_provider_acid.doctor.sightings import Sightings
from airflow_provider_acid.doctor.site import Site as Looked
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.extra import ConnectionExtra
from tests.integration.compaction_site import AcidTable, Site

DAY_MS = 86_400_000
DELTA_NUM = "compactorthreshold.hive.compactor.delta.num.threshold"


def inserts(site: Site, name: str = "t", **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(3):
        table.insert(value)
    return table


def failing(site: Site) -> None:
    table = inserts(site)
    for number in range(2):
        site.worker().abandon(site.begin(table.entity(), f"task {number}"), "no disk")


def answers(site: Site, check: str, later_ms: int = 0, health: Path | None = None) -> list[Finding]:
    (named,) = [one for one in CHECKS if one.name == check]
    return list(named.findings(looked_at(site, later_ms, health)))


def looked_at(site: Site, later_ms: int = 0, health: Path | None = None) -> Looked:
    """What checks see so much later.

    :param health: where the health store is.
    """
    url = site.server.database_url
    hosts = f"{site.server.host}:{site.server.port}"
    extra = ConnectionExtra.checked("test", {})
    endpoint = MetastoreEndpoint.of(extra, hosts, database_url=None if url is None else make_url(url))
    now_ms = site.client.server_now_ms()
    selection = TableSelection.of([f"{site.database}.*"])
    sightings = Sightings()
    evaluation = Initiator(site.client, site.queue, site.settings, observer=sightings).evaluate(selection)
    return Looked(
        endpoint,
        site.client,
        site.queue,
        site.settings,
        selection,
        now_ms + later_ms,
        now_ms,
        evaluation,
        sightings,
        None if health is None else f"file:{health}",
    )
