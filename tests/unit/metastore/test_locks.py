from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.locks import acquire_shared_read
from airflow_provider_acid.metastore.values import LockAnswer, LockInfo, LockState

ENTITY = Entity("sales", "orders")
W, A, N, X = LockState.WAITING, LockState.ACQUIRED, LockState.NOT_ACQUIRED, LockState.ABORT


class Server:
    """Answers with the states given, in turn, the last one for ever; sleeping moves its clock."""

    def __init__(self, *states: LockState) -> None:
        self.states = list(states)
        self.now = 0.0

    def lock_shared_read(self, txn_id: int, entity: Entity, agent_info: str = "") -> LockAnswer:
        assert agent_info == "attempt-1"
        return self.check_lock(3, txn_id)

    def check_lock(self, lock_id: int, txn_id: int | None = None) -> LockAnswer:
        assert (lock_id, txn_id) == (3, 7)
        return LockAnswer(3, self.states.pop(0) if len(self.states) > 1 else self.states[0])

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        def lock(id: int, type: str) -> LockInfo:
            return LockInfo(id, "sales", ENTITY, A, type, None, "eve", "host", 1, None, None)

        return [lock(2, "EXCLUSIVE"), lock(3, "SHARED_READ")]

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def acquire(server: Server) -> int:
    return acquire_shared_read(
        server, 7, ENTITY, "attempt-1", wait_seconds=10, clock=lambda: server.now, sleep=server.sleep
    )


@pytest.mark.parametrize("states", [(A,), (W, A), (W, W, W, A)])
def test_the_lock_is_waited_for(states: tuple[LockState, ...]) -> None:
    server = Server(*states)
    assert acquire(server) == 3
    assert server.now == len(states) - 1


@pytest.mark.parametrize(
    ("states", "waited_seconds"), [((W,), 10), ((N,), 0), ((X,), 0), ((W, N), 1)], ids=["waiting", "no", "abort", "end"]
)
def test_a_lock_that_does_not_come_is_refused_naming_those_in_the_way(
    states: tuple[LockState, ...], waited_seconds: int
) -> None:
    server = Server(*states)
    with pytest.raises(RefusedError, match=r"sales.orders: .*lock 2 \(EXCLUSIVE.*eve@host\)\)") as caught:
        acquire(server)
    assert "lock 3" not in str(caught.value)
    assert server.now == waited_seconds
