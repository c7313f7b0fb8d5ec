"""Hive finds the same rows by predicates that it pushes down to ORC's limits and filters, after a major as before.

Each table is one that a merge could hide a row of: what Hive's readers make of limits and filters is not ORC's to say.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType, CopiedStripes
from tests.harness.hive_engine_program import HIVE_3
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.compactors import SETTINGS, compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import read
from tests.judge.statements import run
from tests.judge.table_kind import ACID, LEFT_TO_US

DATABASE = "pushed_down"
FILTERED = ACID.replace("(", "('orc.bloom.filter.columns'='v', ", 1)
FILTERS = "filters_of_the_stripe_before"
TABLES = {
    FILTERS: (
        f"(id int, v string) {FILTERED}",
        (
            "insert into {t} values (1, 'ab'), (2, 'ad')",
            "alter table {t} unset tblproperties ('orc.bloom.filter.columns')",
        ),
        ("insert into {t} values (3, 'ac')",),
        "v = 'ac'",
    ),
    "cut_texts": (
        f"(id int, v string) {ACID}",
        (
            "insert into {t} values (1, 'aaa'), (2, 'abcdef'), (3, 'zzz')",
            "alter table {t} change column v v varchar(3)",
        ),
        ("delete from {t} where id = 1",),
        "v = cast('abc' as varchar(3))",
    ),
    "negative_zero": (
        f"(id int, v double) {ACID}",
        ("insert into {t} values (1, '-0.0'), (2, '5.0')",),
        ("delete from {t} where id = 2",),
        "v = 0.0D",
    ),
}
CASES = [
    pytest.param(version, name, marks=pytest.mark.xdist_group(version), id=f"{version}-{name}")
    for version in (HIVE_3, THE_HIVE_4)
    for name in TABLES
    if version == HIVE_3 or name != FILTERS  # Hive 4 does not go on with another stripe's.
]
WAYS = ("row mode, fetch task", "vectorised, job")
PUSHED_DOWN = ("set hive.optimize.ppd=true", "set hive.optimize.index.filter=true")


@pytest.mark.parametrize(("version", "name"), CASES)
def test_hive_finds_the_same_by_pushed_down_predicates(start_hive: StartHive, version: str, name: str) -> None:
    hive, table = start_hive(version), f"{DATABASE}.{name}"
    definition, first, then, predicate = TABLES[name]
    hive.execute(f"create database if not exists {DATABASE}", *PUSHED_DOWN)
    for statement in (f"create table {{t}} {definition}", LEFT_TO_US, *first, *then):
        run(hive, table, statement)

    def found() -> dict[str, list[str]]:
        return {way: read(hive, f"{table} where {predicate}", "row__id, *", way) for way in WAYS}

    before = found()
    with compactor_for(hive, DATABASE, replace(SETTINGS, stripe_copy=CopiedStripes.ALWAYS)) as compactor:
        assert compactor.compact(Entity(DATABASE, name), CompactionType.MAJOR).targets
        compactor.clean(Entity(DATABASE, name))
    assert found() == before
    assert {len(rows) for rows in before.values()} == {1}
