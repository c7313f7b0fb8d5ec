"""The metastore's part of a history: transactions, write ids, and what it answers about them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList
from tests.harness.acid_reader import Snapshot

TABLE = "db.t"


class State(Enum):
    """What became of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class ModelMetastore:
    """Transactions and the write ids of one table.

    :param first_write_id: the first that is given out.
    """

    def __init__(self, first_write_id: int) -> None:
        self._states: dict[int, State] = {}
        self._txn_of: dict[int, int] = {}
        self._forgotten: set[int] = set()
        self._next_write_id = first_write_id
        self._first_write_id = first_write_id

    def open(self) -> int:
        """Open a transaction."""
        txn = len(self._states) + 1
        self._states[txn] = State.OPEN
        return txn

    def allocate(self, txn: int) -> int:
        """Give an open transaction a write id."""
        write_id = self._next_write_id
        self._next_write_id += 1
        self._txn_of[write_id] = txn
        return write_id

    def end(self, txn: int, state: State) -> None:
        """Commit or abort."""
        assert self._states[txn] is State.OPEN
        self._states[txn] = state

    def forget(self, txns: Iterable[int]) -> None:
        """Drop aborted transactions of which nothing is left: from here on they count as committed."""
        for txn in txns:
            assert self._states[txn] is State.ABORTED
            self._forgotten.add(txn)

    def state(self, txn: int) -> State:
        """What really became of a transaction."""
        return self._states[txn]

    def state_of_write_id(self, write_id: int) -> State:
        """What really became of the transaction of a write id."""
        return self._states[self._txn_of[write_id]]

    def txn_of(self, write_id: int) -> int:
        """The transaction of a write id."""
        return self._txn_of[write_id]

    def txns(self, state: State) -> list[int]:
        """The transactions it would call open, or aborted."""
        return [txn for txn, found in self._states.items() if found is state and txn not in self._forgotten]

    @property
    def txn_high_water_mark(self) -> int:
        """The highest transaction id given out."""
        return len(self._states)

    @property
    def min_open_txn(self) -> int:
        """The lowest open transaction, or the next one."""
        return min(self.txns(State.OPEN), default=self.txn_high_water_mark + 1)

    def committed_write_ids(self) -> frozenset[int]:
        """The truth, which no forgetting changes; 0 stands for the rows from before the table was transactional."""
        committed = {write_id for write_id, txn in self._txn_of.items() if self._states[txn] is State.COMMITTED}
        return frozenset(committed | {0})

    def reader_snapshot(self) -> Snapshot:
        """What a query that starts now is told."""
        known = {write_id: self._states[txn] for write_id, txn in self._txn_of.items() if txn not in self._forgotten}
        return Snapshot(
            high_water_mark=self._next_write_id - 1,
            open_write_ids=frozenset(write_id for write_id, state in known.items() if state is State.OPEN),
            aborted_write_ids=frozenset(write_id for write_id, state in known.items() if state is State.ABORTED),
            invalid_transactions=frozenset(self.txns(State.OPEN) + self.txns(State.ABORTED)),
            transaction_high_water_mark=self.txn_high_water_mark,
        )

    def valid_txns(self) -> ValidTxnList:
        """Its answer to ``get_open_txns``."""
        return ValidTxnList(self.txn_high_water_mark, tuple(self.txns(State.OPEN)), tuple(self.txns(State.ABORTED)))

    def valid_write_ids(self, txns: ValidTxnList) -> TableWriteIds:
        """Its answer to ``get_valid_write_ids`` for a list of transactions (``GetValidWriteIdsForTableFunction``)."""
        allocated = [write_id for write_id, txn in self._txn_of.items() if txn <= txns.high_water_mark]
        mark = max(allocated, default=self._next_write_id - 1)
        invalid = {
            write_id: txn for write_id, txn in self._txn_of.items() if write_id <= mark and not txns.is_txn_valid(txn)
        }
        aborted = frozenset(write_id for write_id, txn in invalid.items() if txns.is_txn_aborted(txn))
        still_open = frozenset(invalid) - aborted
        return TableWriteIds(TABLE, mark, still_open, aborted, min(still_open, default=None))
