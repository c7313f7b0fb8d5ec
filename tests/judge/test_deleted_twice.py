"""A row that two transactions deleted, and what Hive 3.1's readers make of a merge of one of them (docs/protocol.md).

Its metastore lets both commit. DELETEs of its own keep each other from it, for each takes its snapshot behind its lock;
so the second is written here as by another program.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyorc
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3
from tests.integration.compaction_site import Site
from tests.judge.conftest import StartHive
from tests.judge.readings import WAYS, check_every_way, read
from tests.judge.table_kind import make_acid_table
from tests.unit.merge.acid_files import delete

pytestmark = pytest.mark.xdist_group(HIVE_3)

DATABASE = "deleted_twice"
TABLE = f"{DATABASE}.t"
ENTITY = Entity(DATABASE, "t")
SHARED_WRITE, DELETE = 2, 4
"""LockType and DataOperationType of a DELETE by Hive."""

LEFT = ["0", "5"]
BROUGHT_BACK = ["0", "2", "3", "4", "5"]
"""Of the merged delete delta, what follows the row that was deleted twice is dropped."""

_SCHEMA = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    "row:struct<v:bigint>>"
)


@pytest.fixture
def hive(start_hive: StartHive) -> HiveEngine:
    """Hive 3.1.3 with a table of six rows, each of which is its own row number."""
    engine = start_hive(HIVE_3)
    make_acid_table(engine, TABLE, "(v bigint)")
    engine.execute(f"insert overwrite table {TABLE} select stack(6, 0L, 1L, 2L, 3L, 4L, 5L)")
    return engine


def delete_twice(hive: HiveEngine, site: Site) -> tuple[str, ...]:
    """Row 1, by two transactions that overlap; a minor is asked for between their ends. Its results."""
    (second,) = site.admin.open_transactions()
    hive.execute(f"delete from {TABLE} where v = 1", f"delete from {TABLE} where v in (2, 3, 4)")
    outcome = site.compact(DuePartition(ENTITY, CompactionType.MINOR, "the judge wants to see it"))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    check_every_way(hive, TABLE, "v", LEFT, "before the second transaction ends")
    write_id = site.admin.allocate_write_ids(DATABASE, "t", [second])[second]
    site.client._lock(second, [ENTITY], SHARED_WRITE, DELETE, "judge")
    write_delete(site.admin.table_location(DATABASE, "t"), write_id)
    site.admin.commit(second)
    return outcome.targets


def write_delete(table: Path, write_id: int) -> None:
    """A delete delta that names row 1, with the statistics that Hive 3.1's vectorised reader wants to find."""
    folder = table / f"delete_delta_{write_id:07d}_{write_id:07d}_0000"
    folder.mkdir()
    with (folder / "bucket_00000").open("xb") as file, pyorc.Writer(file, _SCHEMA) as writer:
        writer.write(delete(1, 1, write_id))
        writer.set_user_metadata(**{"hive.acid.stats": b"0,0,1"})


def test_behind_a_minor_of_deletes_a_job_of_hive_3_reads_deleted_rows_again(hive: HiveEngine, site: Site) -> None:
    """Once this fails, the rule is to be looked at again."""
    assert delete_twice(hive, site) == ("delete_delta_0000002_0000003",)
    found = {way: read(hive, TABLE, "v", way) for way in WAYS}
    assert found == {**dict.fromkeys(WAYS, LEFT), "vectorised, job": BROUGHT_BACK}


def test_behind_the_major_in_its_place_no_way_of_reading_does(hive: HiveEngine, site: Site) -> None:
    site.settings = replace(site.settings, minor_pairs_on_hive_3=False)
    assert delete_twice(hive, site) == ("base_0000003",)
    check_every_way(hive, TABLE, "v", LEFT, "after the major")
