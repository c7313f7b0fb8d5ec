"""What becomes of a dead attempt's result, which depends on what makes a result part of the table.

On Hive 4 that is the commit of its transaction: what was renamed without it is taken back (:mod:`withdrawal`). On
Hive 3 the rename itself is the publication and stays; only half of a pair is taken back.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from airflow_provider_acid.acid.listing import Listing, names_only
from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.journal import read_journal
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import staging_tokens
from airflow_provider_acid.compaction.recover.attempts import Attempts, pool_of_txn
from airflow_provider_acid.compaction.recover.recovered_partition import DIED, RecoveredPartition, busy, end_row
from airflow_provider_acid.compaction.recover.withdrawal import Withdrawal, abort, compacted_by
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import OwnershipLostError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, OpenTxns, TxnState
from airflow_provider_acid.plan.exchange import OUTPUTS_DIRECTORY
from airflow_provider_acid.plan.plan import OutputKind

log = logging.getLogger(__name__)


class DeadResults(Protocol):
    """See :class:`CommittedResults` and :class:`RenamedResults`."""

    unsettled_states: tuple[CompactionState, ...]
    """Of rows that may be unsettled."""

    def is_unsettled(self, row: CompactionRow) -> bool:
        """Whether a row is to be given to :meth:`settle`."""

    def settle(
        self, attempts: Attempts, row: CompactionRow, owner: str | None, partition: RecoveredPartition | None
    ) -> Outcome | None:
        """Bring a row to an end, or nearer to it, whose worker had all but finished.

        :param owner: the asking task; None where nobody's former tries are known to be dead.
        :param partition: the row's partition; None where that is gone.
        :returns: an outcome where the partition has to be left alone; None where the row is in nobody's way.
        """

    def take_back(self, partition: RecoveredPartition, staging: str | None, txn_id: int | None) -> str | None:
        """End a dead attempt's transaction and take back what must not stay of what it published.

        :param staging: where its staging directory was moved to; None where it had none.
        :returns: what that waits for, in one clause; None where it is done.
        """

    def may_hold_uncommitted(self, listing: Listing) -> bool:
        """Whether :meth:`withdraw_aborted` may have something to do about what a partition holds."""

    def withdraw_aborted(self, partition: RecoveredPartition, listing: Listing | None = None) -> str | None:
        """Take back what compactions with aborted transactions left in the partition.

        :param listing: of a moment ago, if somebody looked and changed nothing since; of directories at least.
        :returns: what that waits for; None where nothing is left.
        """


class CommittedResults:
    """On Hive 4: what a compaction renamed is part of the table as soon as its transaction commits."""

    unsettled_states: tuple[CompactionState, ...] = (
        CompactionState.READY_FOR_CLEANING,
        CompactionState.WORKING,
        CompactionState.INITIATED,
    )

    def __init__(self, client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._txns = OpenTxns(0, (), (), None)

    def is_unsettled(self, row: CompactionRow) -> bool:
        """Whether a row is committed and not ready for cleaning, as ours may be, or the other way round, as Hive's.

        One that is initiated was taken back by Hive's Initiator, after its worker time-out.
        """
        if row.state is CompactionState.WORKING:
            return row.commit_ms is not None and RequestPool.of_worker(row.worker_id) is not None
        if row.state is CompactionState.INITIATED:
            return row.commit_ms is not None and RequestPool.parse(row.pool) is not None
        return row.state is CompactionState.READY_FOR_CLEANING and row.commit_ms is None

    def settle(
        self, attempts: Attempts, row: CompactionRow, owner: str | None, partition: RecoveredPartition | None
    ) -> Outcome | None:
        """One that is committed is made ready for cleaning; one that never can be is failed.

        Never cleaned as it stands: with an aborted transaction its directory is no part of the table
        (HIVE-29572).

        :raises OwnershipLostError: the metastore contradicts itself.
        """
        if row.state is not CompactionState.READY_FOR_CLEANING:
            claim: ClaimedCompaction | None = ClaimedCompaction(CompactionInfo.of_row(row), row.worker_id or "")
            if row.state is CompactionState.INITIATED:
                claim = _claim_again(self._queue, row)
            if claim is None:
                return None
            # Whoever is alive and about to do it himself finds it done.
            self._queue.complete(replace(claim, txn_id=row.txn_id))
            message = f"made request {row.id} ready for cleaning, which a dead attempt had left one step before its end"
            return Outcome(row.entity, OutcomeState.COMPACTED, message, row.id)
        txn = attempts.transactions.get(row.txn_id or 0)
        if txn is not None and txn.state is TxnState.OPEN and not _is_dead(attempts, txn.id, owner):
            return busy(row, f"waits for the commit of transaction {txn.id}")
        if txn is not None:
            waits = None
            if partition is not None and pool_of_txn(txn) is not None:
                waits = self.take_back(partition, None, txn.id)
            if waits is not None:
                return kept_until(row, txn.id, waits)
            end_row(self._queue, row, f"{DIED}: transaction {txn.id} was aborted before it was committed")
            return None
        now = self._queue.row(row.id)
        if now is None or now.commit_ms is not None or now.state is not row.state:
            return None
        if row.notes_no_commit:
            # Every reader takes the transaction for committed.
            return None
        raise OwnershipLostError(
            f"compaction request {row.id} of {row.entity}",
            f"is ready for cleaning but not committed, and its transaction {row.txn_id} is neither open nor aborted",
            "compare COMPACTION_QUEUE and TXNS in the metastore's database before anything is deleted",
        )

    def take_back(self, partition: RecoveredPartition, staging: str | None, txn_id: int | None) -> str | None:
        """See :class:`~.withdrawal.Withdrawal`, which finds a pair's journal wherever it lies."""
        return None if txn_id is None else self._withdrawal(partition).withdraw(txn_id)

    def may_hold_uncommitted(self, listing: Listing) -> bool:
        """Not where nothing is staged, and all that compactions made is known to be committed."""
        return bool(staging_tokens(listing)) or not all(map(self._was_committed, compacted_by(listing)))

    def withdraw_aborted(self, partition: RecoveredPartition, listing: Listing | None = None) -> str | None:
        """A minor's directories go both or not at all."""
        if not self.may_hold_uncommitted(partition.storage.list(into=names_only) if listing is None else listing):
            return None
        self._txns = self._client.open_transactions()
        aborted = self._txns.aborted
        self._put_out_of_reach(partition, aborted)
        waits = self._withdrawal(partition).withdraw_aborted(aborted)
        if waits is not None:
            log.warning("%s: what an aborted compaction published stays and waits for %s", partition.entity, waits)
        return waits

    def _was_committed(self, txn_id: int) -> bool:
        """Whether the last look says so, which then holds for good."""
        return txn_id <= self._txns.high_water_mark and self._txns.state_of(txn_id) is TxnState.COMMITTED_OR_UNKNOWN

    def _put_out_of_reach(self, partition: RecoveredPartition, aborted: Collection[int]) -> None:
        """Take over the staging directories of attempts whose transactions are aborted.

        A zombie would else publish after the removal, at worst the other half, and once the table's aborted write
        ids are forgotten its transaction counts as committed.
        """
        tokens = staging_tokens(partition.storage.list(into=names_only))
        if not tokens:
            return
        attempts = Attempts.look(self._client, self._settings.transaction_timeout_seconds)
        for token in tokens:
            txn = attempts.transaction_of(token)
            if txn is not None and txn.id in aborted:
                publisher_on(partition.storage).take_over(token)

    def _withdrawal(self, partition: RecoveredPartition) -> Withdrawal:
        return Withdrawal(
            self._client,
            self._settings,
            partition.entity,
            partition.storage,
            asker=str(partition.own),
            owner=partition.owner,
        )


class RenamedResults:
    """On Hive 3: what a compaction renamed is part of the table, whatever becomes of its transaction.

    The transaction only holds locks. One that is neither open nor aborted has ended, and nothing follows from that.
    """

    unsettled_states: tuple[CompactionState, ...] = (CompactionState.READY_FOR_CLEANING, CompactionState.INITIATED)

    def __init__(self, client: AcidMetastoreClient, queue: CompactionQueue) -> None:
        self._client = client
        self._queue = queue

    def is_unsettled(self, row: CompactionRow) -> bool:
        """Whether a row is published; those of Hive's own workers are never, as far as we can know."""
        return row.state in self.unsettled_states and row.commit_ms is not None

    def settle(
        self, attempts: Attempts, row: CompactionRow, owner: str | None, partition: RecoveredPartition | None
    ) -> Outcome | None:
        """A published row: claimed anew where Hive's Initiator took it back; a dead worker's locks are ended."""
        if row.state is CompactionState.INITIATED:
            _claim_again(self._queue, row)
        txn = attempts.transactions.get(row.txn_id or 0)
        if txn is not None and txn.state is TxnState.OPEN and _is_dead(attempts, txn.id, owner):
            # It would hold back the cleaning until the metastore ends it.
            abort(self._client, txn.id)
        reason = f"is published by request {row.id} and waits to be cleaned; Hive 3 takes no other request meanwhile"
        return busy(row, reason)

    def take_back(self, partition: RecoveredPartition, staging: str | None, txn_id: int | None) -> str | None:
        """Half of a pair goes while the dead attempt's lock, if it still holds one, keeps readers away."""
        if staging is not None:
            take_back_half(partition.storage, staging)
        if txn_id is not None and self._client.transaction_state(txn_id) is TxnState.OPEN:
            abort(self._client, txn_id)
        return None

    def may_hold_uncommitted(self, listing: Listing) -> bool:
        """Never; see :meth:`withdraw_aborted`."""
        return False

    def withdraw_aborted(self, partition: RecoveredPartition, listing: Listing | None = None) -> str | None:
        """Nothing: no name tells a transaction, and half of a pair goes with the staging directory it came from."""
        return None


def dead_results(client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings) -> DeadResults:
    """What fits to the queue."""
    if queue.hive.publishes_by_commit:
        return CommittedResults(client, queue, settings)
    return RenamedResults(client, queue)


def kept_until(row: CompactionRow, txn_id: int | None, waits: str) -> Outcome:
    """The outcome where what a dead attempt published cannot be taken back yet."""
    reason = f"keeps what transaction {txn_id} published and did not commit; its removal waits for {waits}"
    return busy(row, reason)


def _claim_again(queue: CompactionQueue, row: CompactionRow) -> ClaimedCompaction | None:
    """Claim a request whose result is part of the table, and that Hive's Initiator took back as forgotten."""
    pool = RequestPool.parse(row.pool)
    claim = None if pool is None else queue.claim(str(pool), pool.worker_id("recovery"))
    if claim is None:
        log.warning("%s: the published request %s could not be claimed again", row.entity, row.id)
    return claim


def _is_dead(attempts: Attempts, txn_id: int, owner: str | None) -> bool:
    txn = attempts.transactions[txn_id]
    return pool_of_txn(txn) is not None and not attempts.is_alive(txn, owner)


def take_back_half(storage: Storage, staging: str) -> None:
    """Undo the first of two renames if the second did not follow; a whole pair stays.

    For Hive 3, where every reader sees the half. Its names tell no transaction: a later attempt's result may have the
    very name of the half, and whoever was asleep while that appeared must not touch it. A rename back into the staging
    directory is its own fence: the directory belongs to whoever renamed it last, and for everybody else the rename has
    no target.

    The output is complete again after it, and of use to the next attempt. Where somebody else has taken the directory
    over meanwhile, nothing is done, for that one does it.

    :param staging: name of a dead attempt's staging directory, taken over by the caller.
    :raises StorageError: it cannot be undone, or nobody can tell now whether it has to be; the directory stays then.
    """
    journal = read_journal(storage, staging)
    if journal is None:
        return
    staged = {target: f"{staging}/{OUTPUTS_DIRECTORY}/{_kind(target).value}" for target in journal.targets}
    renamed = [target for target, path in staged.items() if not storage.exists(path)]
    if len(renamed) == len(staged):
        return
    for target in renamed:
        log.info("%s: taking back %s, whose other half is missing", storage.location, target)
        try:
            storage.publish(target, staged[target])
        except StorageError:
            if storage.exists(staging) and storage.exists(target):
                raise


def _kind(target: str) -> OutputKind:
    name = parse_directory_name(target)
    return OutputKind.DELETES if isinstance(name, DeltaName) and name.is_delete else OutputKind.ROWS
