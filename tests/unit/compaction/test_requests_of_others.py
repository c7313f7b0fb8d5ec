"""Which waiting requests of others a sweep serves: none that is not ours to do, and none behind one on Hive 4."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TableInfo
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas, entity


def request(id: int, what: Entity, type: str = "major", **values: Any) -> CompactionRow:
    return replace(CompactionRow(id, what, type, CompactionState.INITIATED), **values)


LEFT = {
    "a rebalance": (request(1, entity("left"), "rebalance"), "asks for rebalance, which this release does not do"),
    "a type nobody knows": (request(1, entity("left"), "type 5"), "asks for type 5, which this release does not do"),
    "an external table": (request(1, entity("external")), "is an external table"),
    "a table that is not ACID": (request(1, entity("plain")), "is not an ACID table"),
    "a table that is gone": (request(1, Entity("d", "t", None)), "is partitioned, but no partition is named"),
}
PARAMETERS = {"external": {"EXTERNAL": "TRUE"}, "plain": {"transactional": "false"}}


def evaluate(*rows: CompactionRow, hive: Hive, tables: str = "d.*") -> Evaluation:
    names = {"t": 3, "u": None, "v": None, "left": None, "external": None, "plain": None}
    site = EvaluatedTables(names, FakeStorages(), rows=list(rows), parameters=PARAMETERS, hive=hive)
    site.settings = replace(site.settings, serve_foreign_requests=True)
    return site.evaluate(tables)


def served(found: Evaluation) -> list[int]:
    return [due.request_id for due in found.due if due.request_id is not None]


@pytest.mark.parametrize("what", LEFT)
def test_on_hive_3_what_is_not_ours_is_left_and_what_is_behind_it_is_served(what: str) -> None:
    row, reason = LEFT[what]
    found = evaluate(row, request(2, entity("u")), hive=HIVE_3)
    (left,) = found.foreign
    assert (left.id, left.entity, left.type) == (1, row.entity, row.type)
    assert reason in str(left)
    assert served(found) == [2]


@pytest.mark.parametrize("what", LEFT)
def test_on_hive_4_what_is_behind_it_waits_as_well(what: str) -> None:
    row, reason = LEFT[what]
    found = evaluate(row, request(2, entity("u")), hive=HIVE_4)
    first, second = found.foreign
    assert reason in str(first)
    assert str(second) == (
        "request 2 for d.u (major) was made by somebody else and is not served; "
        f"the metastore hands out request 1 ({row.type} of {row.entity}) first, which is left as it is"
    )
    assert served(found) == []


def test_what_is_older_than_the_first_that_is_left_is_served() -> None:
    rows = (request(1, entity("v"), "minor"), request(2, entity("left"), "rebalance"), request(3, entity("u")))
    found = evaluate(*rows, hive=HIVE_4)
    assert served(found) == [1]
    assert [left.id for left in found.foreign] == [2, 3]


@pytest.mark.parametrize("hive", [HIVE_3, HIVE_4])
def test_a_request_of_a_table_that_is_not_selected_is_neither_served_nor_looked_at(hive: Hive) -> None:
    found = evaluate(request(1, entity("u")), request(2, entity("v")), hive=hive, tables="d.v")
    assert served(found) == ([] if hive == HIVE_4 else [2])
    assert [left.id for left in found.foreign] == ([2] if hive == HIVE_4 else [])


def test_a_table_that_cannot_be_looked_up_ends_its_own_request_alone() -> None:
    site = EvaluatedTables(
        {"u": None}, FakeStorages(), rows=[request(1, Entity("other", "t")), request(2, entity("u"))]
    )
    site.settings = replace(site.settings, serve_foreign_requests=True)
    site.queue.hive = HIVE_3
    look_up = site.client.get_table

    def get_table(database: str, table: str) -> TableInfo:
        if database == "other":
            raise MetastoreError(f"table {database}.{table}", "broken", "look at the log")
        return look_up(database, table)

    site.client.get_table = get_table  # type: ignore[method-assign]  # one table is odd
    found = site.evaluate("d.*", "other.*")
    assert served(found) == [2]
    assert [str(left).partition("; ")[2] for left in found.foreign] == [
        "table other.t: broken. Remedy: look at the log."
    ]


@pytest.mark.parametrize("hive", [HIVE_3, HIVE_4])
def test_a_request_of_a_pool_is_left_to_that_pool(hive: Hive) -> None:
    found = evaluate(request(1, entity("u"), pool="etl"), request(2, entity("v")), hive=hive)
    assert served(found) == [2]
    assert "belongs to the pool etl" in str(found.foreign[0])


@pytest.mark.parametrize(
    ("pools", "database", "ids"), [(("etl",), object(), [1, 3]), (("etl",), None, [3]), ((), object(), [3])]
)
def test_pools_are_served_that_are_named_where_requests_are_claimed_by_their_ids(
    pools: tuple[str, ...], database: object, ids: list[int]
) -> None:
    rows = [request(1, entity("u"), pool="etl"), request(2, entity("t", 0), pool="night"), request(3, entity("v"))]
    site = EvaluatedTables({"t": 1, "u": None, "v": None}, FakeStorages(), rows=rows)
    site.settings = replace(site.settings, served_pools=pools)
    site.queue.database = database  # type: ignore[assignment]  # that there is one is all that counts
    found = site.evaluate()
    assert served(found) == ids
    assert {left.id for left in found.foreign} == {1, 2, 3} - set(ids)


def test_requests_come_first_and_by_age() -> None:
    found = evaluate(request(7, entity("v")), request(9, entity("u")), request(11, entity("t", 0)), hive=HIVE_4)
    assert [due.request_id for due in found.due][:3] == [7, 9, 11]


def test_what_cannot_be_served_displaces_nothing_that_is_due() -> None:
    storages = FakeStorages(listing=lambda location: deltas(20))
    rows = [request(1, entity("t", 0), "rebalance")]
    site = EvaluatedTables({"t": 2}, storages, rows=rows)
    site.settings = replace(site.settings, serve_foreign_requests=True)
    found = site.evaluate()
    assert [(due.entity, due.request_id) for due in found.due] == [(entity("t", 1), None)]
