"""Whether a result of Hive 4 may still be committed some time after its request was marked.

A marked request is in nobody's way: Hive's own worker may compact the same partition before the commit, and its Cleaner
clean it.
"""

from __future__ import annotations

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import names_only
from airflow_provider_acid.compaction.publish.fence import read_beside_result
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

PROMPT_SECONDS = 2.0
"""A commit so soon after the marking began needs no look: no worker claims, compacts and commits in that time."""


def rival_at_work(queue: CompactionQueue, entity: Entity) -> CompactionRow | None:
    """A request that a worker of somebody else has claimed; those of ours look again before they publish."""
    rows = queue.rows(entity=entity, state=CompactionState.WORKING)
    return next((row for row in rows if RequestPool.of_worker(row.worker_id) is None), None)


def is_overtaken(queue: CompactionQueue, entity: Entity, txn_id: int) -> bool:
    """Whether a compaction with a newer transaction waits for its cleaning, which counts all older ones.

    It waits for nobody who began after its own commit: of these who began before a commit that is made now do not
    see what that publishes, and read what the cleaning would take for obsolete.
    """
    rows = queue.rows(entity=entity, state=CompactionState.READY_FOR_CLEANING)
    return any((row.txn_id or row.next_txn_id or 0) > txn_id for row in rows)


def read_beside(storage: Storage, txn_id: int) -> list[str]:
    """What readers would read beside the result of a transaction, were it committed now.

    :param storage: of the partition.
    """
    return read_beside_result(storage.list(into=names_only).directories, txn_id)


def check_late_commit(queue: CompactionQueue, entity: Entity, storage: Storage, txn_id: int) -> None:
    """Refuse the commit of a living attempt that was held up since it marked its request.

    :param storage: of the partition.
    :raises OwnershipLostError: somebody else is at work in the partition, or was since.
    """
    # Before the look at the directories: what is ready by then has published.
    if rival_at_work(queue, entity) or is_overtaken(queue, entity, txn_id) or read_beside(storage, txn_id):
        raise OwnershipLostError(
            str(entity),
            f"transaction {txn_id} was held up before its commit, and somebody else compacts the partition, or did",
            "start the compaction again; it will see the new state",
        )
