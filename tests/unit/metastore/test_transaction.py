"""What a compaction's transaction believes about its locks: what the metastore says, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import LockAnswer, LockInfo, LockState

TABLE = Entity("db", "t")
TXN, SHARED, EXCLUSIVE = 7, 3, 8
HELD, WAITING = LockState.ACQUIRED, LockState.WAITING


class Server:
    """A metastore in which others have locks.

    :param states: what it says of the shared and the exclusive lock.
    """

    def __init__(self, states: dict[int, LockState], others: Sequence[LockInfo] = ()) -> None:
        self.states = {SHARED: HELD, **states}
        self.others = others
        self.aborted: list[int] = []

    def txn_timeout_seconds(self) -> float:
        return 300.0

    def open_compaction_txn(self, agent_info: str) -> int:
        return TXN

    def for_another_thread(self) -> Server:
        return self

    def lock_shared_read(self, txn_id: int, entity: Entity, agent_info: str) -> LockAnswer:
        return LockAnswer(SHARED, HELD)

    def lock_exclusive(self, txn_id: int, *entities: Entity, agent_info: str) -> LockAnswer:
        return LockAnswer(EXCLUSIVE, WAITING)

    def check_lock(self, lock_id: int, txn_id: int) -> LockAnswer:
        assert txn_id == TXN
        return LockAnswer(lock_id, self.states[lock_id])

    def show_locks(self, entity: Entity) -> list[LockInfo]:
        return [lock(SHARED, TXN), *self.others]

    def heartbeat(self, txn_id: int) -> None:
        """Knows nothing of locks."""

    def interrupt(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is open."""

    def abort(self, txn_id: int) -> None:
        self.aborted.append(txn_id)


def lock(id: int, txn_id: int | None, state: LockState = HELD) -> LockInfo:
    return LockInfo(id, "db", TABLE, state, "SHARED_READ", txn_id, "eve", "there", 1, 1, None)


def begun(server: Server) -> CompactionTransaction:
    return CompactionTransaction(cast(Any, server), TABLE)


@pytest.mark.parametrize("state", [WAITING, LockState.NOT_ACQUIRED, LockState.ABORT])
def test_the_shared_lock_is_lost_unless_the_metastore_says_that_it_is_held(state: LockState) -> None:
    server = Server({})
    with begun(server) as transaction:
        transaction.verify()
        server.states[SHARED] = state
        with pytest.raises(OwnershipLostError, match="lock 3 on db.t"):
            transaction.verify()
    assert server.aborted == [TXN]


@pytest.mark.parametrize(
    ("state", "others", "is_held"),
    [
        (HELD, (), True),
        (WAITING, (), False),
        (HELD, (lock(2, None),), False),
        (HELD, (lock(9, 11),), False),
        (HELD, (lock(9, 11, WAITING),), True),
        (HELD, (replace(lock(2, 5), entity=None),), True),
        (HELD, (replace(lock(2, 5), entity=None, type="EXCLUSIVE"),), False),
    ],
    ids=[
        "granted",
        "waiting",
        "beside an older reader",
        "beside a newer reader",
        "before one who waits",
        "beside who makes a table in the database",
        "beside who drops the database",
    ],
)
def test_an_exclusive_lock_is_held_where_it_is_granted_and_nobody_else_has_one(
    state: LockState, others: tuple[LockInfo, ...], is_held: bool
) -> None:
    """Hive 3.1 grants it beside others."""
    with begun(Server({EXCLUSIVE: state}, others)) as transaction:
        transaction.verify()
        transaction.ask_exclusive()
        assert transaction.has_exclusive() is is_held
        if is_held:
            transaction.verify()
        else:
            with pytest.raises(OwnershipLostError, match="lock 8 on db.t"):
                transaction.verify()


@pytest.mark.parametrize(
    ("others", "are_older"),
    [((), False), ((lock(2, None),), True), ((lock(2, 5),), True), ((lock(9, 6),), True), ((lock(9, 11),), False)],
    ids=["nobody", "without a transaction", "older", "with a newer lock", "newer"],
)
def test_who_may_not_see_all_that_is_merged(others: tuple[LockInfo, ...], are_older: bool) -> None:
    with begun(Server({}, others)) as transaction:
        assert transaction.others_hold_locks(newest_txn_id=6) is are_older
