"""Deleting what a cleaning decided upon while nobody lists the partition.

Nobody reads obsolete directories any more, but Hive lists them: it lists a partition, and then each directory in it.
Where one goes between the two, a query of Hive fails, and a simple one of Hive 4 finds no row at all. So they go under
the EXCLUSIVE lock; who wants to read meanwhile waits for a few renames. The lock also keeps the table from being
dropped and made again while a deletion is under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.exclusive_lock import wait_for_exclusive
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.exceptions import OwnershipLostError, RefusedError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction


class Deleter:
    """Deletes in one partition after the other; belongs to one thread, like its client.

    :param insists: on the lock. Otherwise it deletes in the end while its request for the lock waits, which keeps new
        readers out; all others have had their locks for as long as it waited, and have listed long ago, as a rule.
    """

    def __init__(
        self, client: AcidMetastoreClient, settings: CompactionSettings, on_step: StepListener, *, insists: bool
    ) -> None:
        self._client = client
        self._settings = settings
        self._on_step = on_step
        self._insists = insists

    def delete(self, entity: Entity, obsolete: Sequence[str], discard: Discard) -> str | None:
        """Delete directories and files right below the location, in this order.

        :returns: what was waited for in vain, in one clause, and nothing was deleted; None where all is gone.
        :raises OwnershipLostError: it is another table by now, somebody else cleans it, or the lock was lost; a part
            may be gone.
        :raises StorageError: something cannot be deleted.
        """
        waits = self._take(entity, obsolete, discard) if obsolete else None
        if waits is None:
            self._on_step(Step.FILES_DELETED, entity)
            discard.empty()
        return waits

    def _take(self, entity: Entity, obsolete: Sequence[str], discard: Discard) -> str | None:
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
            discard.take(obsolete, transaction.check)
            # Lost only now, it has served.
            with suppress(OwnershipLostError):
                transaction.commit()
        return None
