"""A cleaning leaves no record of a write that is cleaned, under whichever name a metastore keeps it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from tests.integration.compaction_site import AcidTable, Site, Write

pytestmark = pytest.mark.parametrize("site", ["hive_4_1", "hive_4_2", "hive_3"], indirect=True)

PARTITION = "p=a%2Fb"


def records(table: AcidTable, kind: str) -> list[object]:
    """The partitions in the records of a kind, CTC for committed and TC for others."""
    name = {"CTC": "COMPLETED_TXN_COMPONENTS", "TC": "TXN_COMPONENTS"}[kind]
    return [row[0] for row in ask(table, f"SELECT {kind}_PARTITION FROM {name} WHERE {of(table, kind)}")]


def ask(table: AcidTable, statement: str) -> Sequence[Sequence[object]]:
    """Hive 4 spells its names on PostgreSQL in upper case."""
    site = table.site
    if not site.renames_publish:
        statement = " ".join(f'"{word}"' if "_" in word and word.isupper() else word for word in statement.split(" "))
    return site.server.server_database.query(statement)


def of(table: AcidTable, kind: str) -> str:
    return f"{kind}_DATABASE = '{table.site.database}' AND {kind}_TABLE = '{table.name}'"


def compact_and_clean(table: AcidTable, partition: str | None) -> None:
    entity = table.entity(partition)
    assert table.site.compact(entity).state is OutcomeState.COMPACTED
    assert [cleaning.state for cleaning in table.site.clean(entity)] == [CleaningState.CLEANED]


def test_none_is_left_under_the_name_that_a_lock_gives_a_partition(site: Site) -> None:
    table = site.table(partitions=[PARTITION, "p=c"])
    for value in (1, 2):
        table.insert(value, partition=PARTITION)
    table.insert(3, partition="p=c")
    table.write(PARTITION).insert(4).abort()
    table.insert(5, partition=PARTITION)
    assert PARTITION not in records(table, "CTC"), "the lock kept the name as it is"
    compact_and_clean(table, PARTITION)
    assert (records(table, "CTC"), records(table, "TC")) == (["p=c"], [])
    assert table.values() == [1, 2, 3, 5]


def test_what_may_be_another_partitions_stays(site: Site) -> None:
    twin = "p=A%2Fb" if site.renames_publish else "p=a%252Fb"
    table = site.table(partitions=[PARTITION, twin])
    for partition in (PARTITION, twin):
        table.insert(1, partition=partition)
        table.insert(2, partition=partition)
        table.write(partition).insert(3).abort()
    before = sorted(str(name) for name in records(table, "TC"))
    compact_and_clean(table, PARTITION)
    assert sorted(str(name) for name in records(table, "TC")) == before
    assert table.values() == [1, 1, 2, 2]


def write_without_write_id(table: AcidTable, value: int) -> Write:
    """As Trino writes: locked first, so that the metastore records no write id."""
    admin = table.site.admin
    (txn,) = admin.open_transactions()
    table.site.open_txns.add(txn)
    admin.lock_as_writer(txn, table.site.database, table.name)
    write_id = admin.allocate_write_ids(table.site.database, table.name, [txn])[txn]
    return Write(table, txn, write_id, None).insert(value)


def test_none_is_left_that_has_no_write_id_once_it_is_old_enough(site: Site) -> None:
    """Hive 3 records of a compaction that waits for its cleaning when it was kept last, not when it began."""
    table = site.table()
    for value in (1, 2):
        write_without_write_id(table, value).commit()
    write_without_write_id(table, 3).abort()
    two_days_ago = "CTC_TIMESTAMP = CTC_TIMESTAMP - INTERVAL '2 days'"
    ask(table, f"UPDATE COMPLETED_TXN_COMPONENTS SET {two_days_ago} WHERE {of(table, 'CTC')}")
    write_without_write_id(table, 4).commit()
    assert len(records(table, "CTC")) == 3
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    write_without_write_id(table, 5).abort()
    assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert len(records(table, "CTC")) == (3 if site.renames_publish else 1)
    assert len(records(table, "TC")) == 1
    assert table.values() == [1, 2, 4]
