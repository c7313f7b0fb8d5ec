"""Taking back what an attempt published whose transaction never committed.

No reader of Hive 4 ever saw it. Readers that ignore a compaction's transaction, as Trino does, see it, and for them the
order matters:

- **Half of a pair**, or some of several files that were copied, shows them wrong rows, so it goes first, while the
  lock of the dead attempt, if its transaction is still open, keeps such readers away. Its attempt cannot commit any
  more: it has no source for what is missing, since its staging directory was taken over before, and it marks its
  request only after that.
- **A whole result** shows them the same rows as its sources. The transaction is aborted first, for a zombie that is
  only one step from its commit might otherwise commit what is being removed. Then it goes under the EXCLUSIVE lock in
  a transaction of the remover's own: whoever began to read it is waited for, and between the two renames of a pair
  only half is there. A delta alone, which is half of a pair for all that can be known without the journal, goes at
  once, where one rename does it; who reads it just then gets an error from his storage.

Nothing of it goes where nothing else may hold its rows (:mod:`~airflow_provider_acid.plan.last_copy`). That is looked
at before the abort, after which nobody could commit it any more, and again right before the removal.

To finish the pair instead would be no better: a zombie's commit and its successor's would have to be told apart.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing, names_only
from airflow_provider_acid.acid.names import BaseName, DeltaName, is_acid_prefixed, parse_directory_name
from airflow_provider_acid.compaction.exclusive_lock import wait_for_exclusive
from airflow_provider_acid.compaction.publish.journal import find_journal
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import staging_name, staging_tokens
from airflow_provider_acid.compaction.recover.attempts import Attempts, pool_of_txn
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, CompactionSettings
from airflow_provider_acid.exceptions import LastCopyError, OwnershipLostError, RefusedError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import TxnState
from airflow_provider_acid.plan.last_copy import is_held_elsewhere

log = logging.getLogger(__name__)


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
        :raises LastCopyError: nothing else may hold its rows; nothing was removed, and the transaction is as it was.
        """
        is_half = bool(self._published(txn_id)) and self._is_half(txn_id)
        if self._state(txn_id) is not TxnState.COMMITTED_OR_UNKNOWN and self._removable(txn_id) and is_half:
            self._remove(txn_id)
        if self._state(txn_id) is TxnState.OPEN:
            abort(self._client, txn_id)
        published = self._published(txn_id)
        if not published:
            return None
        if self._state(txn_id) is not TxnState.ABORTED:
            raise OwnershipLostError(
                f"{', '.join(published)} of {self._entity}",
                f"was published by an attempt that is taken for dead, but transaction {txn_id} is not aborted",
                "compare COMPACTION_QUEUE and TXNS in the metastore's database before anything is deleted",
            )
        if self._settings.readers_honour_visibility or self._may_be_half(published):
            self._remove(txn_id)
            return None
        return self._remove_under_lock(txn_id)

    def withdraw_aborted(self, aborted: Sequence[int]) -> str | None:
        """Take back what compactions whose transactions are aborted made, whoever published it.

        :param aborted: aborted transactions.
        :returns: what the removal waits for; None where nothing is left.
        """
        found = compacted_by(self._names()).intersection(aborted)
        waits = [self.withdraw(txn_id) for txn_id in sorted(found)]
        return next((text for text in waits if text is not None), None)

    def _state(self, txn_id: int) -> TxnState:
        return self._client.transaction_state(txn_id)

    def _published(self, txn_id: int) -> list[str]:
        return _made_by(txn_id, self._names())

    def _removable(self, txn_id: int) -> list[str]:
        """What a transaction that is not committed published, by a look that finds its rows elsewhere, too.

        :raises LastCopyError: it finds them nowhere else.
        """
        listing = self._names()
        published = _made_by(txn_id, listing)
        if not published:
            return []
        # After the listing: what is gone by then was replaced by what is committed now.
        txns = self._client.open_transactions()
        others = compacted_by(listing)
        uncommitted = [one for one in others if txns.state_of(one) is not TxnState.COMMITTED_OR_UNKNOWN]
        if not is_held_elsewhere(listing, published, uncommitted):
            raise LastCopyError(
                f"{', '.join(published)} of {self._entity}",
                f"is all that is left of its rows, though transaction {txn_id} never committed it: somebody deleted "
                "what it was made of, and it is not taken away",
                "find out who did, and restore that from the trash or a snapshot; else rename each without its "
                f"suffix _v{txn_id:07d}, so that everybody reads it, or delete it if its rows are not wanted",
            )
        return published

    def _names(self) -> Listing:
        return self._storage.list(into=names_only)

    def _is_half(self, txn_id: int) -> bool:
        """Whether more was to be published; looked up in every staging directory, since successors move them."""
        listing = self._storage.list()
        stagings = [staging_name(token) for token in staging_tokens(listing)]
        journal = find_journal(self._storage, stagings, txn_id)
        return journal is not None and journal.is_half(listing)

    def _may_be_half(self, published: Sequence[str]) -> bool:
        """Without a journal that tells.

        Where files are copied, it stays as long as anything of them is there (:meth:`~.publisher.Publisher.give_up`),
        and so has told; and a removal shows parts itself, for which readers are kept away.
        """
        is_delta = len(published) == 1 and isinstance(parse_directory_name(published[0]), DeltaName)
        return is_delta and self._storage.rules.renames

    def _remove(self, txn_id: int) -> None:
        for name in self._removable(txn_id):
            log.info("%s: removing %s of transaction %s", self._entity, name, txn_id)
            publisher_on(self._storage).remove(name)

    def _remove_under_lock(self, txn_id: int) -> str | None:
        end_dead_lockers(self._client, self._settings, self._entity, self._owner)
        wait_seconds = self._settings.minor_lock_wait_seconds
        transaction = removers_transaction(self._client, self._settings, self._entity, self._asker)
        try:
            with transaction:
                waits = wait_for_exclusive(transaction, wait_seconds, LOCK_QUEUE_SECONDS)
                if waits is None:
                    self._remove(txn_id)
                    transaction.commit()
                return waits
        except RefusedError as error:
            return error.reason
        except OwnershipLostError as error:
            return f"a look with a lock that is not lost meanwhile ({error.reason})"


def _made_by(txn_id: int, listing: Listing) -> list[str]:
    return [name for name in listing.directories if "/" not in name and name.endswith(f"_v{txn_id:07d}")]


def compacted_by(listing: Listing) -> frozenset[int]:
    """The transactions of the compactions that made bases or deltas, as far as names tell."""
    names = (parse_directory_name(path) for path in listing.directories if "/" not in path and is_acid_prefixed(path))
    txn_ids = (name.visibility_txn_id for name in names if isinstance(name, BaseName | DeltaName))
    return frozenset(txn_id for txn_id in txn_ids if txn_id)


def removers_transaction(
    client: AcidMetastoreClient, settings: CompactionSettings, entity: Entity, asker: str
) -> CompactionTransaction:
    """The transaction of somebody who removes a whole result, for the EXCLUSIVE lock; not started yet.

    :param asker: see :class:`Withdrawal`.
    """
    return CompactionTransaction(
        client,
        entity,
        heartbeat_seconds=settings.heartbeat_seconds,
        lock_wait_seconds=settings.minor_lock_wait_seconds,
        agent_info=asker,
    )


def end_dead_lockers(
    client: AcidMetastoreClient, settings: CompactionSettings, entity: Entity, owner: str | None
) -> None:
    """End the transactions of those who died while they removed something: their locks would be waited for in vain.

    :param owner: see :class:`Withdrawal`.
    """
    attempts = Attempts.look(client, settings.transaction_timeout_seconds)
    # One transaction may hold several locks, and the metastore forgets one without writes soon after its abort.
    for txn_id in {lock.txn_id for lock in client.show_locks(entity)}:
        txn = attempts.transactions.get(txn_id or 0)
        if txn is None or txn.state is not TxnState.OPEN or pool_of_txn(txn) is None:
            continue
        if not attempts.is_alive(txn, owner):
            abort(client, txn.id)


def abort(client: AcidMetastoreClient, txn_id: int) -> None:
    """Abort a transaction that was open a moment ago; the metastore, or whoever was only asleep, may have ended it."""
    with suppress(OwnershipLostError):
        client.abort(txn_id)
