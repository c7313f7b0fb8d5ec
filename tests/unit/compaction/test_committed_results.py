"""What a dead attempt left one step before its end is made ready for cleaning, and never committed for it."""

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
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, OpenTxns, TxnInfo, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_history.compactor import Compactor
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.steps import Death, Statement, TableKind, What, Write
from tests.harness.acid_history.writer import write_and_commit

TABLE = Entity("db", "t")
TXN = 7
DEAD = RequestPool("0123456789ab", "fedcba9876543210")
WORKER = DEAD.worker_id("here")
SOURCES = ("delta_0000001_0000002_v0000003", "delta_0000003_0000003_0000")
RESULT = f"base_0000003_v{TXN:07d}"
TIMEOUT_SECONDS, NOW_MS = 300.0, 1_000_000
WORKING, READY = CompactionState.WORKING, CompactionState.READY_FOR_CLEANING


class Metastore:
    """Knows the attempt's transaction, and is its queue as well."""

    def __init__(self, state: TxnState) -> None:
        self.state = state
        self.failed: list[str] = []
        self.completed: list[ClaimedCompaction] = []

    def transaction_state(self, txn_id: int) -> TxnState:
        assert txn_id == TXN
        return self.state

    def open_transactions(self) -> OpenTxns:
        known = {state: (TXN,) if state is self.state else () for state in TxnState}
        return OpenTxns(TXN, known[TxnState.OPEN], known[TxnState.ABORTED], None)

    def abort(self, txn_id: int) -> None:
        self.state = TxnState.ABORTED

    def fail(self, row: CompactionRow, message: str) -> None:
        self.failed.append(message)

    def complete(self, claim: ClaimedCompaction) -> None:
        self.completed.append(claim)


def row(state: CompactionState, worker: str | None = None, commit_ms: int | None = None) -> CompactionRow:
    return CompactionRow(
        1, TABLE, "major", state, worker, str(DEAD), highest_write_id=3, txn_id=TXN, commit_ms=commit_ms
    )


def settled(place: Path, found: CompactionRow, state: TxnState, heard_ms: int) -> tuple[Metastore, OutcomeState | None]:
    for name in (*SOURCES, RESULT):
        (place / name).mkdir()
    metastore: Any = Metastore(state)
    settings = CompactionSettings(readers_honour_visibility=True)
    known = {} if state is TxnState.COMMITTED_OR_UNKNOWN else {TXN: state}
    txns = {id: TxnInfo(id, of, "airflow", str(DEAD), None, 0, heard_ms) for id, of in known.items()}
    attempts = Attempts(txns, NOW_MS, TIMEOUT_SECONDS)
    partition = RecoveredPartition(TABLE, LocalStorage(str(place)), lambda: attempts, nobodys_pool(TABLE), None)
    outcome = CommittedResults(metastore, metastore, settings).settle(attempts, found, None, partition)
    return cast(Metastore, metastore), None if outcome is None else outcome.state


@pytest.mark.parametrize(
    ("found", "is_unsettled"),
    [
        (row(WORKING, WORKER, NOW_MS), True),
        (row(WORKING, WORKER), False),
        (row(WORKING, "hive-server-12", NOW_MS), False),
        (row(CompactionState.INITIATED, commit_ms=NOW_MS), True),
        (row(CompactionState.INITIATED), False),
        (row(READY), True),
        (row(READY, commit_ms=NOW_MS), False),
        (row(CompactionState.FAILED, WORKER, NOW_MS), False),
    ],
    ids=[
        "committed",
        "at work",
        "of Hive's worker",
        "taken back",
        "asked for",
        "ready, not committed",
        "ready",
        "history",
    ],
)
def test_what_is_committed_and_not_ready_or_the_other_way_round_is_unsettled(
    found: CompactionRow, is_unsettled: bool
) -> None:
    metastore: Any = Metastore(TxnState.OPEN)
    assert CommittedResults(metastore, metastore, CompactionSettings()).is_unsettled(found) is is_unsettled


def test_what_is_committed_is_made_ready_for_cleaning(tmp_path: Path) -> None:
    found = row(WORKING, WORKER, NOW_MS)
    metastore, state = settled(tmp_path, found, TxnState.COMMITTED_OR_UNKNOWN, 0)
    (claim,) = metastore.completed
    assert (claim.id, claim.worker_id, claim.txn_id, claim.info.highest_write_id) == (1, WORKER, TXN, 3)
    assert (state, metastore.failed) == (OutcomeState.COMPACTED, [])
    assert (tmp_path / RESULT).exists()


@pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
def test_what_is_ready_and_was_never_committed_is_taken_back(tmp_path: Path, state: TxnState) -> None:
    """No release from now on leaves it so; Hive's own worker compacts beside it, and both might be read."""
    metastore, outcome = settled(tmp_path, row(READY), state, 0)
    assert (metastore.state, outcome, len(metastore.failed)) == (TxnState.ABORTED, None, 1)
    assert [(tmp_path / name).exists() for name in (*SOURCES, RESULT)] == [True, True, False]


def test_whoever_is_alive_is_left_to_commit_it_himself(tmp_path: Path) -> None:
    metastore, outcome = settled(tmp_path, row(READY), TxnState.OPEN, NOW_MS)
    assert (metastore.state, outcome, metastore.failed) == (TxnState.OPEN, OutcomeState.SKIPPED, [])
    assert (tmp_path / RESULT).exists()


def test_who_commits_while_a_successor_looks_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held up for long, and goes on between the successor's look at the requests and that at who is alive."""
    partition = Partition(TableKind(4), tmp_path / "warehouse")
    compactor = Compactor(partition, lambda _: None, lambda: False)
    for _ in range(2):
        write_and_commit(partition, Write((Statement(What.INSERT, (0,)),)))
    assert compactor.recover() is None
    compactor.start(CompactionType.MAJOR)
    compactor.finish(Death.AFTER_PUBLISHING)
    (asleep,) = partition.metastore.silent
    before = visible(partition)
    rows = partition.queue.rows

    def rows_before_it_wakes(**wanted: Any) -> list[CompactionRow]:
        found = rows(**wanted)
        compactor.wake(asleep)
        return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(partition.queue, "rows", rows_before_it_wakes)
        assert "which was only asleep" in str(compactor.recover())
    assert visible(partition) == before
    (now,) = partition.metastore.rows.values()
    assert now.state is READY


def visible(partition: Partition) -> list[str]:
    return sorted(path.name for path in partition.folder.iterdir() if not path.name.startswith("_"))
