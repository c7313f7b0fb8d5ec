"""What a dead attempt left one step before its commit is committed, unless it would be read beside another's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.recover.attempts import Attempts, nobodys_pool
from airflow_provider_acid.compaction.recover.dead_results import CommittedResults
from airflow_provider_acid.compaction.recover.recovered_partition import RecoveredPartition
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, OpenTxns, TxnInfo, TxnState
from airflow_provider_acid.storages.local import LocalStorage

TABLE = Entity("db", "t")
TXN, RIVAL = 7, 9
DEAD = RequestPool("0123456789ab", "fedcba9876543210")
ROW = CompactionRow(1, TABLE, "major", CompactionState.READY_FOR_CLEANING, txn_id=TXN)
TIMEOUT_SECONDS, NOW_MS = 300.0, 1_000_000


class Metastore:
    """Knows the dead attempt's transaction, and is its queue as well."""

    def __init__(self) -> None:
        self.state = TxnState.OPEN
        self.failed: list[str] = []
        self.others: tuple[CompactionRow, ...] = ()

    def rows(self, entity: Entity, state: CompactionState) -> tuple[CompactionRow, ...]:
        assert entity == TABLE
        return tuple(row for row in (ROW, *self.others) if row.state is state)

    def transaction_state(self, txn_id: int) -> TxnState:
        assert txn_id == TXN
        return self.state

    def open_transactions(self) -> OpenTxns:
        known = {state: (TXN,) if state is self.state else () for state in TxnState}
        return OpenTxns(RIVAL, known[TxnState.OPEN], known[TxnState.ABORTED], None)

    def commit(self, txn_id: int) -> None:
        self.state = TxnState.COMMITTED_OR_UNKNOWN

    def abort(self, txn_id: int) -> None:
        self.state = TxnState.ABORTED

    def fail(self, row: CompactionRow, message: str) -> None:
        self.failed.append(message)


def settled(
    place: Path, *directories: str, others: tuple[CompactionRow, ...] = ()
) -> tuple[Metastore, OutcomeState | None]:
    for name in directories:
        (place / name).mkdir()
    metastore: Any = Metastore()
    metastore.others = others
    settings = CompactionSettings(readers_honour_visibility=True)
    txn = TxnInfo(TXN, TxnState.OPEN, "airflow", str(DEAD), None, 0, 0)
    attempts = Attempts({TXN: txn}, NOW_MS, TIMEOUT_SECONDS)
    storage = LocalStorage(str(place))
    partition = RecoveredPartition(TABLE, storage, lambda: attempts, nobodys_pool(TABLE), None)
    outcome = CommittedResults(metastore, metastore, settings).settle(attempts, ROW, None, partition)
    return cast(Metastore, metastore), None if outcome is None else outcome.state


SOURCES = ("delta_0000001_0000002_v0000003", "delta_0000003_0000003_0000", "delete_delta_0000003_0000003_0001")


@pytest.mark.parametrize(
    "published",
    [
        (f"base_0000003_v{TXN:07d}",),
        (f"delta_0000001_0000003_v{TXN:07d}", f"delete_delta_0000001_0000003_v{TXN:07d}"),
    ],
    ids=["a base", "a pair"],
)
def test_it_is_committed_beside_its_sources(tmp_path: Path, published: tuple[str, ...]) -> None:
    metastore, state = settled(tmp_path, *SOURCES, *published)
    assert (metastore.state, state) == (TxnState.COMMITTED_OR_UNKNOWN, OutcomeState.COMPACTED)


@pytest.mark.parametrize(
    ("published", "rivals"),
    [
        (f"delta_0000001_0000003_v{TXN:07d}", f"delta_0000001_0000003_v{RIVAL:07d}"),
        (f"delta_0000001_0000003_v{TXN:07d}", f"delta_0000002_0000004_v{RIVAL:07d}"),
        (f"base_0000003_v{TXN:07d}", f"delta_0000001_0000004_v{RIVAL:07d}"),
    ],
    ids=["the same range twice", "ranges that overlap", "a base inside a range"],
)
def test_it_is_aborted_where_hive_compacted_the_same_rows_meanwhile(
    tmp_path: Path, published: str, rivals: str
) -> None:
    metastore, state = settled(tmp_path, *SOURCES, published, rivals)
    assert (metastore.state, state, len(metastore.failed)) == (TxnState.ABORTED, None, 1)
    assert not (tmp_path / published).exists()
    assert (tmp_path / rivals).exists()


@pytest.mark.parametrize(
    ("worker", "end"),
    [
        ("hive-server-12", (TxnState.OPEN, OutcomeState.SKIPPED)),
        (DEAD.worker_id("here"), (TxnState.COMMITTED_OR_UNKNOWN, OutcomeState.COMPACTED)),
    ],
    ids=["Hive's worker", "one of ours"],
)
def test_it_waits_while_a_worker_compacts_that_looks_no_more(
    tmp_path: Path, worker: str, end: tuple[TxnState, OutcomeState]
) -> None:
    row = CompactionRow(2, TABLE, "minor", CompactionState.WORKING, worker_id=worker)
    metastore, state = settled(tmp_path, *SOURCES, f"delta_0000001_0000003_v{TXN:07d}", others=(row,))
    assert (metastore.state, state) == end
    assert metastore.failed == []


def test_it_is_aborted_where_a_newer_compaction_waits_for_its_cleaning(tmp_path: Path) -> None:
    """Its cleaning waits for nobody who began after it, and would count what is committed now."""
    published, rivals = f"base_0000003_v{TXN:07d}", f"delta_0000001_0000003_v{RIVAL:07d}"
    newer = CompactionRow(2, TABLE, "minor", CompactionState.READY_FOR_CLEANING, txn_id=RIVAL, commit_ms=NOW_MS)
    metastore, state = settled(tmp_path, *SOURCES, published, rivals, others=(newer,))
    assert (metastore.state, state, len(metastore.failed)) == (TxnState.ABORTED, None, 1)
    assert not (tmp_path / published).exists()
