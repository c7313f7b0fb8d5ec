"""A compaction that is taken back, read by Hive itself: the same rows with the same row ids, before it and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine_program import HIVE_3, HIVE_4_2
from tests.judge.compactors import SETTINGS, compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import check_every_way, read
from tests.judge.table_kind import make_acid_table

KEEPS_LISTINGS = {"hive.exec.orc.split.strategy": "BI"}
"""With it Hive 4 keeps the listing of what is a base alone for two hours, or until the valid write id list changes."""

DATABASE = "undone"
TABLE = f"{DATABASE}.t"
PARTITION = Entity(DATABASE, "t", "p=a")
COLUMNS = "v, s, row__id.writeid, row__id.bucketid, row__id.rowid"


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_3, HIVE_4_2)]
)
def test_hive_reads_the_same_rows_by_the_same_ids_and_what_it_wrote_by_them_holds(
    start_hive: StartHive, version: str
) -> None:
    hive = start_hive(version)
    make_acid_table(hive, TABLE, "(v int, s string) partitioned by (p string)")
    hive.execute(
        f"insert into {TABLE} partition (p = 'a') values (1, 'a'), (2, 'b')",
        f"insert into {TABLE} partition (p = 'a') values (3, 'c')",
        f"delete from {TABLE} where p = 'a' and v = 1",
        f"update {TABLE} set s = 'd' where p = 'a' and v = 2",
    )
    before = read(hive, TABLE, COLUMNS)
    assert len(before) == 2
    with compactor_for(hive, DATABASE, replace(SETTINGS, keep_replaced_hours=48.0)) as compactor:
        site = compactor.site
        (result,) = compactor.compact(PARTITION, CompactionType.MAJOR).targets
        assert [cleaning.state for cleaning in site.clean(PARTITION)] == [CleaningState.KEPT]
        check_every_way(hive, TABLE, COLUMNS, before, "after the compaction")
        hive.execute(f"update {TABLE} set s = 'e' where p = 'a' and v = 3")
        changed = read(hive, TABLE, COLUMNS)
        assert changed != before

        assert Undo(site.client, site.queue, site.settings).undo(PARTITION).removed == result
        check_every_way(hive, TABLE, COLUMNS, changed, "after the undo")
        hive.execute(f"delete from {TABLE} where p = 'a' and v = 2")
        left = read(hive, TABLE, COLUMNS)
        assert [row.split("\t")[:2] for row in left] == [["3", "e"]]

        compactor.compact(PARTITION, CompactionType.MAJOR)
        site.settings = replace(site.settings, keep_replaced_hours=0.0)
        compactor.clean(PARTITION)
        check_every_way(hive, TABLE, COLUMNS, left, "after the next compaction and its cleaning")


@pytest.mark.xdist_group(HIVE_4_2)
def test_hive_4_finds_the_rows_after_an_undo_where_it_keeps_listings(start_hive: StartHive) -> None:
    hive, table = start_hive(HIVE_4_2), f"{DATABASE}.kept_listing"
    make_acid_table(hive, table, "(v int, s string)")
    hive.execute(
        f"insert into {table} values (1, 'a'), (2, 'b'), (3, 'c')",
        f"delete from {table} where v = 1",
    )
    rows = read(hive, table, COLUMNS)
    assert len(rows) == 2
    with compactor_for(hive, DATABASE, replace(SETTINGS, keep_replaced_hours=48.0)) as compactor:
        site, entity = compactor.site, Entity(DATABASE, "kept_listing")
        compactor.compact(entity, CompactionType.MAJOR)
        hive.set(KEEPS_LISTINGS)
        try:
            check_every_way(hive, table, COLUMNS, rows, "after the compaction")
            Undo(site.client, site.queue, site.settings).undo(entity)
            check_every_way(hive, table, COLUMNS, rows, "after the undo")
        finally:
            hive.set(dict.fromkeys(KEEPS_LISTINGS, "HYBRID"))
