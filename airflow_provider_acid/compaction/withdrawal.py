"""Taking back what an attempt published whose transaction never committed.

No reader of Hive 4 ever saw it. Readers that ignore a compaction's transaction, as Trino does, see it, and for them the
order matters:

- **Half of a pair** shows them wrong rows, so it goes first, by one rename, while the lock of the dead attempt, if its
  transaction is still open, keeps such readers away. Its attempt cannot commit any more: it has no source for its
  second rename, since its staging directory was moved before, and it marks its request only after that rename.
- **A whole result** shows them the same rows as its sources. The transaction is aborted first, for a sleeper that is
  only one step from its commit might otherwise commit what is being removed. Then it goes under the EXCLUSIVE lock in
  a transaction of the remover's own: whoever began to read it is waited for, and between the two renames of a pair
  only half is there. A delta alone, which is half of a pair for all that can be known without the journal, goes at
  once; who reads it just then gets an error from his storage.

To finish the pair instead would be no better: a sleeper's commit and the heir's would have to be told apart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import BaseName, DeltaName, is_acid_prefixed, parse_directory_name
from airflow_provider_acid.compaction.attempts import Attempts, pool_of_txn
from airflow_provider_acid.compaction.journal import find_journal
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, CompactionSettings
from airflow_provider_acid.compaction.staging import remove_whole, staging_name, staging_tokens
from airflow_provider_acid.exceptions import OwnershipLostError, RefusedError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import TxnState

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
"""Pause between two looks at a lock that is waited for."""


class Withdrawal:
    """Takes back what dead attempts published in one partition; belongs to one thread, like its client.

    :param asker: shown with the lock: the pool of the attempt that asks, or the cleaner's name.
    :param owner: the asking task, whose former tries are dead; None where nobody's are known to be.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        settings: CompactionSettings,
        entity: Entity,
        storage: Storage,
        *,
        asker: str,
        owner: str | None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._entity = entity
        self._storage = storage
        self._asker = asker
        self._owner = owner

    def withdraw(self, txn_id: int) -> str | None:
        """End a dead attempt's transaction and take back what it published.

        Its staging directory was moved or deleted before.

        :returns: what the removal waits for, in one clause; None where nothing is left.
        :raises OwnershipLostError: the transaction is neither open nor aborted; nothing was removed.
        """
        published = self._published(txn_id)
        if len(published) == 1 and self._is_half(txn_id) and self._state(txn_id) is not TxnState.COMMITTED_OR_UNKNOWN:
            self._remove(txn_id, published)
        if self._state(txn_id) is TxnState.OPEN:
            self._client.abort(txn_id)
        published = self._published(txn_id)
        if not published:
            return None
        if self._state(txn_id) is not TxnState.ABORTED:
            raise OwnershipLostError(
                f"{', '.join(published)} of {self._entity}",
                f"was published by an attempt that is taken for dead, but transaction {txn_id} is not aborted",
                "compare COMPACTION_QUEUE and TXNS in the metastore's database before anything is deleted",
            )
        if self._settings.readers_honour_visibility or _may_be_half(published):
            self._remove(txn_id, published)
            return None
        return self._remove_under_lock(txn_id)

    def withdraw_aborted(self, aborted: Sequence[int]) -> str | None:
        """Take back what compactions whose transactions are aborted made, whoever published it.

        :param aborted: aborted transactions.
        :returns: what the removal waits for; None where nothing is left.
        """
        found = {
            name.visibility_txn_id
            for directory in self._storage.list().directories
            if "/" not in directory and is_acid_prefixed(directory)
            if isinstance(name := parse_directory_name(directory), BaseName | DeltaName)
        }
        waits = [self.withdraw(txn_id) for txn_id in sorted(found.intersection(aborted))]
        return next((text for text in waits if text is not None), None)

    def _state(self, txn_id: int) -> TxnState:
        return self._client.transaction_state(txn_id)

    def _published(self, txn_id: int) -> list[str]:
        return [
            name for name in self._storage.list().directories if "/" not in name and name.endswith(f"_v{txn_id:07d}")
        ]

    def _is_half(self, txn_id: int) -> bool:
        """Whether two directories were to be published; looked up in every staging directory, since heirs move them."""
        stagings = [staging_name(token) for token in staging_tokens(self._storage.list())]
        journal = find_journal(self._storage, stagings, txn_id)
        return journal is not None and len(journal.targets) > 1

    def _remove(self, txn_id: int, names: Sequence[str]) -> None:
        for name in names:
            log.info("%s: removing %s of transaction %s", self._entity, name, txn_id)
            remove_whole(self._storage, name)

    def _remove_under_lock(self, txn_id: int) -> str | None:
        self._end_dead_lockers()
        transaction = CompactionTransaction(
            self._client,
            self._entity,
            heartbeat_seconds=self._settings.heartbeat_seconds,
            lock_wait_seconds=self._settings.publish_lock_wait_seconds,
            agent_info=self._asker,
        )
        deadline = time.monotonic() + self._settings.publish_lock_wait_seconds
        try:
            with transaction:
                while not _has_lock(transaction, deadline):
                    if time.monotonic() >= deadline:
                        return f"the EXCLUSIVE lock under which it is removed (held by {transaction.blockers()})"
                    time.sleep(POLL_SECONDS)
                self._remove(txn_id, self._published(txn_id))
                transaction.commit()
        except RefusedError as error:
            return error.reason
        return None

    def _end_dead_lockers(self) -> None:
        """Locks of attempts that died while they removed something themselves would be waited for in vain."""
        attempts = Attempts.look(self._client, self._settings.transaction_timeout_seconds)
        for lock in self._client.show_locks(self._entity):
            txn = attempts.transactions.get(lock.txn_id or 0)
            if txn is None or txn.state is not TxnState.OPEN or pool_of_txn(txn) is None:
                continue
            if not attempts.is_alive(txn, self._owner):
                self._client.abort(txn.id)


def _may_be_half(published: Sequence[str]) -> bool:
    return len(published) == 1 and isinstance(parse_directory_name(published[0]), DeltaName)


def _has_lock(transaction: CompactionTransaction, deadline_monotonic: float) -> bool:
    """Whether the EXCLUSIVE lock is there; it is asked for when nobody else has one, or when time is running out."""
    if transaction.exclusive_lock_id is None:
        if time.monotonic() < deadline_monotonic - LOCK_QUEUE_SECONDS and not transaction.is_alone():
            return False
        transaction.ask_exclusive()
    return transaction.has_exclusive()
