"""The EXCLUSIVE lock, taken so that others wait for it no longer than they have to."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import AcidError, OwnershipLostError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import LockState

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
"""Pause between two looks at a lock that is waited for."""


def wait_for_exclusive(transaction: CompactionTransaction, wait_seconds: float, queue_seconds: float) -> str | None:
    """Get the EXCLUSIVE lock of a transaction that has begun.

    It is asked for when nobody else has a lock there, or when no more than ``queue_seconds`` are left: while it waits,
    all new readers wait behind it. Only the transaction's end withdraws it.

    :returns: what it waited for in vain, in one clause; None where the lock is there.
    :raises OwnershipLostError: the transaction is lost.
    """
    deadline = time.monotonic() + wait_seconds
    while not _has_lock(transaction, deadline - queue_seconds):
        if time.monotonic() >= deadline:
            return f"the EXCLUSIVE lock (held by {transaction.blockers()})"
        time.sleep(POLL_SECONDS)
    return None


def ask_when_due(transaction: CompactionTransaction, ask_monotonic: float) -> bool:
    """Ask for the EXCLUSIVE lock where nobody else has a lock there, or it may be waited for in the queue by now.

    :param ask_monotonic: from when on it is asked for whoever has a lock, in seconds of this process's monotonic clock.
    :returns: whether it asked just now; ``exclusive_lock_id`` tells whether it was asked for at all.
    :raises OwnershipLostError: the transaction is lost.
    """
    if transaction.exclusive_lock_id is not None:
        return False
    if time.monotonic() < ask_monotonic and not transaction.is_alone():
        return False
    transaction.ask_exclusive()
    return True


def _has_lock(transaction: CompactionTransaction, ask_monotonic: float) -> bool:
    ask_when_due(transaction, ask_monotonic)
    return transaction.exclusive_lock_id is not None and transaction.has_exclusive()


class MomentaryLocks:
    """EXCLUSIVE locks on several partitions, granted all at once, or withdrawn: nobody waits behind them.

    For less time than a transaction lives without heartbeats. On Hive 3.1 a lock that is granted may stand beside
    others, so this is for Hive 4.

    :param agent_info: shown with the locks.
    """

    def __init__(self, client: AcidMetastoreClient, entities: Sequence[Entity], agent_info: str) -> None:
        self._client = client
        self._entities = entities
        self._agent_info = agent_info
        self._txn_id: int | None = None
        self._ends_monotonic = 0.0
        self.are_held = False

    def __enter__(self) -> MomentaryLocks:
        self._ends_monotonic = time.monotonic() + self._client.txn_timeout_seconds() / 2
        self._txn_id = self._client.open_compaction_txn(self._agent_info)
        try:
            answer = self._client.lock_exclusive(self._txn_id, *self._entities, agent_info=self._agent_info)
        except BaseException:
            self._end()
            raise
        self.are_held = answer.state is LockState.ACQUIRED
        if not self.are_held:
            self._end()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def check(self) -> None:
        """Do nothing while they are held.

        :raises OwnershipLostError: it took so long that they may be lost.
        """
        if time.monotonic() >= self._ends_monotonic:
            raise OwnershipLostError(
                f"transaction {self._txn_id}", "took too long, and may have lost its locks", "start the cleaning again"
            )

    def _end(self) -> None:
        """Withdraw them; where the metastore does not answer, the transaction's time-out does."""
        txn_id, self._txn_id = self._txn_id, None
        if txn_id is None:
            return
        try:
            (self._client.commit if self.are_held else self._client.abort)(txn_id)
        except AcidError as error:
            log.warning("Transaction %s keeps its locks until its time-out: %s", txn_id, error)
