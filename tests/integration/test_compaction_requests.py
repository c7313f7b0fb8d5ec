"""Requests of users and of other compactors, and two operators that want the same partition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import Enqueued
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness.compaction_chain import compact_with, outcome_of
from tests.harness.plain_job import run_plainly
from tests.harness.thrift_admin import FULL_ACID, TableDefinition
from tests.integration.compaction_site import ON_EVERY_METASTORE, AcidTable, Site, due

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
    return int(site.client._invoke("rebalance", methods.COMPACT2, request, repeatable=False).id)


def stored(site: Site, id: int) -> object:
    """A request as everybody sees it: by SHOW COMPACTIONS, or the whole row where that may not know its type."""
    if not site.queue.hive.has_pools:
        table, column = ("COMPACTION_QUEUE", "cq_id") if site.renames_publish else ('"COMPACTION_QUEUE"', '"CQ_ID"')
        (row,) = site.server.server_database.query(f"SELECT * FROM {table} WHERE {column} = {id}")
        return row
    (shown,) = site.client.compactions(id=id)
    return shown


@pytest.fixture
def serving(site: Site) -> Iterator[Site]:
    site.withdraw_requests()
    yield site
    site.withdraw_requests()


@ON_EVERY_METASTORE
def test_a_users_request_is_reported_and_not_served_where_that_is_switched_off(site: Site) -> None:
    site.settings = replace(site.settings, serve_foreign_requests=False)
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
def test_a_users_request_is_seen_although_no_auto_compaction_keeps_the_sensor_away(serving: Site, serve: bool) -> None:
    site = serving
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


@ON_EVERY_METASTORE
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


@ON_EVERY_METASTORE
def test_a_retry_compacts_somebodys_request_that_its_former_try_gave_up_and_no_other_does(
    serving: Site,
) -> None:
    """No metastore hands out a request twice."""
    table = inserts(serving)
    before = table.rows()
    request = ask(serving, table.entity())
    asked = due(table.entity(), request)

    def fail(plan: CompactionPlan) -> CompactionResult:
        return CompactionResult("", "", table.entity(), "disk full", (), 0.0)

    given_up = serving.compact(asked, job=fail)
    assert (given_up.state, given_up.request_id) == (OutcomeState.FAILED, request), given_up
    passed = compact_with(serving.worker("another task"), asked).outcome
    assert (passed.state, passed.message) == (OutcomeState.SKIPPED, "the request is no longer waiting")
    assert [row.id for row in serving.rows(table.entity())] == [request]
    retried = serving.compact(asked)
    assert retried.state is OutcomeState.COMPACTED, retried
    assert retried.request_id not in (None, request)
    [cleaned] = serving.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert len(table.visible()) == 1
    assert table.rows() == before
    assert serving.row(request).state is CompactionState.FAILED
    assert serving.row(retried.request_id).state is CompactionState.SUCCEEDED


@ON_EVERY_METASTORE
def test_requests_are_served_by_age_and_each_by_its_id(serving: Site) -> None:
    """On Hive 4 without its database none is claimed while an older one waits: the server would hand out that one."""
    first, second = inserts(serving, "b"), inserts(serving, "a")
    older, newer = ask(serving, first.entity()), ask(serving, second.entity())
    assert [item.request_id for item in serving.evaluate().due] == [older, newer]
    outcome = serving.compact(due(second.entity(), newer))
    if serving.claims_by_id:
        assert (outcome.entity, outcome.state) == (second.entity(), OutcomeState.COMPACTED)
    else:
        assert (outcome.state, outcome.request_id) == (OutcomeState.SKIPPED, newer)
        assert f"the metastore hands out request {older} (major of {first.entity()}) first" in outcome.message
        assert serving.row(newer).state is CompactionState.INITIATED
    assert serving.row(older).state is CompactionState.INITIATED
    assert serving.compact(due(first.entity(), older)).entity == first.entity()
    gone = serving.compact(due(first.entity(), older))
    assert (gone.state, gone.request_id) == (OutcomeState.SKIPPED, older)


@ON_EVERY_METASTORE
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
    serving.settings = replace(serving.settings, minor_publish_lock=False)
    request = ask(serving, table.entity(), MINOR)
    outcome = serving.compact(due(table.entity(), request))
    assert outcome.state is OutcomeState.COMPACTED
    assert outcome.targets[0].startswith("base_")
    assert "done as a major, because a minor may need the publish lock" in outcome.message
    assert serving.row(request).state is CompactionState.READY_FOR_CLEANING


def test_the_request_itself_says_what_is_done_whatever_was_seen_before(serving: Site) -> None:
    table = inserts(serving)
    request = ask(serving, table.entity(), MINOR)
    assert serving.compact(due(table.entity(), request, MAJOR)).targets[0].startswith("delta_")


NOT_OURS: dict[str, tuple[dict[str, str] | None, str]] = {
    "rebalance": (FULL_ACID, "asks for "),
    "external": ({"EXTERNAL": "TRUE"}, "is an external table"),
    "iceberg": ({"EXTERNAL": "TRUE", "table_type": "ICEBERG"}, "is an external table"),
    # Hive 4 makes external ones of these.
    "plain": ({}, "is not an ACID table|is an external table"),
    "replicated": ({**FULL_ACID, "hive.repl.first.inc.pending": "true"}, "waits for its first incremental"),
    "gone": (None, "not found|does not exist"),
}
"""Requests that are not ours to do: the properties of the table, if there is one, and why."""


def ask_for(site: Site, kind: str, properties: dict[str, str] | None) -> int:
    """A request that is not ours to do."""
    entity = Entity(site.database, kind)
    if properties is not None:
        site.admin.create_table(
            TableDefinition(site.database, kind, {"v": "bigint"}, properties={**site.server.left_to_us, **properties})
        )
    if kind != "rebalance":
        return ask(site, entity)
    if site.queue.hive.has_pools:
        return ask_for_rebalance(site, entity)
    # These servers take no such request: this is one that a newer client might leave in the database.
    id = ask(site, entity)
    table, type, column = ("COMPACTION_QUEUE", "cq_type", "cq_id")
    if not site.renames_publish:
        table, type, column = (f'"{name.upper()}"' for name in (table, type, column))
    site.server.server_database.query(f"UPDATE {table} SET {type} = 'r' WHERE {column} = {id}")
    return id


@ON_EVERY_METASTORE
@pytest.mark.parametrize("kind", NOT_OURS)
def test_a_request_that_is_not_ours_to_do_stays_as_it_is_and_what_is_due_is_compacted(serving: Site, kind: str) -> None:
    properties, reason = NOT_OURS[kind]
    request = ask_for(serving, kind, properties)
    table, wanted = inserts(serving, "due"), inserts(serving, "wanted")
    behind = ask(serving, wanted.entity())
    before = stored(serving, request)
    found = serving.evaluate()
    lines = [str(left) for left in found.foreign]
    assert lines[0].startswith(f"request {request} for {serving.database}.{kind} (")
    assert re.search(reason, lines[0]), lines
    # Of what waits behind it Hive 4 by itself would hand out nothing else.
    served = [behind] if serving.claims_by_id else []
    assert [item.request_id for item in found.due if item.request_id] == served
    assert len(lines) == 2 - len(served)
    assert {serving.compact(item).state for item in found.due} == {OutcomeState.COMPACTED}
    assert table.entity() in {item.entity for item in found.due}
    for asked in (request, behind):
        outcome = serving.compact(due(Entity(serving.database, kind), asked))
        assert outcome.state is OutcomeState.SKIPPED, outcome
    assert stored(serving, request) == before


@ON_EVERY_METASTORE
def test_a_request_of_a_table_that_is_not_selected_stays_as_it_is(serving: Site) -> None:
    other, wanted = inserts(serving, "other"), inserts(serving, "wanted")
    request, behind = ask(serving, other.entity()), ask(serving, wanted.entity())
    before = stored(serving, request)
    found = serving.evaluate(f"{serving.database}.wanted")
    assert len(found.due) == (1 if serving.claims_by_id else 0)
    serving.compact(due(wanted.entity(), behind))
    assert stored(serving, request) == before


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


@pytest.mark.parametrize("site", ["hive_4_1", "hive_4_2"], indirect=True)
def test_requests_of_a_pool_that_is_served_are_carried_out_in_it(serving: Site) -> None:
    serving.settings = replace(serving.settings, served_pools=("etl",))
    table = inserts(serving)
    before = table.rows()
    request = ask(serving, table.entity(), pool="etl")
    (found,) = serving.evaluate().due
    assert found.request_id == request
    assert serving.compact(found).state is OutcomeState.COMPACTED
    assert [cleaning.state for cleaning in serving.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.rows() == before
    row = serving.row(request)
    assert (row.state, row.pool) == (CompactionState.SUCCEEDED, "etl")


@ON_EVERY_METASTORE
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


@ON_EVERY_METASTORE
def test_a_request_another_of_our_tasks_just_made_is_left_to_it(site: Site) -> None:
    table = inserts(site)
    pool = str(RequestPool.new(owner_of("another task", str(table.entity()))))
    made = site.queue.enqueue(table.entity(), MAJOR, pool)
    assert isinstance(made, Enqueued)
    outcome = site.compact(table.entity())
    assert (outcome.state, outcome.request_id) == (OutcomeState.SKIPPED, made.id)
    assert "was just requested by another task" in outcome.message


@ON_EVERY_METASTORE
def test_c13_a_partition_that_waits_for_its_cleaner_is_not_compacted_twice(site: Site) -> None:
    table = inserts(site)
    first = site.compact(table.entity())
    again = site.compact(table.entity())
    if not site.renames_publish and not site.queue.hive.has_pools:
        assert again.state is OutcomeState.NOTHING_TO_MERGE, "such a server takes the request, which finds one base"
        return
    assert again.state is OutcomeState.SKIPPED
    if site.renames_publish:
        assert f"is published by request {first.request_id} and waits to be cleaned" in again.message
    else:
        assert f"id={first.request_id}" in again.message
        assert "ready for cleaning" in again.message


def test_a_minor_that_the_thresholds_ask_for_is_one_and_gives_their_reason(site: Site) -> None:
    table = inserts(site)
    site.settings = replace(site.settings, thresholds=Thresholds(delta_num_threshold=1, delta_pct_threshold=1e9))
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
