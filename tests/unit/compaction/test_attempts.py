"""Who is alive: known by the last heartbeat, and for a task's own former tries by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.recover.attempts import Attempts
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import TxnInfo, TxnState

NOW_MS = 10_000_000
POOL = RequestPool("0123456789ab", "0123456789abcdef")
TXN = TxnInfo(7, TxnState.OPEN, "eve", f"{POOL}@here", None, NOW_MS - 9_000_000, NOW_MS - 1_000)


@pytest.mark.parametrize(
    ("txn", "owner", "is_alive"),
    [
        (TXN, None, True),
        (TXN, "another", True),
        (TXN, POOL.owner, False),
        (replace(TXN, last_heartbeat_ms=NOW_MS - 301_000, started_ms=NOW_MS), None, False),
        (replace(TXN, last_heartbeat_ms=NOW_MS - 300_000), None, True),
        (replace(TXN, last_heartbeat_ms=None), None, True),
        (replace(TXN, state=TxnState.ABORTED), None, False),
        (replace(TXN, host="elsewhere"), POOL.owner, True),
    ],
    ids=["beats", "for another task", "former try", "silent", "just silent", "unknown", "aborted", "not of ours"],
)
def test_who_is_alive(txn: TxnInfo, owner: str | None, is_alive: bool) -> None:
    attempts = Attempts({txn.id: txn}, NOW_MS, 300.0)
    assert attempts.is_alive(txn, owner) is is_alive


def test_an_attempts_transaction_is_the_one_after_those_in_which_it_put_things_in_order() -> None:
    """One that waited in vain for the lock to remove something was aborted, and is listed until Hive forgets it."""
    removers = replace(TXN, id=TXN.id - 1, state=TxnState.ABORTED)
    others = replace(TXN, id=TXN.id + 1, host="elsewhere")
    attempts = Attempts({txn.id: txn for txn in (removers, TXN, others)}, NOW_MS, 300.0)
    assert attempts.transaction_of(POOL.token) == TXN


def test_who_is_held_up_while_he_asks_takes_nobody_for_silent_by_that() -> None:
    class Slow(AcidMetastoreClient):
        """Half an hour goes by after each answer; whoever is alive gives a sign of it all the time."""

        now_ms = NOW_MS

        def transactions(self) -> list[TxnInfo]:
            beats = replace(TXN, last_heartbeat_ms=self.now_ms)
            self.now_ms += 1_800_000
            return [beats]

        def server_now_ms(self) -> int:
            self.now_ms += 1_800_000
            return self.now_ms - 1_800_000

    with Slow([MetastoreAddress("nowhere", 1)]) as client:
        attempts = Attempts.look(client, 300.0)
    assert attempts.any_alive
