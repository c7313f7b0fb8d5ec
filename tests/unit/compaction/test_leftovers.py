"""Records that a metastore leaves behind are forgotten after a cleaning, and keep nothing from going on."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean import leftovers
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.database.leftovers import CleanedTable


def row(table: str, partition: str | None = None) -> Any:
    return SimpleNamespace(entity=Entity("d", table, partition), start_ms=7)


def queue(database: object, *, kept: bool = False) -> Any:
    return SimpleNamespace(database=database, hive=SimpleNamespace(is_claimed_until_cleaned=kept))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is to be forgotten; the table ``denied`` may not be looked at."""
    wanted: list[object] = []

    def spellings(_: object, table: Entity, cleaned: dict[str, int], names: object) -> int:
        wanted.append((table.table, cleaned))
        if table.table == "denied":
            raise MetastoreError("records", "permission denied", "grant it")
        return 1

    def tables(_: object, cleaned: list[CleanedTable]) -> int:
        wanted.append(cleaned)
        return 0

    monkeypatch.setattr(leftovers, "forget_other_spellings", spellings)
    monkeypatch.setattr(leftovers, "forget_without_write_ids", tables)
    return wanted


CLIENT: Any = SimpleNamespace(get_partition_names=lambda database, table: [])


def test_each_table_is_looked_at_once_whatever_the_number_of_its_partitions(asked: list[object]) -> None:
    marked = [(row("t", "p=1"), 3), (row("t", "p=2"), 4), (row("t", "p=1"), 9), (row("u"), 5), (row("v"), 6)]
    leftovers.forget_leftovers(CLIENT, queue(object()), marked)
    assert asked == [[CleanedTable("d", "u", 5, 7), CleanedTable("d", "v", 6, 7)], ("t", {"p=1": 9, "p=2": 4})]


def test_where_a_claim_is_kept_while_it_waits_its_time_is_not_believed(asked: list[object]) -> None:
    leftovers.forget_leftovers(CLIENT, queue(object(), kept=True), [(row("u"), 5)])
    assert asked == [[CleanedTable("d", "u", 5, None)]]


def test_a_login_that_may_not_look_costs_a_warning(asked: list[object], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        leftovers.forget_leftovers(CLIENT, queue(object()), [(row("denied", "p=1"), 3), (row("t", "p=1"), 3)])
    assert asked == [("denied", {"p=1": 3}), ("t", {"p=1": 3})]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "permission denied" in caplog.text


def test_without_the_metastores_database_nothing_is_asked(asked: list[object]) -> None:
    leftovers.forget_leftovers(CLIENT, queue(None), [(row("u"), 5)])
    assert asked == []
