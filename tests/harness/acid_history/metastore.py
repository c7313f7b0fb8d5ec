"""The metastore's part of a history: transactions, write ids, locks and the compaction queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from tests.harness.acid_reader import Snapshot

ENTITY = Entity("db", "t")
TABLE = ENTITY.full_table_name
NOW_MS = 10_000_000
"""The time of everything; of the dead nothing was heard since 0."""


class State(Enum):
    """What became of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class TxnType(IntEnum):
    """Hive 4's types of transactions, with their numbers."""

    DEFAULT = 0
    READ_ONLY = 2
    COMPACTION = 3
    SOFT_DELETE = 5


class LockKind(IntEnum):
    """Types of locks, with their numbers."""

    SHARED_READ = 1
    SHARED_WRITE = 2
    EXCLUSIVE = 3


@dataclass(frozen=True)
class Lock:
    """A lock on the partition, held or waited for."""

    id: int
    txn: int
    kind: LockKind
    is_granted: bool


class ModelMetastore:
    """Transactions, write ids and locks of one table, and its compaction queue.

    :param first_write_id: the first that is given out.
    """

    def __init__(self, first_write_id: int) -> None:
        self._states: dict[int, State] = {}
        self._types: dict[int, TxnType] = {}
        self._hosts: dict[int, str] = {}
        self._silent: set[int] = set()
        self._locks: dict[int, Lock] = {}
        self._last_lock_id = self._last_row_id = 0
        self.rows: dict[int, CompactionRow] = {}
        """The queue and its history, by id; Hive 4's soft deletes among them."""
        self._txn_of: dict[int, int] = {}
        self._forgotten: set[int] = set()
        self._next_write_id = first_write_id
        self._first_write_id = first_write_id

    def open(self, type: TxnType = TxnType.DEFAULT, host: str = "there") -> int:
        """Open a transaction."""
        txn = len(self._states) + 1
        self._states[txn] = State.OPEN
        self._types[txn] = type
        self._hosts[txn] = host
        return txn

    def allocate(self, txn: int) -> int:
        """The write id of an open transaction, which gets one where it has none."""
        for write_id, owner in self._txn_of.items():
            if owner == txn:
                return write_id
        write_id = self._next_write_id
        self._next_write_id += 1
        self._txn_of[write_id] = txn
        return write_id

    def end(self, txn: int, state: State) -> None:
        """Commit or abort; its locks go, its rows of the queue are committed, or, of a soft delete, go as well."""
        assert self._states[txn] is State.OPEN
        self._states[txn] = state
        self._silent.discard(txn)
        self._locks = {id: lock for id, lock in self._locks.items() if lock.txn != txn}
        for row in [row for row in self.rows.values() if row.txn_id == txn and row.commit_ms is None]:
            if state is State.COMMITTED:
                # Whatever state it is in (seen on Hive 4.0 to 4.2).
                self.rows[row.id] = replace(row, commit_ms=NOW_MS, next_txn_id=self.txn_high_water_mark)
            elif self._types[txn] is TxnType.SOFT_DELETE:
                # Of a compaction it stays (HIVE-29572).
                del self.rows[row.id]

    def fall_silent(self, txn: int) -> None:
        """Whoever opened a transaction is dead: it stays open until somebody ends it, but nothing is heard of it."""
        assert self._states[txn] is State.OPEN
        self._silent.add(txn)

    @property
    def silent(self) -> list[int]:
        """Open transactions of the dead."""
        return sorted(self._silent)

    def lock(self, txn: int, kind: LockKind) -> Lock:
        """Ask for a lock; it is granted at once, or waits."""
        assert self._states[txn] is State.OPEN
        self._last_lock_id += 1
        self._locks[self._last_lock_id] = Lock(self._last_lock_id, txn, kind, False)
        return self.looked_up(self._last_lock_id)

    def looked_up(self, lock_id: int) -> Lock:
        """A lock; one that waited is granted as soon as nothing that was asked for before stands in its way."""
        lock = self._locks[lock_id]
        before = [other for other in self._locks.values() if other.txn != lock.txn and other.id < lock_id]
        is_in_the_way = LockKind.EXCLUSIVE in (lock.kind, *(other.kind for other in before))
        if not (before and is_in_the_way):
            self._locks[lock_id] = replace(lock, is_granted=True)
        return self._locks[lock_id]

    @property
    def locks(self) -> tuple[Lock, ...]:
        """All that are held or waited for."""
        return tuple(self._locks.values())

    @property
    def is_closed(self) -> bool:
        """Whether whoever asks for a lock now waits behind an EXCLUSIVE one."""
        return any(lock.kind is LockKind.EXCLUSIVE for lock in self._locks.values())

    @property
    def last_lock_id(self) -> int:
        """The highest id of a lock that was given out."""
        return self._last_lock_id

    def add_row(self, row: CompactionRow) -> CompactionRow:
        """Put a row into the queue, under the next id."""
        self._last_row_id += 1
        self.rows[self._last_row_id] = replace(row, id=self._last_row_id)
        return self.rows[self._last_row_id]

    def change_row(self, row: CompactionRow) -> CompactionRow:
        """A row of the queue as it is from now on."""
        self.rows[row.id] = row
        return row

    def move_row(self, id: int, state: CompactionState) -> None:
        """A row of the queue gets into another state."""
        self.change_row(replace(self.rows[id], state=state))

    def mark_compacted(self, id: int) -> None:
        """A row waits for its cleaning."""
        self.change_row(replace(self.rows[id], state=CompactionState.READY_FOR_CLEANING, worker_id=None))

    def type(self, txn: int) -> TxnType:
        """A transaction's type."""
        return self._types[txn]

    def host(self, txn: int) -> str:
        """Who opened a transaction."""
        return self._hosts[txn]

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
