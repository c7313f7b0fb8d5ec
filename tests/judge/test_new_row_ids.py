"""What a compaction that gives rows new ids needs, beside what ours have: docs/adr/0011-new-row-ids.md.

A writer of Hive took its snapshot before such a compaction committed, so it names rows by the ids that they had, and
runs when the compaction is over. A lock alone only makes it wait.
"""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.hive_engine import HiveEngine, HiveStatementError
from tests.harness.hive_engine_program import HIVE_4, HIVE_4_2
from tests.integration.compaction_site import TxnType
from tests.judge.readings import read
from tests.judge.table_kind import ID_AND_TEXT, make_acid_table

DATABASE, TABLE = "new_row_ids", "new_row_ids.t"
ENGINES = {HIVE_4: "hive_4_engine", HIVE_4_2: "hive_4_2_engine"}
EXCL_WRITE, UPDATE = 4, 3
"""LockType and DataOperationType of a REBALANCE by Hive."""

BEFORE = ["1\ta", "2\tb", "3\tc"]
AFTER = ["1\tchanged", "2\tb", "3\tc"]
STATEMENT = f"update {TABLE} set s = 'changed' where id = 1"
_BUCKET_0 = 1 << 29
_SCHEMA = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    "row:struct<id:int,s:string>>"
)


@pytest.fixture(
    params=[pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_4, HIVE_4_2)]
)
def hive(request: pytest.FixtureRequest) -> HiveEngine:
    """With a table of three rows, whose ids are 0, 1 and 2."""
    engine: HiveEngine = request.getfixturevalue(ENGINES[request.param])
    make_acid_table(engine, TABLE, ID_AND_TEXT)
    engine.execute(f"insert into {TABLE} values (1, 'a'), (2, 'b'), (3, 'c')")
    return engine


class NewRowIds:
    """A compaction of that table whose base numbers the rows from the last to the first."""

    def __init__(self, hive: HiveEngine, type: TxnType) -> None:
        server = hive.metastore
        self._client = AcidMetastoreClient([MetastoreAddress(server.host, server.port)], user="judge")
        with self._client as client:
            self._txn = client._open_txn(type)
            client._lock(self._txn, [Entity(DATABASE, "t")], EXCL_WRITE, UPDATE, "judge")
        _write_base(Path(server.warehouse, f"{DATABASE}.db", "t", f"base_0000001_v{self._txn:07d}"))

    def commit(self) -> None:
        with self._client as client:
            client.commit(self._txn)


def _write_base(folder: Path) -> None:
    folder.mkdir()
    with (folder / "bucket_00000").open("xb") as file, pyorc.Writer(file, _SCHEMA) as writer:
        for row_id, text in enumerate(reversed(BEFORE)):
            number, letter = text.split("\t")
            writer.write((0, 1, _BUCKET_0, row_id, 1, (int(number), letter)))


def rows_after(hive: HiveEngine, type: TxnType, writer_begins_first: bool) -> tuple[bool, list[str]]:
    """Whether the writer's statement was carried out, and the table's rows."""
    if writer_begins_first:
        hive.hold(STATEMENT)
    compaction = NewRowIds(hive, type)
    if not writer_begins_first:
        hive.hold(STATEMENT)
    compaction.commit()
    try:
        hive.release()
    except HiveStatementError as error:
        if "due to a write conflict" not in str(error):
            raise
        return False, read(hive, TABLE, "*")
    return True, read(hive, TABLE, "*")


@pytest.mark.parametrize("writer_begins_first", [True, False], ids=["writer first", "compaction first"])
@pytest.mark.parametrize("exclusive_writes", ["true", "false"], ids=["exclusive writes", "shared writes"])
def test_a_transaction_that_counts_as_an_update_makes_the_writer_look_again_or_fail(
    hive: HiveEngine, writer_begins_first: bool, exclusive_writes: str
) -> None:
    hive.set({"hive.txn.write.xlock": exclusive_writes})
    is_done, rows = rows_after(hive, TxnType.REBALANCE_COMPACTION, writer_begins_first)
    assert rows == (AFTER if is_done else BEFORE)


@pytest.mark.parametrize("writer_begins_first", [True, False], ids=["writer first", "compaction first"])
def test_a_compactions_usual_transaction_loses_rows_whatever_it_locks(
    hive: HiveEngine, writer_begins_first: bool
) -> None:
    """Once this fails, the decision is to be looked at again."""
    is_done, rows = rows_after(hive, TxnType.COMPACTION, writer_begins_first)
    assert is_done
    assert rows == ["1\ta", "1\tchanged", "2\tb"]
