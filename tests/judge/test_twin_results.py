"""Two committed results of one range of write ids, read by Hive 4.0.1: of deltas it reads the rows of both, and beside
two delete deltas it fails. Once one of them is removed it reads every row once.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import Chore, HousekeepingReport, StuckKind
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine, HiveStatementError
from tests.harness.hive_engine_program import HIVE_4
from tests.integration.compaction_site import Site
from tests.judge.conftest import StartHive
from tests.judge.readings import check_every_way
from tests.judge.table_kind import make_acid_table

pytestmark = pytest.mark.xdist_group(HIVE_4)

DATABASE = "twins"
TABLE = f"{DATABASE}.t"
PARTITION = Entity(DATABASE, "t", "p=a")
QUERY = f"select v, s, t from {TABLE} where p = 'a' order by v"
ROWS = ["1\ta\tNULL", "2\tb\t1901-02-03 04:05:06.789", "3\tNULL\tNULL"]


@pytest.fixture
def hive(start_hive: StartHive) -> HiveEngine:
    """Hive 4.0.1 with a partition of three inserts."""
    engine = start_hive(HIVE_4)
    make_acid_table(engine, TABLE, "(v int, s string, t timestamp) partitioned by (p string)")
    engine.execute(
        f"insert into {TABLE} partition (p = 'a') values (1, 'a', null)",
        f"insert into {TABLE} partition (p = 'a') values (2, 'b', '1901-02-03 04:05:06.789')",
        f"insert into {TABLE} partition (p = 'a') values (3, null, null)",
    )
    return engine


def compact(site: Site) -> None:
    outcome = site.compact(DuePartition(PARTITION, CompactionType.MINOR, "the judge wants to see it"))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert [cleaning.state for cleaning in site.clean(PARTITION)] == [CleaningState.CLEANED]


def make_twins(site: Site) -> None:
    """As Hive's worker carries a request out once more that a dying metastore had put back."""
    folder = site.admin.table_location(DATABASE, "t") / "p=a"
    txn = site.client.open_compaction_txn("another compaction")
    for made in sorted(folder.glob("*delta_*_v*")):
        shutil.copytree(made, folder / f"{made.name.partition('_v')[0]}_v{txn:07d}")
    site.client.commit(txn)


def repaired(site: Site) -> HousekeepingReport:
    settings = replace(site.settings, minor_lock_wait_seconds=2)
    keeper = Housekeeper(site.client, site.queue, settings, forgotten_seconds=3600, max_partitions=1, repair_twins=True)
    return keeper.sweep(TableSelection.of([TABLE]))


def test_rows_come_twice_before_and_once_after(hive: HiveEngine, site: Site) -> None:
    compact(site)
    assert hive.execute(QUERY) == ROWS
    hive.hold(QUERY)
    make_twins(site)
    (waiting,) = [item.message for item in repaired(site).stuck if item.kind is StuckKind.TWINS]
    assert "waits for transaction" in waiting
    assert hive.release() == ROWS, "the query began when there was only one"
    assert hive.execute(QUERY) == sorted([*ROWS, *ROWS])
    assert [deed.chore for deed in repaired(site).deeds] == [Chore.TWIN_REMOVED]
    check_every_way(hive, TABLE, "v, s, t", ROWS, "after the repair")


def test_beside_two_delete_deltas_nothing_can_be_read_before_and_each_row_once_after(
    hive: HiveEngine, site: Site
) -> None:
    hive.execute(f"delete from {TABLE} where p = 'a' and v = 1")
    compact(site)
    assert hive.execute(QUERY) == ROWS[1:]
    make_twins(site)
    with pytest.raises(HiveStatementError, match="Duplicate key"):
        hive.execute(QUERY)
    assert [deed.chore for deed in repaired(site).deeds] == [Chore.TWIN_REMOVED]
    check_every_way(hive, TABLE, "v, s, t", ROWS[1:], "after the repair")
