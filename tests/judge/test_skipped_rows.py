"""Tables of which Hive 3.1 leaves out the first rows of every file are refused: a merge would show other rows."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine_program import HIVE_3
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.compactors import compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import FETCHES, check_every_way, read
from tests.judge.statements import run
from tests.judge.table_kind import make_acid_table

TABLE = "skipped.t"


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_3, THE_HIVE_4)]
)
def test_a_table_whose_header_lines_are_skipped_is_left_as_it_is(start_hive: StartHive, version: str) -> None:
    hive = start_hive(version)
    make_acid_table(hive, TABLE, "(id int)")
    for values in ("(1), (2)", "(3), (4)"):
        run(hive, TABLE, f"insert into {{t}} values {values}")
    run(hive, TABLE, "alter table {t} set tblproperties ('skip.header.line.count'='1')")
    # Its jobs read all of them, or none: which rows there are is a question of the way.
    found = {way: read(hive, TABLE, "id", way) for way in FETCHES}
    assert found == dict.fromkeys(FETCHES, ["2", "4"] if version == HIVE_3 else ["1", "2", "3", "4"])
    with compactor_for(hive, "skipped") as compactor:
        outcome = compactor.site.compact(DuePartition(Entity("skipped", "t"), CompactionType.MAJOR, "the judge asks"))
        assert outcome.state is OutcomeState.REFUSED, outcome
        assert "has skip.header.line.count" in outcome.message
        assert {way: read(hive, TABLE, "id", way) for way in FETCHES} == found
        run(hive, TABLE, "alter table {t} unset tblproperties ('skip.header.line.count')")
        assert compactor.compact(Entity("skipped", "t"), CompactionType.MAJOR).targets
    check_every_way(hive, TABLE, "id", ["1", "2", "3", "4"], "without the property")
