"""Who is alive: attempts are known by their token, and judged by their transaction's last heartbeat.

The token of an attempt is part of its pool's, its worker's and its staging directory's name, and of the
host name under which its transaction is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, TxnInfo, TxnState


def nobodys_pool(entity: Entity) -> RequestPool:
    """A name for who puts things in order in a partition without compacting it: a cleaner, or housekeeping."""
    return RequestPool.new(owner_of("cleaner", str(entity)))


def pool_of_txn(txn: TxnInfo) -> RequestPool | None:
    """The pool of the attempt that opened a transaction; None where it is not one of ours."""
    return RequestPool.of_worker(txn.host)


def tokens_in(rows: Iterable[CompactionRow]) -> frozenset[str]:
    """Tokens of the attempts whose requests are still in the queue."""
    live = [row for row in rows if not row.state.is_terminal]
    pools = [pool for row in live for pool in (RequestPool.parse(row.pool), RequestPool.of_worker(row.worker_id))]
    return frozenset(pool.token for pool in pools if pool is not None)


@dataclass(frozen=True)
class Attempts:
    """The transactions of one moment, and what they say about who is alive.

    :param now_ms: the metastore database's clock.
    :param timeout_seconds: silence after which a transaction is taken for dead.
    """

    transactions: dict[int, TxnInfo]
    now_ms: int
    timeout_seconds: float

    @classmethod
    def look(cls, client: AcidMetastoreClient, timeout_seconds: float | None) -> Attempts:
        """Ask the metastore; without a time-out also for its own."""
        # The clock before the signs of life: whoever is held up between the two takes nobody for silent by that.
        now_ms = client.server_now_ms()
        return cls(
            {txn.id: txn for txn in client.transactions()},
            now_ms,
            timeout_seconds or client.txn_timeout_seconds(),
        )

    def transaction_of(self, token: str) -> TxnInfo | None:
        """The open or aborted transaction of an attempt; None where it has none (any more).

        Of several the newest: in older ones it waited for a lock to remove what a predecessor had published.
        """
        pools = ((txn, pool_of_txn(txn)) for txn in self.transactions.values())
        own = (txn for txn, pool in pools if pool is not None and pool.token == token)
        return max(own, key=lambda txn: txn.id, default=None)

    @property
    def any_alive(self) -> bool:
        """Whether some attempt, cleaning or round of housekeeping is at work, in whatever partition."""
        return any(pool_of_txn(txn) is not None and self.is_alive(txn, None) for txn in self.transactions.values())

    def is_alive(self, txn: TxnInfo, owner: str | None) -> bool:
        """Whether somebody still works in this transaction.

        :param owner: the asking task; Airflow runs one try of a task at a time, so its own former tries are dead.
        """
        if txn.state is not TxnState.OPEN:
            return False
        pool = pool_of_txn(txn)
        if pool is not None and pool.owner == owner:
            return False
        return self.age_seconds(txn.last_heartbeat_ms) <= self.timeout_seconds

    def age_seconds(self, time_ms: int | None) -> float:
        """Time since ``time_ms``; 0 where that is unknown."""
        return 0.0 if time_ms is None else (self.now_ms - time_ms) / 1000
