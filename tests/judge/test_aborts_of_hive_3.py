"""What Hive 3 itself forgets of aborted writes, without any compaction (docs/hive-3.md, Aborted writes)."""

from __future__ import annotations

import pytest

from tests.harness.compaction_chain import wait_until
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3
from tests.judge.conftest import StartHive
from tests.judge.readings import read

DATABASE = "aborts"
FULL_ACID, INSERT_ONLY = "", ", 'transactional_properties'='insert_only'"

pytestmark = pytest.mark.xdist_group(HIVE_3)


def test_hive_3_brings_an_aborted_write_to_a_partition_it_does_not_name_back_where_the_table_is_insert_only(
    start_hive: StartHive,
) -> None:
    hive = start_hive(HIVE_3)
    hive.execute(f"create database if not exists {DATABASE}")
    naming, not_naming = "partition(p = 'x') values (2, 'never')", "partition(p) values (2, 'never', 'x')"
    named = _table_with_an_aborted_write(hive, "named", INSERT_ONLY, naming)
    full_acid = _table_with_an_aborted_write(hive, "full_acid", FULL_ACID, not_naming)
    not_named = _table_with_an_aborted_write(hive, "not_named", INSERT_ONLY, not_naming)
    wait_until(lambda: len(read(hive, not_named, "*")) == 2)  # The Initiator removes the transaction.
    for table in named, full_acid:
        assert read(hive, table, "*") == ["1\ta\tx"], "the metastore has a record of where this one wrote"


def _table_with_an_aborted_write(hive: HiveEngine, name: str, properties: str, write: str) -> str:
    """One committed row in p=x, and one that was rolled back."""
    table = f"{DATABASE}.{name}"
    hive.execute(
        f"create table {table} (id int, s string) partitioned by (p string) stored as orc "
        f"tblproperties ('transactional'='true'{properties})",
        f"insert into {table} partition(p = 'x') values (1, 'a')",
    )
    with hive.aborting():
        hive.execute(f"insert into {table} {write}")
    return table
