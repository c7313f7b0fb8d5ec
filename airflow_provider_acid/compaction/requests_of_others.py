"""Requests that users and Hive's Initiator made: which of them a run serves, and why the others are left as they are.

A claim takes a request away from everybody else, and Hive 4 has no call that gives one back. So whether a request is
ours to do is found out before, and what is not is never claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.eligibility import check_entity
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.outcomes import DuePartition, job_queue_of
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, MetastoreUnavailableError, UnsupportedTableError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

NOT_SERVED = "set serve_foreign_requests to have it carried out"

_TYPES = frozenset(type.value for type in CompactionType)


@dataclass(frozen=True)
class LeftRequest:
    """A waiting request of somebody else that a run leaves as it is.

    :param type: as Hive calls it.
    :param reason: why, or what to do about it.
    """

    id: int
    entity: Entity
    type: str
    reason: str

    def __str__(self) -> str:
        return (
            f"request {self.id} for {self.entity} ({self.type}) was made by somebody else and is not served; "
            f"{self.reason}"
        )


@dataclass(frozen=True)
class MetRequests:
    """The waiting requests of others that concern a run, by id.

    :param due: are served.
    :param left: are not.
    """

    due: tuple[DuePartition, ...]
    left: tuple[LeftRequest, ...]

    @property
    def entities(self) -> frozenset[Entity]:
        """What is requested."""
        return frozenset((*(due.entity for due in self.due), *(left.entity for left in self.left)))


def servable_facts(client: AcidMetastoreClient, row: CompactionRow, pools: Collection[str]) -> EntityFacts:
    """What the metastore knows about the partition of a waiting request that is ours to do.

    :param pools: worker pools whose requests are ours, too; see :func:`served_pools`.
    :raises RefusedError: it is not: for its pool, its type or its table.
    :raises ObjectNotFoundError: the table or partition does not exist.
    """
    subject = f"compaction request {row.id} of {row.entity}"
    if row.pool is not None and row.pool not in pools:
        raise UnsupportedTableError(
            subject,
            f"belongs to the pool {row.pool}",
            "leave it to that pool's workers, or name the pool in [hive_acid] served_pools and the metastore's "
            "database in metastore_db_conn_id",
        )
    if row.type not in _TYPES:
        raise UnsupportedTableError(
            subject,
            f"asks for {row.type}, which this release does not do",
            "ask for a major compaction, or let Hive's own workers carry the request out",
        )
    facts = load_facts(client, row.entity)
    check_entity(facts)
    return facts


def served_pools(settings: CompactionSettings, queue: CompactionQueue) -> tuple[str, ...]:
    """The worker pools whose requests are served; none where requests cannot be claimed by their ids."""
    return () if queue.database is None else settings.served_pools


def meet_requests(
    client: AcidMetastoreClient,
    queue: CompactionQueue,
    rows: Sequence[CompactionRow],
    *,
    concerns: Callable[[Entity], bool],
    serves: bool,
    pools: Collection[str],
) -> MetRequests:
    """Decide about every waiting request of others.

    Where the metastore hands requests out in an order of its own, those behind one that is not served wait as well.

    :param rows: of the whole queue, by id; its history may be among them.
    :param concerns: whether a partition is one of the run's.
    :param serves: whether any request is served at all.
    :param pools: as for :func:`servable_facts`.
    """
    waiting = [row for row in rows if row.state is CompactionState.INITIATED]
    ours = {row.id for row in waiting if RequestPool.parse(row.pool) is None and concerns(row.entity)}
    if not serves:
        return MetRequests((), tuple(_left(row, NOT_SERVED) for row in waiting if row.id in ours))
    line = {row.id for row in queue.line(waiting)}
    due, left = [], []
    first_left: CompactionRow | None = None
    for row in waiting:
        before = first_left if row.id in line else None
        if row.id in ours:
            judged = _judge(client, row, before, pools)
            if isinstance(judged, DuePartition):
                due.append(judged)
                continue
            left.append(judged)
        if row.id in line:
            first_left = first_left or row
    return MetRequests(tuple(due), tuple(left))


def _due(row: CompactionRow, facts: EntityFacts) -> DuePartition:
    reason = f"request {row.id} ({row.type}) made by somebody else"
    return DuePartition(row.entity, CompactionType(row.type), reason, row.id, job_queue_of(facts.table.parameters))


def _left(row: CompactionRow, reason: str) -> LeftRequest:
    return LeftRequest(row.id, row.entity, row.type, reason)


def in_the_way(first: CompactionRow) -> str:
    """Why a request is left behind which another stands that is not served."""
    return f"the metastore hands out request {first.id} ({first.type} of {first.entity}) first, which is left as it is"


def _judge(
    client: AcidMetastoreClient, row: CompactionRow, first_left: CompactionRow | None, pools: Collection[str]
) -> DuePartition | LeftRequest:
    if first_left is not None:
        return _left(row, in_the_way(first_left))
    try:
        with Supervised(row.entity):
            return _due(row, servable_facts(client, row, pools))
    except MetastoreUnavailableError:
        raise
    except AcidError as error:
        return _left(row, str(error))
