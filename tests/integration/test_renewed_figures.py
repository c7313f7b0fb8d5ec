"""What the page says of a partition after each step of its compaction, on both metastores."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.looking_again import look_again
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.metastore_view import requests_of
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recording import record_renewed
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site

PARTITIONS = [None, "p=x", "p=a%2Fb"]
Figures = tuple[object, int, bool, bool]


def figures(site: Site, table: AcidTable, partition: str | None, folder: Path) -> Figures:
    """Looked at now: state, deltas, whether it has a base, whether there is anything to clean."""
    queue = site.queue

    def look(observer: EvaluationObserver) -> None:
        with site.client.for_another_thread() as client:
            look_again(client, queue, site.settings, [table.entity(partition)], observer)

    record_renewed(str(folder / "health"), "m", Storages(), look)
    reader = HealthReader(lambda: Storages().open(str(folder / "health")))
    (row,) = reader.health().partitions.to_pylist()
    return (row["state"], row["deltas"], row["base_bytes"] > 0, row["obsolete_bytes"] > 0)


@ON_BOTH_METASTORES
@pytest.mark.parametrize("partition", PARTITIONS)
def test_from_due_over_published_to_cleaned_the_figures_and_the_queue_are_those_of_the_moment(
    site: Site, partition: str | None, tmp_path: Path
) -> None:
    table = site.table(partitions=[partition] if partition else [])
    for value in range(3):
        table.insert(value, partition=partition)
    entity = table.entity(partition)
    assert figures(site, table, partition, tmp_path) == ("due_major", 3, False, False)
    states: list[object] = []

    def what_the_queue_says(*_: object) -> None:
        states.extend(request["state"] for request in requests_of(site.queue, [entity]))

    what_the_queue_says()
    site.compact(entity, on_step=what_the_queue_says)
    assert figures(site, table, partition, tmp_path) == ("healthy", 0, True, True)
    what_the_queue_says()
    site.clean(entity)
    assert figures(site, table, partition, tmp_path) == ("healthy", 0, True, False)
    what_the_queue_says()
    assert list(dict.fromkeys(states)) == ["initiated", "working", "ready for cleaning"]
