"""Deleting what a cleaning decided upon while nobody lists the partition.

Nobody reads obsolete directories any more, but Hive lists them: it lists a partition, and then each directory in it.
Where one goes between the two, a query of Hive fails, and a simple one of Hive 4 finds no row at all. So they go under
the EXCLUSIVE lock; who wants to read meanwhile waits for a few renames. The lock also keeps the table from being
dropped and made again while a deletion is under way.

Where nobody has a lock, those of many partitions are taken by one call, and withdrawn after a moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.exclusive_lock import MomentaryLocks, wait_for_exclusive
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, OwnershipLostError, RefusedError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import LocksByPlace

log = logging.getLogger(__name__)

MOMENT_SECONDS = 2.0
"""When locks of many partitions have been held for so long, they are withdrawn, and those of the rest taken anew."""


@dataclass(frozen=True)
class Deletion:
    """What one cleaning wants to have deleted.

    :param obsolete: directories and files right below the location, in this order.
    :param discard: what they are moved into.
    """

    entity: Entity
    obsolete: tuple[str, ...]
    discard: Discard


class Deleter:
    """Deletes in one partition after the other; belongs to one thread, like its client.

    What is deleted lies in its discard then, and is to be emptied from there.

    :param insists: on the lock. Otherwise it deletes in the end while its request for the lock waits, which keeps new
        readers out; all others have had their locks for as long as it waited, and have listed long ago, as a rule.
    """

    def __init__(self, client: AcidMetastoreClient, settings: CompactionSettings, *, insists: bool) -> None:
        self._client = client
        self._settings = settings
        self._insists = insists

    def delete_together(self, wanted: Sequence[Deletion]) -> dict[Entity, AcidError | None]:
        """Delete where nobody else has a lock; no two in one partition. For Hive 4, see :class:`MomentaryLocks`.

        :returns: for each partition where that was done, the error that ended it, if any, as of :meth:`delete`. The
            others are for :meth:`delete`, which waits.
        """
        done: dict[Entity, AcidError | None] = {}
        left = list(wanted)
        try:
            while left:
                in_a_moment = self._delete_in_a_moment(left)
                if not in_a_moment:
                    break
                done |= in_a_moment
                left = [one for one in left if one.entity not in done]
        except AcidError as error:
            log.warning("Partitions are not cleaned together: %s", error)
        return done

    def _delete_in_a_moment(self, wanted: Sequence[Deletion]) -> dict[Entity, AcidError | None]:
        """As far as one moment goes; at least one, where its locks are granted."""
        locks = LocksByPlace(lock for lock in self._client.show_locks() if not lock.only_keeps_a_database)
        alone = [one for one in wanted if not locks.touching(one.entity)]
        done: dict[Entity, AcidError | None] = {}
        if not alone:
            return done
        agent_info = str(nobodys_pool(alone[0].entity))
        with MomentaryLocks(self._client, [one.entity for one in alone], agent_info) as together:
            ends_monotonic = time.monotonic() + MOMENT_SECONDS
            for one in alone if together.are_held else ():
                done[one.entity] = _taken(one, together)
                if time.monotonic() >= ends_monotonic:
                    break
        return done

    def delete(self, wanted: Deletion) -> str | None:
        """Delete in one partition, and wait for its lock.

        :returns: what was waited for in vain, in one clause, and nothing was deleted; None where all is gone.
        :raises OwnershipLostError: it is another table by now, somebody else cleans it, or the lock was lost; a part
            may be gone.
        :raises StorageError: something cannot be deleted.
        """
        entity = wanted.entity
        wait_seconds = self._settings.cleaner_lock_wait_seconds
        transaction = CompactionTransaction(
            self._client,
            entity,
            heartbeat_seconds=self._settings.heartbeat_seconds,
            lock_wait_seconds=wait_seconds,
            agent_info=str(nobodys_pool(entity)),
        )
        try:
            transaction.start()
        except RefusedError as error:
            return error.reason
        with closing(transaction):
            waits = wait_for_exclusive(transaction, wait_seconds, queue_seconds=wait_seconds)
            if waits is not None and self._insists:
                return waits
            wanted.discard.take(wanted.obsolete, transaction.check)
            # Lost only now, it has served.
            with suppress(OwnershipLostError):
                transaction.commit()
        return None


def _taken(wanted: Deletion, locks: MomentaryLocks) -> AcidError | None:
    try:
        with Supervised(wanted.entity):
            wanted.discard.take(wanted.obsolete, locks.check)
    except AcidError as error:
        return error
    return None
