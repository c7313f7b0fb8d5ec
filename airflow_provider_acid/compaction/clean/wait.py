"""Who may still read what a compaction replaced: the Cleaner's waiting, by one look for all its rows.

Where the commit publishes (Hive 4), everybody who may still need the merged directories has a transaction that is not
newer than the compaction's commit. Where the rename publishes (Hive 3.1) a reader may have a lock without a
transaction, so the locks that were there after the rename count as well. Readers that have neither are nowhere to be
seen; only the retention time is for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from airflow_provider_acid.metastore.values import CompactionRow, LockInfo, LocksByPlace, OpenTxns, TxnInfo

OPENING_SECONDS = 1.0
"""How long a transaction may have an id without being listed as open (``metastore.txn.opentxn.timeout``)."""


class ReadersClient(Protocol):
    """What finding readers needs of a metastore client; see AcidMetastoreClient."""

    def open_transactions(self) -> OpenTxns:
        """The transactions that are open or aborted now."""

    def transactions(self) -> list[TxnInfo]:
        """The same with owner and times."""

    def show_locks(self) -> list[LockInfo]:
        """All locks, held or waited for."""

    def server_now_ms(self) -> int:
        """The clock of all these times."""


@dataclass(frozen=True)
class Horizon:
    """Up to where everything has ended that can be needed by somebody.

    :param min_open_txn: the lowest transaction that was open; where none was, the next one.
    :param aborted_txns: all below it that were aborted and are remembered, ascending.
    """

    min_open_txn: int
    aborted_txns: tuple[int, ...]


class Readers:
    """Open transactions and locks of one moment.

    :param cleaner_retention_seconds: how long after its publication a compaction is not cleaned in any case.
    :param locks_count: whether locks are looked at, too.
    :param queue_seconds: longest wait for the EXCLUSIVE lock under which is deleted; who has had a lock for longer than
        that is taken for somebody who stays. None where it is deleted without that lock, too.
    """

    def __init__(
        self, client: ReadersClient, cleaner_retention_seconds: float, *, locks_count: bool, queue_seconds: float | None
    ) -> None:
        self._client = client
        self._retention_seconds = cleaner_retention_seconds
        self._locks_count = locks_count
        self._queue_seconds = queue_seconds
        looks = locks_count or queue_seconds is not None
        self._locks = LocksByPlace(sorted(client.show_locks(), key=lambda lock: lock.lock_id) if looks else ())
        self._txns = client.open_transactions()
        self._min_open = _min_open(self._txns)

    @property
    def horizon(self) -> Horizon:
        """What the looks have shown."""
        return Horizon(self._min_open, self._txns.aborted)

    def look_again(self) -> None:
        """Look for transactions that were just being opened at the first look: they had an id already."""
        self._txns = self._client.open_transactions()
        self._min_open = min(self._min_open, _min_open(self._txns))

    @cached_property
    def now_ms(self) -> int:
        """The metastore database's clock. Asking costs a transaction, and is done once and only where needed."""
        return self._client.server_now_ms()

    def waits_for(self, row: CompactionRow) -> str | None:
        """Why a compaction cannot be cleaned yet, as the end of a sentence; None where it can."""
        if row.next_txn_id is None or row.commit_ms is None:
            return f"waits for the commit of its compaction transaction {row.txn_id}"
        if row.next_txn_id >= self._min_open:
            return f"waits for {self._txn_text(self._min_open)}"
        locks = self._locks.touching(row.entity)
        for lock in locks if self._locks_count else ():
            # Without a recorded lock every one may be older than the publication.
            if row.newest_lock_id is None or lock.lock_id <= row.newest_lock_id:
                return f"waits for {self._lock_text(lock)}"
        if self._retention_seconds > 0:
            left = self._retention_seconds - self._age_seconds(row.commit_ms)
            if left > 0:
                return f"is kept for {left:.0f} s more (retention)"
        stays = next(filter(self._stays, locks), None)
        return None if stays is None else f"waits for {self._lock_text(stays)}, beside which nothing is deleted"

    def seconds_kept(self, row: CompactionRow, keep_seconds: float) -> float:
        """How much longer what a compaction replaced is kept, whoever reads it; 0 for no longer.

        :param keep_seconds: how long after its commit it is.
        """
        if keep_seconds <= 0 or row.commit_ms is None:
            return 0.0
        return max(keep_seconds - self._age_seconds(row.commit_ms), 0.0)

    def _stays(self, lock: LockInfo) -> bool:
        if self._queue_seconds is None or lock.acquired_ms is None or lock.only_keeps_a_database:
            return False
        return self._age_seconds(lock.acquired_ms) > self._queue_seconds

    def _txn_text(self, txn_id: int) -> str:
        txn = self._txn_infos.get(txn_id)
        if txn is None:
            return f"transaction {txn_id}"
        owner = f"transaction {txn.id} of {txn.user}@{txn.host}"
        return owner if txn.started_ms is None else f"{owner}, open for {self._age_seconds(txn.started_ms):.0f} s"

    def _lock_text(self, lock: LockInfo) -> str:
        holder = f"lock {lock.lock_id} of {lock.user}@{lock.host}"
        if lock.txn_id is not None:
            holder = f"lock {lock.lock_id} (transaction {lock.txn_id}) of {lock.user}@{lock.host}"
        if lock.acquired_ms is not None:
            return f"{holder}, held for {self._age_seconds(lock.acquired_ms):.0f} s"
        if lock.last_heartbeat_ms is not None:
            return f"{holder}, not granted yet, last heard of {self._age_seconds(lock.last_heartbeat_ms):.0f} s ago"
        return f"{holder}, not granted yet"

    def _age_seconds(self, time_ms: int) -> float:
        return max(self.now_ms - time_ms, 0) / 1000

    @cached_property
    def _txn_infos(self) -> dict[int, TxnInfo]:
        return {txn.id: txn for txn in self._client.transactions()}


def _min_open(txns: OpenTxns) -> int:
    return min(txns.open, default=txns.high_water_mark + 1)
