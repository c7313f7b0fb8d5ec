"""Rows that Hive finds by a filter before a compaction are found after it, by the limits that the merge made."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine_program import HIVE_3
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.compactors import compactor_for
from tests.judge.conftest import StartHive
from tests.judge.statements import run
from tests.judge.table_kind import make_acid_table

TABLE = "limits.t"
ROWS = (
    "(1, timestamp '2020-01-01 00:00:00.0005', '～'), (2, timestamp '2020-01-02 00:00:00', 'a')",
    "(3, timestamp '2019-01-01 00:00:00', '😀')",
)
FILTERS = {
    "ts = timestamp '2020-01-01 00:00:00.0005'": ["1"],
    "ts >= timestamp '2020-01-01 00:00:00.0003'": ["1"],
    "s = '😀'": ["3"],
    "s = '～'": ["1"],
}


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_3, THE_HIVE_4)]
)
def test_hive_finds_by_filters_what_it_found(start_hive: StartHive, version: str) -> None:
    hive = start_hive(version)
    make_acid_table(hive, TABLE, "(id int, ts timestamp, s string)")
    for values in ROWS:
        run(hive, TABLE, f"insert into {{t}} values {values}")
    run(hive, TABLE, "delete from {t} where id = 2")

    def found() -> dict[str, list[str]]:
        return {each: hive.execute(f"select id from {TABLE} where {each}") for each in FILTERS}

    assert found() == FILTERS
    with compactor_for(hive, "limits") as compactor:
        assert compactor.compact(Entity("limits", "t"), CompactionType.MAJOR).targets
        compactor.clean(Entity("limits", "t"))
    assert found() == FILTERS
