"""A second look tells how partitions are now: the same as an evaluation would, of these only, for a few calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.compaction.evaluate.looking_again import look_again
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, PartitionInfo
from airflow_provider_acid.plan.thresholds import CompactionDecision
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeClient, FakeStorages, deltas, dropped, entity
from tests.unit.compaction.test_initiator import tables_of_all_sorts

Told = dict[Entity, tuple[CompactionDecision, str | None]]


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: Told = {}

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        self.told[seen.place.entity] = (decision, hindrance)

    def passed_over(self, entity: Entity, reason: str) -> None:
        """An evaluation's; a second look tells nothing of what it does not see."""


def look(site: EvaluatedTables, entities: Collection[Entity]) -> Told:
    listener = Listener()
    look_again(site.client, cast(CompactionQueue, site.queue), site.settings, entities, listener)
    return listener.told


def test_it_says_what_an_evaluation_says_of_the_same_partitions() -> None:
    site, listener = tables_of_all_sorts(), Listener()
    site.observer = listener
    site.evaluate()
    assert len(listener.told) > 40
    assert look(site, listener.told) == listener.told


def test_it_looks_at_these_only_whatever_waits_for_them_in_the_queue() -> None:
    rows = [CompactionRow(1, entity("t", 3), "major", CompactionState.READY_FOR_CLEANING)]
    site = EvaluatedTables({"t": 9, "u": None}, FakeStorages(), rows=rows, hive=HIVE_3)
    assert set(look(site, [entity("t", 3), entity("u"), entity("t", 3)])) == {entity("t", 3), entity("u")}


def test_fifty_partitions_of_two_tables_cost_a_few_calls_and_one_listing_each() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 40, "u": 10}, storages)
    entities = [*(entity("t", number) for number in range(40)), *(entity("u", number) for number in range(10))]
    assert len(look(site, entities)) == 50
    assert Counter(site.client.calls) == {
        "get_table": 2,
        "get_partitions": 2,
        "open_transactions": 1,
        "valid_write_ids": 1,
        "config_value": 1,
    }
    assert len({storage.location for storage, _ in storages.opened}) == len(storages.opened) == 50


def test_transactions_are_asked_for_before_write_ids_and_these_before_any_directory() -> None:
    calls: list[list[str]] = []

    def listing(location: str) -> Listing:
        calls.append(list(site.client.calls))
        return deltas(3)

    site = EvaluatedTables({"t": None}, FakeStorages(listing=listing))
    look(site, [entity("t")])
    assert calls == [["get_table", "open_transactions", "valid_write_ids"]]


def test_a_partition_that_cannot_be_listed_keeps_no_other_from_being_looked_at() -> None:
    def listing(location: str) -> Listing:
        if location.endswith("1"):
            raise StorageError(location, "permission denied", "grant it")
        return deltas(3)

    found = look(EvaluatedTables({"t": 3}, FakeStorages(listing=listing)), [entity("t", n) for n in range(3)])
    assert set(found) == {entity("t", 0), entity("t", 2)}


def test_partitions_and_tables_that_are_gone_keep_no_other_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = FakeClient.get_partitions

    def get_partitions(client: FakeClient, database: str, table: str, names: Collection[str]) -> list[PartitionInfo]:
        if "p=00001" in names:
            raise dropped("p=00001")
        return there(client, database, table, list(names))

    def get_table(client: FakeClient, database: str, table: str) -> object:
        if table == "gone":
            raise dropped("gone")
        return known(client, database, table)

    known = FakeClient.get_table
    monkeypatch.setattr(FakeClient, "get_partitions", get_partitions)
    monkeypatch.setattr(FakeClient, "get_table", get_table)
    site = EvaluatedTables({"t": 3}, FakeStorages())
    assert set(look(site, [entity("gone"), *(entity("t", n) for n in range(3))])) == {entity("t", 0), entity("t", 2)}
    assert look(site, [entity("gone")]) == {}


def test_a_table_with_a_wrong_option_keeps_no_other_from_being_looked_at() -> None:
    wrong = {"odd": {"compactorthreshold.hive.compactor.delta.num.threshold": "ten"}}
    site = EvaluatedTables({"odd": None, "t": None}, FakeStorages(), parameters=wrong)
    assert set(look(site, [entity("odd"), entity("t")])) == {entity("t")}
