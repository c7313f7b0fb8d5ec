"""Requests of users and of other compactors, and two operators that want the same partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.acid.thresholds import Thresholds
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.cleaner import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore import structs
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import Enqueued
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness.compaction_chain import outcome_of
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


def inserts(site: Site, name: str = "t", count: int = 3, **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(count):
        table.insert(value)
    return table


def ask(site: Site, entity: Entity, type: CompactionType = MAJOR, pool: str | None = None) -> int:
    """What ALTER TABLE … COMPACT does."""
    answer = site.client.compact(entity, type, pool=pool)
    assert answer.accepted, answer
    return answer.id


def ask_for_rebalance(site: Site, entity: Entity) -> int:
    request = structs.CompactionRequest(
        database=entity.database,
        table=entity.table,
        partition=None,
        type=3,
        run_as=None,
        properties=None,
        initiator_id="user",
        pool=None,
    )
    return int(site.client._invoke("rebalance", structs.COMPACT2, request, repeatable=False).id)


@pytest.fixture
def serving(site: Site) -> Site:
    """Requests without a pool are handed out by age, whatever their database: those of other tests have to go."""
    waiting = [row.id for row in site.queue.rows(state=CompactionState.INITIATED) if row.pool is None]
    if waiting and site.renames_publish:
        site.server.server_database.query("DELETE FROM COMPACTION_QUEUE WHERE cq_state = 'i'")
    elif waiting:
        site.client.abort_compactions(waiting)
    site.settings = replace(site.settings, serve_foreign_requests=True)
    return site


@ON_BOTH_METASTORES
def test_a_users_request_is_reported_and_not_served_by_default(site: Site) -> None:
    table = inserts(site)
    request = ask(site, table.entity())
    found = site.evaluate()
    assert found.due == ()
    assert [(row.id, row.entity) for row in found.foreign] == [(request, table.entity())]
    assert site.row(request).state is CompactionState.INITIATED
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.SKIPPED, "Hive takes no second request for the same partition"
    assert f"id={request}" in outcome.message
    assert site.row(request).state is CompactionState.INITIATED


@pytest.mark.parametrize("serve", [False, True])
def test_a_users_request_is_seen_although_no_auto_compaction_keeps_the_sensor_away(site: Site, serve: bool) -> None:
    table = inserts(site, properties={"no_auto_compaction": "true"})
    request = ask(site, table.entity())
    site.settings = replace(site.settings, serve_foreign_requests=serve)
    found = site.evaluate()
    assert [row.id for row in found.foreign] == ([] if serve else [request])
    assert [item.request_id for item in found.due] == ([request] if serve else [])


def test_a_users_request_for_a_table_that_does_not_exist_is_seen(site: Site) -> None:
    inserts(site)
    request = ask(site, Entity(site.database, "nowhere"))
    assert [row.id for row in site.evaluate().foreign] == [request]


@ON_BOTH_METASTORES
def test_a_served_request_is_carried_out_under_its_own_id(serving: Site) -> None:
    table = inserts(serving)
    before = table.rows()
    request = ask(serving, table.entity())
    [found] = serving.evaluate().due
    assert (found.entity, found.request_id) == (table.entity(), request)
    outcome = serving.compact(found)
    assert (outcome.state, outcome.request_id) == (OutcomeState.COMPACTED, request), outcome
    [cleaned] = serving.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert table.rows() == before
    assert serving.row(request).state is CompactionState.SUCCEEDED
    assert [row.id for row in serving.rows(table.entity())] == [request], "no request of our own beside it"


@ON_BOTH_METASTORES
def test_the_oldest_request_is_served_whichever_was_asked_for(serving: Site) -> None:
    first, second = inserts(serving, "a"), inserts(serving, "b")
    older, newer = ask(serving, first.entity()), ask(serving, second.entity())
    outcome = serving.compact(due(second.entity(), newer))
    assert (outcome.entity, outcome.request_id, outcome.state) == (first.entity(), older, OutcomeState.COMPACTED)
    assert outcome.targets[0] in first.directories()
    assert f"request {older} made by somebody else" in outcome.message
    assert len(second.directories()) == 3
    assert serving.compact(due(first.entity(), older)).entity == second.entity()
    gone = serving.compact(due(first.entity(), older))
    assert (gone.state, gone.request_id) == (OutcomeState.SKIPPED, older)


@ON_BOTH_METASTORES
def test_a_served_minor_is_a_minor(serving: Site) -> None:
    table = inserts(serving)
    before = table.rows()
    request = ask(serving, table.entity(), MINOR)
    [found] = serving.evaluate().due
    assert found.type is MINOR
    outcome = serving.compact(found)
    assert outcome.state is OutcomeState.COMPACTED
    row = serving.row(request)
    assert outcome.targets == (serving.published("delta_0000001_0000003", row.txn_id),)
    assert (row.state, row.type) == (CompactionState.READY_FOR_CLEANING, "minor")
    serving.clean(table.entity())
    assert table.directories() == list(outcome.targets)
    assert (serving.row(request).state, serving.row(request).type) == (CompactionState.SUCCEEDED, "minor")
    assert table.rows() == before


def test_a_served_minor_that_cannot_be_done_becomes_a_major_and_says_why(serving: Site) -> None:
    table = serving.table()
    table.write().insert(1, 2).delete((1, 0)).commit()
    write = table.write().insert(3)
    write.commit()
    serving.settings = replace(serving.settings, publish_lock=False)
    request = ask(serving, table.entity(), MINOR)
    outcome = serving.compact(due(table.entity(), request))
    assert outcome.state is OutcomeState.COMPACTED
    assert outcome.targets[0].startswith("base_")
    assert "done as a major, because a minor may need the publish lock" in outcome.message
    assert serving.row(request).state is CompactionState.READY_FOR_CLEANING


def test_a_minor_that_was_not_the_one_asked_for_is_served_as_a_minor_too(serving: Site) -> None:
    first, second = inserts(serving, "a"), inserts(serving, "b")
    ask(serving, first.entity(), MINOR)
    newer = ask(serving, second.entity(), MAJOR)
    outcome = serving.compact(due(second.entity(), newer))
    assert outcome.entity == first.entity()
    assert outcome.targets[0].startswith("delta_")
    assert serving.compact(due(second.entity(), newer)).targets[0].startswith("base_")


def test_a_rebalance_is_reported_and_refused_where_it_was_handed_out(serving: Site) -> None:
    table, other = inserts(serving, "a"), inserts(serving, "b")
    rebalance = ask_for_rebalance(serving, table.entity())
    newer = ask(serving, other.entity())
    found = serving.evaluate()
    assert [row.id for row in found.foreign] == [rebalance]
    before = table.fingerprint()
    outcome = serving.compact(due(other.entity(), newer))
    assert (outcome.state, outcome.request_id) == (OutcomeState.REFUSED, rebalance)
    assert "asks for rebalance, which this release does not do. Remedy: " in outcome.message
    row = serving.row(rebalance)
    assert (row.state, row.error_message) == (CompactionState.REFUSED, outcome.message)
    assert table.fingerprint() == before
    serving.compact(due(other.entity(), newer))


@ON_BOTH_METASTORES
def test_a_served_request_for_a_table_that_is_not_compacted_is_refused_in_its_row(serving: Site) -> None:
    table = inserts(serving, properties={"repl.source.for": "x", "hive.repl.first.inc.pending": "true"})
    request = ask(serving, table.entity())
    before = table.fingerprint()
    outcome = serving.compact(due(table.entity(), request))
    assert outcome.state is OutcomeState.REFUSED
    assert "waits for its first incremental replication" in outcome.message
    assert serving.row(request).error_message == outcome.message
    assert table.fingerprint() == before


def test_requests_in_pools_of_others_are_never_touched(serving: Site) -> None:
    table = inserts(serving)
    request = ask(serving, table.entity(), pool="etl")
    found = serving.evaluate()
    assert ([row.id for row in found.foreign], found.due) == ([request], ())
    for what in (due(table.entity()), due(table.entity(), request)):
        outcome = serving.compact(what)
        assert outcome.state is OutcomeState.SKIPPED, outcome
    row = serving.row(request)
    assert (row.state, row.pool, row.worker_id) == (CompactionState.INITIATED, "etl", None)
    assert len(table.directories()) == 3
    [claimed] = [serving.queue.claim("etl", "their worker")]
    assert claimed is not None
    outcome = serving.compact(table.entity())
    assert outcome.state is OutcomeState.SKIPPED
    assert "is being compacted by the worker their worker, which is not of this package" in outcome.message
    serving.queue.fail(claimed, "test over")


@ON_BOTH_METASTORES
def test_of_two_operators_on_one_partition_one_works_and_the_other_says_who_has_it(site: Site) -> None:
    table = inserts(site)
    before = table.rows()
    first, second = site.worker("first"), site.worker("second")
    active = first.begin(due(table.entity()))
    assert isinstance(active, ActiveCompaction)
    skipped = second.begin(due(table.entity()))
    assert isinstance(skipped, Outcome)
    assert skipped.state is OutcomeState.SKIPPED
    assert active.claim.worker_id in skipped.message
    assert f"in transaction {active.transaction.txn_id}" in skipped.message
    assert outcome_of(first.finish(active, run_plainly(active.plan))).state is OutcomeState.COMPACTED
    assert table.rows() == before


@ON_BOTH_METASTORES
def test_a_request_another_of_our_tasks_just_made_is_left_to_it(site: Site) -> None:
    table = inserts(site)
    pool = str(RequestPool.new(owner_of("another task", str(table.entity()))))
    made = site.queue.enqueue(table.entity(), MAJOR, pool)
    assert isinstance(made, Enqueued)
    outcome = site.compact(table.entity())
    assert (outcome.state, outcome.request_id) == (OutcomeState.SKIPPED, made.id)
    assert "was just requested by another task" in outcome.message


@ON_BOTH_METASTORES
def test_c13_a_partition_that_waits_for_its_cleaner_is_not_compacted_twice(site: Site) -> None:
    table = inserts(site)
    first = site.compact(table.entity())
    again = site.compact(table.entity())
    assert again.state is OutcomeState.SKIPPED
    if site.renames_publish:
        assert f"is published by request {first.request_id} and waits to be cleaned" in again.message
    else:
        assert f"id={first.request_id}" in again.message
        assert "ready for cleaning" in again.message


def test_a_minor_that_the_thresholds_ask_for_is_one_and_gives_their_reason(site: Site) -> None:
    table = inserts(site)
    site.settings = replace(site.settings, thresholds=Thresholds(delta_count=1, delta_size_ratio=1e9))
    site.compact(table.entity())
    site.clean(table.entity())
    for value in (4, 5, 6):
        table.insert(value)
    [found] = site.evaluate().due
    assert found.type is MINOR
    outcome = site.compact(found)
    assert outcome.message == found.reason
    assert outcome.targets[0].startswith("delta_0000004_0000006_v")
    [row] = [row for row in site.rows(table.entity()) if not row.state.is_terminal]
    assert row.type == "minor"
