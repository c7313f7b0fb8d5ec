"""Where only written partitions are candidates, the others cost nothing."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Set
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.exceptions import ConfigurationError, ObjectNotFoundError, UnsupportedTableError
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, entity


def names(*partitions: int) -> Set[str | None]:
    return {f"p={number:05d}" for number in partitions}


def test_only_written_partitions_are_fetched_and_listed() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 10_000}, storages, recorded={"t": names(7, 9_999)})
    found = site.evaluate()
    assert [item.entity for item in found.due] == [entity("t", 7), entity("t", 9_999)]
    assert [storage.location[-7:] for storage, _ in storages.opened] == ["p=00007", "p=09999"]
    assert Counter(site.client.calls)["get_partitions"] == 1


def test_of_many_written_partitions_a_thousand_come_by_one_call_and_each_is_listed_once() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 20_000}, storages, recorded={"t": names(*range(0, 20_000, 2))})
    assert len(site.evaluate(threads=1).evaluated) == 10_000
    assert len({storage.location for storage, _ in storages.opened}) == len(storages.opened) == 10_000
    assert len(site.client.calls) <= 10_000 / 1000 + 10


def test_a_table_without_records_is_not_even_fetched() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 5, "u": None, "v": 5, "w": None}, storages, recorded={"t": names(1), "u": {None}})
    found = site.evaluate()
    assert [item.entity for item in found.evaluated] == [entity("t", 1), entity("u")]
    assert found.skipped == ()
    assert Counter(site.client.calls)["get_table"] == 2
    assert site.records is not None
    assert site.records.asked == ["d.t", "d.u"]


def test_where_nothing_was_written_nothing_is_looked_at() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 5, "u": None}, storages, recorded={})
    assert site.evaluate().evaluated == ()
    assert storages.opened == []
    assert site.client.calls == ["databases", "get_database", "tables"]


def test_records_that_go_while_they_are_read_are_none() -> None:
    storages = FakeStorages()
    assert EvaluatedTables({"t": 5, "u": None}, storages, recorded={"t": set(), "u": set()}).evaluate().evaluated == ()
    assert storages.opened == []


def test_a_write_that_names_no_partition_has_all_of_them_looked_at_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    found = EvaluatedTables({"t": 3, "u": None}, FakeStorages(), recorded={"t": {None}, "u": {None}}).evaluate()
    assert len(found.evaluated) == 4
    assert [record.getMessage() for record in caplog.records] == [
        "d.t: all partitions are looked at, for a write is recorded that names none"
    ]


def test_a_table_that_is_named_is_checked_though_nothing_was_written() -> None:
    plain = EvaluatedTables(
        {"t": 5, "plain": 5}, FakeStorages(), parameters={"plain": {"transactional": "false"}}, recorded={}
    )
    assert plain.evaluate("d.t").evaluated == ()
    assert plain.evaluate("d.*").skipped == ()
    with pytest.raises(UnsupportedTableError, match="plain"):
        plain.evaluate("d.plain")
    with pytest.raises(ObjectNotFoundError, match="missing"):
        plain.evaluate("d.missing")


def test_requests_of_others_are_met_whether_or_not_anything_was_written() -> None:
    rows = [CompactionRow(11, entity("t", 1), "minor", CompactionState.INITIATED)]
    site = EvaluatedTables({"t": 5}, FakeStorages(), rows=rows, recorded={})
    (due,) = site.evaluate().due
    assert (due.entity, due.type, due.request_id) == (entity("t", 1), CompactionType.MINOR, 11)
    site.settings = replace(site.settings, serve_foreign_requests=False)
    assert [row.id for row in site.evaluate().foreign] == [11]


def test_without_a_database_written_is_refused_before_anything_is_asked() -> None:
    site = EvaluatedTables({"t": 5}, FakeStorages())
    site.settings = replace(site.settings, candidates=Candidates.WRITTEN)
    with pytest.raises(ConfigurationError, match="metastore_db_conn_id .* or set candidates to all"):
        site.evaluate()
    assert site.client.calls == []


def test_all_asks_no_database() -> None:
    site = EvaluatedTables({"t": 5}, FakeStorages(), recorded={})
    site.settings = replace(site.settings, candidates=Candidates.ALL)
    assert len(site.evaluate().evaluated) == 5
    assert site.records is not None
    assert site.records.asked == []
