"""Rows of Hive 3.1.3 that wait to be cleaned: beside Hive's own Initiator and Cleaner, and from a task of Airflow."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException, TaskDeferred

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.triggers.cleaner import CleaningTrigger
from airflow_provider_acid.triggers.wait import WaitEvent
from tests.harness.airflow_connections import connections_to
from tests.integration.compaction_site import Site
from tests.integration.hive_3_cleaning import (
    clean,
    comes_true,
    compact,
    inserts,
    stored_state,
)

A_DAY_MS = 86_400_000


@pytest.fixture
def site(hive_3_site: Site) -> Site:
    return hive_3_site


@pytest.fixture(params=["hive_3_site", "hive_3_site_on_mariadb"])
def either_site(request: pytest.FixtureRequest) -> Site:
    """On PostgreSQL, and on MariaDB, which compares texts without case."""
    site: Site = request.getfixturevalue(request.param)
    return site


def test_hives_own_initiator_and_cleaner_leave_a_row_that_waits_alone(either_site: Site) -> None:
    site = either_site
    waiting, theirs, forgotten = inserts(site), site.table("theirs"), site.table("forgotten")
    reader = site.reader(waiting)
    compacted = compact(site, waiting.entity())
    before = waiting.fingerprint()
    theirs.insert(1)
    forgotten.insert(1)
    query = site.server.server_database.query
    ids = {table.name: site.client.compact(table.entity(), CompactionType.MAJOR).id for table in (theirs, forgotten)}
    now_ms = site.client.server_now_ms()
    query(f"UPDATE COMPACTION_QUEUE SET cq_state = 'r', cq_highest_write_id = 1 WHERE cq_id = {ids['theirs']}")
    query(
        f"UPDATE COMPACTION_QUEUE SET cq_state = 'w', cq_worker_id = 'somebody', cq_start = {now_ms - 2 * A_DAY_MS} "
        f"WHERE cq_id = {ids['forgotten']}"
    )

    assert comes_true(lambda: stored_state(site, ids["theirs"]) == "gone"), "Hive's Cleaner has looked at the queue"
    assert comes_true(lambda: stored_state(site, ids["forgotten"]) == "i"), "and so has Hive's Initiator"

    assert stored_state(site, compacted.request_id) == "w"
    assert waiting.fingerprint() == before
    query(f"DELETE FROM COMPACTION_QUEUE WHERE cq_id = {ids['forgotten']}")
    site.end(reader, site.admin.commit)
    assert clean(site, waiting).state is CleaningState.CLEANED


def test_each_look_keeps_the_claim_of_a_row_that_waits_from_being_taken_back(either_site: Site) -> None:
    site = either_site
    table = inserts(site)
    site.reader(table)
    compacted = compact(site, table.entity())
    query = site.server.server_database.query
    for look in (site.look, site.clean):
        old = site.client.server_now_ms() - A_DAY_MS // 2
        query(f"UPDATE COMPACTION_QUEUE SET cq_start = {old} WHERE cq_id = {compacted.request_id}")
        assert [cleaning.state for cleaning in look(table.entity())] == [CleaningState.WAITING]
        start_ms = site.row(compacted.request_id).start_ms
        assert start_ms is not None
        assert start_ms > old + A_DAY_MS // 4
        assert [cleaning.state for cleaning in look(table.entity())] == [CleaningState.WAITING]
        assert site.row(compacted.request_id).start_ms == start_ms, "a fresh claim is left as it is"


def test_a_row_that_hives_initiator_took_back_is_claimed_again_and_cleaned(site: Site) -> None:
    table = inserts(site)
    compacted = compact(site, table.entity())
    old = site.client.server_now_ms() - 2 * A_DAY_MS
    query = site.server.server_database.query
    query(f"UPDATE COMPACTION_QUEUE SET cq_start = {old} WHERE cq_id = {compacted.request_id}")
    assert comes_true(lambda: stored_state(site, compacted.request_id) == "i")
    assert clean(site, table).state is CleaningState.CLEANED
    assert table.directories() == ["base_0000003"]
    assert site.row(compacted.request_id).state is CompactionState.SUCCEEDED


@pytest.fixture
def connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in connections_to(site.server).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("connections")
def test_a_deferred_task_keeps_the_claim_while_it_waits_and_cleans_after_it(site: Site) -> None:
    table = inserts(site)
    reader = site.reader(table)
    compacted = compact(site, table.entity())
    operator = AcidCleanerOperator(task_id="clean", partitions=[asdict(table.entity())], deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, CleaningTrigger)
    old = site.client.server_now_ms() - A_DAY_MS // 2
    site.server.server_database.query(
        f"UPDATE COMPACTION_QUEUE SET cq_start = {old} WHERE cq_id = {compacted.request_id}"
    )

    [waiting] = trigger.look()
    assert f"waits for transaction {reader} of " in waiting
    assert (site.row(compacted.request_id).start_ms or 0) > old + A_DAY_MS // 4

    site.end(reader, site.admin.commit)
    assert trigger.look() == []
    kwargs = deferred.value.kwargs or {}
    event: WaitEvent = {"state": "ready", "message": "", "deadline": trigger.deadline}
    [done] = operator.execute_complete({}, event, **kwargs)
    assert (done["state"], done["deleted"]) == ("cleaned", 3)
    assert table.directories() == ["base_0000003"]


@pytest.mark.usefixtures("connections")
def test_at_the_deadline_the_task_is_skipped_and_nothing_is_deleted(site: Site) -> None:
    table = inserts(site)
    lock = site.admin.lock_without_transaction(site.database, table.name)
    compacted = compact(site, table.entity())
    before = table.fingerprint()
    operator = AcidCleanerOperator(
        task_id="clean", partitions=[asdict(table.entity())], deferrable=False, cleaning_deadline_seconds=0
    )
    with pytest.raises(AirflowSkipException, match=f"waits for lock {lock} of "):
        operator.execute({})
    assert table.fingerprint() == before
    assert site.row(compacted.request_id).state is CompactionState.READY_FOR_CLEANING
    site.admin.unlock(lock)
