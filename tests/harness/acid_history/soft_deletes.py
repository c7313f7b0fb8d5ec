"""What Hive 4 drops and leaves to its own Cleaner: rows of the queue that are no compactions, and their files."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from tests.harness.acid_history.metastore import ENTITY, State, TxnType
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.steps import Outcome, SoftDelete


class SoftDeletes:
    """The soft deletes of a history; on Hive 3 there are none."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._rows: list[CompactionRow] = []
        self.open: list[int] = []
        """Transactions that have not ended."""

    def add(self, step: SoftDelete) -> str | None:
        """A table of the same name was dropped before; its directory bears the transaction that dropped it."""
        if self._partition.kind.hive_version != 4:
            return None
        metastore = self._partition.metastore
        txn = metastore.open(TxnType.SOFT_DELETE)
        (self._partition.folder.parent / f"t_v{txn:07d}" / "delta_0000001_0000001_0000").mkdir(parents=True)
        ready = CompactionState.READY_FOR_CLEANING
        row = metastore.add_row(CompactionRow(0, ENTITY, "major", ready, highest_write_id=1, txn_id=txn))
        self._rows.append(row)
        self.open.append(txn)
        if step.outcome is not Outcome.OPEN:
            self.end(txn, State.COMMITTED if step.outcome is Outcome.COMMIT else State.ABORTED)
        return f"transaction {txn}, request {row.id}"

    def end(self, txn: int, state: State) -> None:
        """One commits, or never was."""
        self.open.remove(txn)
        self._partition.metastore.end(txn, state)
        if state is State.ABORTED:
            self._rows = [row for row in self._rows if row.txn_id != txn]

    def check(self) -> None:
        """Every row waits for Hive's own Cleaner, and its files with it.

        :raises AssertionError: one was taken for a compaction.
        """
        for row in self._rows:
            now = self._partition.metastore.rows.get(row.id)
            is_as_it_was = now is not None and replace(now, commit_ms=None, next_txn_id=None) == row
            assert is_as_it_was, f"the soft delete {row} was ended, and its files stay for ever: {now}"
