"""What the page says of the queue and of a cleaning that waits, on both metastores."""

from __future__ import annotations

import getpass

from airflow_provider_acid.health.metastore_view import cleaning_view, queue_view
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site


def inserts(site: Site, name: str) -> AcidTable:
    table = site.table(name)
    for value in range(3):
        table.insert(value)
    return table


@ON_BOTH_METASTORES
def test_the_page_names_the_reader_that_a_cleaning_waits_for(site: Site) -> None:
    table = inserts(site, "read")
    assert cleaning_view(site.client, site.queue, table.entity()).rows == []
    reader = site.reader(table)
    compacted = site.compact(table.entity())

    view = cleaning_view(site.client, site.queue, table.entity())

    ((row_id, state, commit_ms),) = [(row["id"], row["state"], row["commit_ms"]) for row in view.rows]
    assert (row_id, state) == (compacted.request_id, "ready for cleaning")
    assert isinstance(commit_ms, int)
    by_kind = {blocker.kind: blocker for blocker in view.blockers}
    assert by_kind.keys() == {"transaction", "lock"}
    assert by_kind["transaction"].id == reader
    assert by_kind["lock"].description == f"SHARED_READ, acquired, transaction {reader}"
    assert {blocker.user for blocker in view.blockers} == {getpass.getuser()}
    assert queue_view(site.queue, keep_seconds=0.0).oldest_cleaning_ms is not None

    site.end(reader, site.admin.commit)
    assert cleaning_view(site.client, site.queue, table.entity()).blockers == []
    site.clean(table.entity())
    (row,) = cleaning_view(site.client, site.queue, table.entity()).rows
    assert row["state"] == "succeeded"


@ON_BOTH_METASTORES
def test_the_page_shows_requests_of_others_that_wait_and_on_hive_4_since_when(site: Site) -> None:
    table = inserts(site, "asked")
    request = site.client.compact(table.entity(), CompactionType.MAJOR)
    (row,) = cleaning_view(site.client, site.queue, table.entity()).rows
    assert (row["id"], row["state"]) == (request.id, "initiated")
    assert (row["enqueue_ms"] is None) == site.renames_publish, "Hive 3.1 does not keep when it was made"
    assert queue_view(site.queue, keep_seconds=0.0).states["initiated"] >= 1
