"""Waiting for locks, and who is in their way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.values import LockAnswer, LockInfo, LockState

LOCK_WAIT_SECONDS = 60.0
CHECK_INTERVAL_SECONDS = 1.0


class LockClient(Protocol):
    """What waiting for a lock needs of a metastore client; see AcidMetastoreClient."""

    def lock_shared_read(self, txn_id: int, entity: Entity, agent_info: str = ...) -> LockAnswer:
        """Ask for the lock."""

    def check_lock(self, lock_id: int, txn_id: int | None = None) -> LockAnswer:
        """Ask again."""

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        """Locks that touch the entity."""


class BlockedClient(Protocol):
    """What naming the locks in the way needs of a metastore client; see AcidMetastoreClient."""

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        """Locks that touch the entity."""

    def server_now_ms(self) -> int:
        """The clock of the locks' times."""


def acquire_shared_read(
    client: LockClient,
    txn_id: int,
    entity: Entity,
    agent_info: str,
    *,
    wait_seconds: float = LOCK_WAIT_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Take the lock; its id.

    :param agent_info: shown with the lock, says whose it is.
    :param wait_seconds: how long to wait for others to let go.
    :raises RefusedError: it was not granted in time; the transaction still holds its place in the queue of locks
        and has to be aborted.
    :raises OwnershipLostError: the transaction is aborted or unknown.
    """
    deadline = clock() + wait_seconds
    answer = client.lock_shared_read(txn_id, entity, agent_info)
    while answer.state is LockState.WAITING and clock() < deadline:
        sleep(CHECK_INTERVAL_SECONDS)
        answer = client.check_lock(answer.lock_id, txn_id)
    if answer.state is LockState.ACQUIRED:
        return answer.lock_id
    others = [str(lock) for lock in client.show_locks(entity) if lock.lock_id != answer.lock_id]
    raise RefusedError(
        str(entity),
        f"its shared read lock was not granted within {wait_seconds:.0f} s (state {answer.state.value}; "
        f"{answer.message or 'others: ' + ('; '.join(others) or 'none')})",
        "let the DDL statement that holds the exclusive lock end, then try again",
    )


def describe_blockers(client: BlockedClient, txn_id: int, lock_id: int | None, entity: Entity) -> str:
    """Which locks an EXCLUSIVE one waits for: all that others asked for before it, with owner and age.

    :param lock_id: None where it was not even asked for, because of them.
    """
    others = [lock for lock in client.show_locks(entity) if lock.txn_id != txn_id]
    locks = [lock for lock in others if lock_id is None or lock.lock_id < lock_id]
    if not locks:
        return "nobody any more"
    now_ms = client.server_now_ms()
    return "; ".join(f"{lock}{_held_for(lock, now_ms)}" for lock in locks)


def _held_for(lock: LockInfo, now_ms: int) -> str:
    return "" if lock.acquired_ms is None else f", held for {max(now_ms - lock.acquired_ms, 0) / 1000:.0f} s"
