"""Records that a metastore leaves behind are forgotten after a cleaning, and keep nothing from going on."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.clean import leftovers
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.database import leftovers as records
from airflow_provider_acid.metastore.database.cleaning import has_twin
from airflow_provider_acid.metastore.database.leftovers import CleanedTable


def row(table: str, partition: str | None = None) -> Any:
    return SimpleNamespace(entity=Entity("d", table, partition), start_ms=7)


def queue(database: object, *, kept: bool = False) -> Any:
    return SimpleNamespace(database=database, hive=HIVE_3 if kept else HIVE_4)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is to be forgotten; the table ``denied`` may not be looked at."""
    wanted: list[object] = []

    def spellings(_: object, table: Entity, cleaned: dict[str, int], *asked_of_others: object) -> int:
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


@pytest.mark.parametrize(
    ("hive", "cleaned", "others", "forgotten"),
    [
        pytest.param(HIVE_4, "p=de", ["p=DE"], [], id="of one that failed before the partition was added"),
        pytest.param(HIVE_4, "p=DE", ["p=de"], [], id="so in lower case"),
        pytest.param(HIVE_4, "p=a%2Fb", ["p=a%252Fb", "p=A%252Fb", "p=a%2fb"], ["p=a%252Fb"], id="escaped again"),
        pytest.param(HIVE_3, "p=DE", ["p=de", "p=De", None], ["p=de"], id="in lower case on Hive 3"),
    ],
)
def test_only_what_a_lock_makes_of_a_cleaned_name_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, hive: Hive, cleaned: str, others: list[str | None], forgotten: list[str]
) -> None:
    """An aborted write that is forgotten counts as committed once the INSERT is tried again."""
    found: list[str] = []

    def forget(_: object, entity: Entity, write_id: int, *, aborted_too: bool) -> tuple[int, int]:
        assert (write_id, aborted_too) == (9, True)
        found.append(str(entity.partition))
        return 0, 1

    database: Any = SimpleNamespace(write=lambda subject, work: work(None))
    recorded = SimpleNamespace(partitions=lambda *_: frozenset([cleaned, *others]))
    monkeypatch.setattr(records, "WriteRecords", lambda _: recorded)
    monkeypatch.setattr(records, "WriteIdBookkeeping", SimpleNamespace(of=lambda _: SimpleNamespace(forget=forget)))
    table, names = Entity("d", "t"), [cleaned]
    assert records.forget_other_spellings(database, table, {cleaned: 9}, lambda: names, hive.name_in_locks) == len(
        forgotten
    )
    assert found == forgotten


@pytest.mark.parametrize(
    ("other", "is_twin"), [("p=ΟΔΟΣ_Α", False), ("p=Οδος_Α", True), ("p=οδοσ_α", True), ("p=οδοσ_β", False)]
)
def test_partitions_whose_names_java_lowers_to_the_same_are_twins(other: str, is_twin: bool) -> None:
    """``"ΟΔΟΣ_Α".toLowerCase()`` is ``οδοσ_α``, where Python has ``οδος_α``."""
    client: Any = SimpleNamespace(get_partition_names=lambda database, table: ["p=ΟΔΟΣ_Α", other])
    assert has_twin(client, Entity("d", "t", "p=ΟΔΟΣ_Α")) is is_twin
