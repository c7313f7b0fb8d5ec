"""A partition in work, and one whose merged result waits to be published."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult


@dataclass(frozen=True)
class ActiveCompaction:
    """A partition that is claimed, locked and planned.

    :param table_location: URI of the whole table's directory.
    :param newest_txn_id: the highest transaction id when the snapshot was taken: whatever begins later sees all
        that is merged.
    :param seen: what the listing showed right in the partition by which it was planned.
    :param begun_monotonic: when its work began, by this process's monotonic clock, in seconds.
    :param adopted: the complete output of a dead predecessor, already in this attempt's staging directory;
        None where the Spark job has to merge.
    """

    claim: ClaimedCompaction
    transaction: CompactionTransaction
    storage: Storage
    plan: CompactionPlan
    table_location: str
    adopted: CompactionResult | None
    newest_txn_id: int
    seen: frozenset[str]
    begun_monotonic: float = field(default_factory=time.monotonic)

    @property
    def entity(self) -> Entity:
        """The partition."""
        return self.plan.entity


@dataclass(frozen=True)
class AwaitsLock:
    """A merged and verified partition that waits for the EXCLUSIVE lock; times are of this process's monotonic clock.

    :param ask_monotonic: until when it waits for a moment without other locks, before it asks for the lock, behind
        which new readers wait.
    :param deadline_monotonic: until when it waits at all.
    """

    active: ActiveCompaction
    result: CompactionResult
    ask_monotonic: float
    deadline_monotonic: float


@dataclass(frozen=True)
class AwaitsReaders:
    """A merged and verified partition that waits, without a lock, for older transactions that hold locks there.

    :param deadline_monotonic: until when it waits before it is published all the same.
    """

    active: ActiveCompaction
    result: CompactionResult
    deadline_monotonic: float


Waiting = AwaitsLock | AwaitsReaders
"""What is finished later, by being resumed from time to time."""
