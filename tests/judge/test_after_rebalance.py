"""Tables whose rows Hive's own REBALANCE gave new ids and new files: this package compacts and cleans them like others.

The rebalance itself stays Hive's: docs/adr/0011-new-row-ids.md says why.
"""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import wait_until
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_4, HIVE_4_2
from tests.judge.compactors import compactor_for
from tests.judge.readings import check_bases, check_every_way, read
from tests.judge.table_kind import ID_AND_TEXT, changes, rows, table

DATABASE = "after_rebalance"
ENGINES = {HIVE_4: "hive_4_engine", HIVE_4_2: "hive_4_2_engine"}
WORKERS = "org.apache.hadoop.hive.ql.txn.compactor.CompactorWorkers"
REQUESTS = {"even": "", "three buckets": "clustered into 3 buckets", "sorted": "order by s desc, id"}

WRITTEN = table(
    ID_AND_TEXT,
    f"insert into {{t}} values {rows(1, 20)}",
    f"insert into {{t}} values {rows(21, 23)}",
    "update {t} set s = 'u' where id in (2, 21)",
    "delete from {t} where id = 3",
)


@pytest.fixture(
    params=[pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_4, HIVE_4_2)]
)
def hive(request: pytest.FixtureRequest) -> HiveEngine:
    """On PostgreSQL: Hive's Workers ask the metastore's database, and no two processes share Derby's."""
    engine: HiveEngine = request.getfixturevalue(ENGINES[request.param])
    return engine


def rebalance(hive: HiveEngine, name: str, how: str) -> None:
    """By Hive's own worker, which numbers the rows of all buckets in one go; waits until everybody sees that."""
    rows_before = len(read(hive, f"{DATABASE}.{name}", "*"))
    # A query of Hive fails where its own Cleaner deletes below it.
    ended = "succeeded" if hive.metastore.own_cleaner else "ready for cleaning"
    hive.set({"hive.compactor.crud.query.based": "true"})
    hive.execute(f"alter table {DATABASE}.{name} compact 'rebalance' {how}")
    hive.call(WORKERS, "1")
    try:
        wait_until(lambda: shown(hive, name) == ended, 60)
        # It commits after that.
        wait_until(lambda: row_numbers(hive, name) == list(range(rows_before)), 60)
    finally:
        hive.call(WORKERS, "0")
        hive.set({"hive.compactor.crud.query.based": "false"})


def row_numbers(hive: HiveEngine, name: str) -> list[int]:
    return sorted(int(number) for number in read(hive, f"{DATABASE}.{name}", "row__id.rowid"))


def shown(hive: HiveEngine, name: str) -> str:
    """The state of a table's first request in SHOW COMPACTIONS."""
    lines = [line.split("\t") for line in hive.execute("show compactions")]
    return min((int(line[0]), line[5]) for line in lines if line[1:3] == [DATABASE, name])[1]


@pytest.mark.parametrize("request_for", REQUESTS)
def test_what_hive_rebalanced_is_compacted_and_cleaned(hive: HiveEngine, request_for: str) -> None:
    """On Hive 4.0 its request waits to be cleaned without the time of its commit, which is no reason to stop."""
    name = request_for.replace(" ", "_")
    full_name, entity = f"{DATABASE}.{name}", Entity(DATABASE, name)
    hive.execute(f"create database if not exists {DATABASE}", f"drop table if exists {full_name}")
    hive.execute(*(str(statement).format(t=full_name) for statement in WRITTEN))
    before = read(hive, full_name, "*")
    rebalance(hive, name, REQUESTS[request_for])
    assert read(hive, full_name, "*") == before
    hive.execute(*(str(statement).format(t=full_name) for statement in changes()))
    written = read(hive, full_name, "row__id, *")
    with compactor_for(hive, DATABASE) as compactor:
        for kind in (CompactionType.MINOR, CompactionType.MAJOR):
            assert compactor.compact(entity, kind).targets
            assert read(hive, full_name, "row__id, *") == written, kind
            compactor.clean(entity)
            check_every_way(hive, full_name, "row__id, *", written, f"after the cleaning of our {kind.value}")
    check_bases(hive, full_name, "after our major")
