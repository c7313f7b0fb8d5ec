"""Waiting for the EXCLUSIVE lock of a transaction, so that others wait for it no longer than they have to."""

from __future__ import annotations

import time

from airflow_provider_acid.metastore.transaction import CompactionTransaction

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
