"""Waiting for the lock that keeps a table's definition in place while it is compacted."""

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
