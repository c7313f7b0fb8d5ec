"""What a new attempt does first: put in order what dead attempts left of the same partition.

Whoever takes over first ends the predecessor's transaction and then moves or deletes its staging directory, so that
a predecessor that was only asleep has nothing left to rename, and nothing it could still commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.attempts import Attempts, pool_of_txn, pool_of_worker, worker_id
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.run_directory import remove_dead_runs
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.staging import (
    FinishedOutput,
    finish_removals,
    remove_whole,
    sealed_output,
    staging_name,
    staging_tokens,
)
from airflow_provider_acid.exceptions import ObjectNotFoundError, OwnershipLostError
from airflow_provider_acid.filesystem import Storage, storage_for
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnState

log = logging.getLogger(__name__)

DIED = "an attempt died"
"""How the messages begin with which rows of dead attempts are failed; they are not the partition's fault."""


@dataclass(frozen=True)
class _Scene:
    """What was found about one partition, and who asks."""

    entity: Entity
    storage: Storage
    attempts: Attempts
    own: RequestPool


class Recovery:
    """Puts in order what dead attempts left; belongs to one thread, like its client."""

    def __init__(self, client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings

    def recover(self, facts: EntityFacts, own: RequestPool) -> Outcome | FinishedOutput | None:
        """Bury dead attempts of one partition, or say who is alive.

        :returns: an outcome where a living attempt has the partition, or where a dead one had finished but for
            its commit; the finished output of a dead attempt, moved to the staging directory of ``own``; or None.
        :raises OwnershipLostError: the metastore contradicts itself; nothing was changed.
        """
        rows = self._queue.rows(entity=facts.entity)
        scene = _Scene(facts.entity, storage_for(facts.location), self._look(), own)
        for row in rows:
            outcome = self._recover_row(scene, row)
            if outcome is not None:
                return outcome
        finished = self._recover_staging(scene)
        remove_dead_runs(self._settings.run_directory or facts.table.location, self._look_for_living)
        return finished

    def _look_for_living(self) -> Callable[[str], bool]:
        attempts = self._look()

        def is_alive(token: str) -> bool:
            txn = attempts.transaction_of(token)
            return txn is not None and attempts.is_alive(txn, None)

        return is_alive

    def settle_uncommitted(self, entities: Collection[Entity]) -> tuple[Outcome, ...]:
        """Settle rows 'ready for cleaning' whose transaction never committed; see :meth:`recover`."""
        rows = [
            row
            for row in self._queue.rows(state=CompactionState.READY_FOR_CLEANING)
            if row.entity in set(entities) and row.commit_ms is None
        ]
        if not rows:
            return ()
        attempts = self._look()
        settled = (self._settle(attempts, row, None, self._storage_of(row.entity)) for row in rows)
        return tuple(outcome for outcome in settled if outcome is not None)

    def _look(self) -> Attempts:
        return Attempts.look(self._client, self._settings.transaction_timeout_seconds)

    def _recover_row(self, scene: _Scene, row: CompactionRow) -> Outcome | None:
        if row.state is CompactionState.READY_FOR_CLEANING and row.commit_ms is None:
            return self._settle(scene.attempts, row, scene.own.owner, scene.storage)
        if row.state is CompactionState.INITIATED:
            return self._recover_unclaimed(scene, row)
        if row.state is CompactionState.WORKING:
            return self._recover_working(scene, row)
        return None

    def _settle(
        self, attempts: Attempts, row: CompactionRow, owner: str | None, storage: Storage | None
    ) -> Outcome | None:
        """A row whose transaction never committed: commit it if that can still be done, else fail the row.

        Never cleaned as it stands: with an aborted transaction its directory is no part of the table
        (HIVE-29572).

        :returns: an outcome where the row is settled or somebody alive is about to; None where it was failed.
        """
        txn = attempts.transactions.get(row.txn_id or 0)
        if txn is not None and txn.state is TxnState.OPEN:
            if pool_of_txn(txn) is None or attempts.is_alive(txn, owner):
                return _busy(row, f"waits for the commit of transaction {txn.id}")
            if self._commit(txn.id):
                message = f"committed transaction {txn.id}, which a dead attempt had left one step before its end"
                return Outcome(row.entity, OutcomeState.COMPACTED, message, row.id)
        if txn is not None:
            if storage is not None and pool_of_txn(txn) is not None:
                self._remove_unseen(storage, row, txn.id)
            self._queue.fail(row, f"{DIED}: transaction {txn.id} was aborted before it was committed")
            return None
        now = self._queue.row(row.id)
        if now is None or now.commit_ms is not None or now.state is not row.state:
            return None
        raise OwnershipLostError(
            f"compaction request {row.id} of {row.entity}",
            f"is ready for cleaning but not committed, and its transaction {row.txn_id} is neither open nor aborted",
            "compare COMPACTION_QUEUE and TXNS in the metastore's database before anything is deleted",
        )

    def _commit(self, txn_id: int) -> bool:
        """Commit a dead attempt's transaction; False where the metastore has just aborted it for its silence."""
        try:
            self._client.commit(txn_id)
        except OwnershipLostError:
            if self._client.transaction_state(txn_id) is not TxnState.ABORTED:
                raise
            return False
        return True

    def _recover_unclaimed(self, scene: _Scene, row: CompactionRow) -> Outcome | None:
        pool = RequestPool.parse(row.pool)
        if pool is None:
            return None
        requested_seconds = scene.attempts.age_seconds(row.enqueue_ms)
        if pool.owner != scene.own.owner and requested_seconds <= scene.attempts.timeout_seconds:
            return _busy(row, "was just requested by another task")
        claim = self._queue.claim(str(pool), worker_id(scene.own, "recovery"))
        if claim is not None:
            self._queue.fail(claim, f"{DIED} before it claimed its request")
        return None

    def _recover_working(self, scene: _Scene, row: CompactionRow) -> Outcome | None:
        pool = pool_of_worker(row.worker_id)
        if pool == scene.own:
            return None
        if pool is None:
            return _busy(row, f"is being compacted by the worker {row.worker_id}, which is not of this package")
        txn = scene.attempts.transactions.get(row.txn_id or 0) or scene.attempts.transaction_of(pool.token)
        if txn is not None and scene.attempts.is_alive(txn, scene.own.owner):
            return _busy(row, f"is being compacted by {row.worker_id} in transaction {txn.id}")
        claimed_seconds = scene.attempts.age_seconds(row.start_ms)
        if txn is None and pool.owner != scene.own.owner and claimed_seconds <= scene.attempts.timeout_seconds:
            return _busy(row, f"was claimed {claimed_seconds:.0f} s ago by {row.worker_id}")
        txn_id = txn.id if txn else row.txn_id
        self._end_transaction(txn_id)
        # In this order: once the staging directory is out of reach nothing more is published, and until the row is
        # failed a death of ours leaves it to be found again.
        self._take_over_staging(scene, pool.token)
        self._remove_unseen(scene.storage, row, txn_id)
        self._queue.fail(row, f"{DIED} and another took over: {row.worker_id}")
        return None

    def _end_transaction(self, txn_id: int | None) -> None:
        if txn_id is not None and self._client.transaction_state(txn_id) is TxnState.OPEN:
            self._client.abort(txn_id)

    def _remove_unseen(self, storage: Storage, row: CompactionRow, txn_id: int | None) -> None:
        """Delete what a dead attempt published in a transaction that is aborted: no Hive reader saw it.

        Readers that ignore transactions (Trino) may see it, hence whole or not at all.
        """
        if txn_id is None:
            return
        published = [name for name in storage.list().directories if name.endswith(f"_v{txn_id:07d}")]
        if not published:
            return
        if self._client.transaction_state(txn_id) is not TxnState.ABORTED:
            raise OwnershipLostError(
                f"{', '.join(published)} of {row.entity}",
                f"was published by an attempt that is taken for dead, but transaction {txn_id} is not aborted",
                "compare COMPACTION_QUEUE and TXNS in the metastore's database before anything is deleted",
            )
        for name in published:
            log.info("%s: removing %s of aborted transaction %s", row.entity, name, txn_id)
            remove_whole(storage, name)

    def _recover_staging(self, scene: _Scene) -> FinishedOutput | None:
        listing = scene.storage.list()
        finish_removals(scene.storage, listing)
        tokens = staging_tokens(listing)
        if not tokens:
            return None
        # Looked at after the listing: whoever made a staging directory opened its transaction before.
        attempts = self._look()
        for token in tokens:
            txn = attempts.transaction_of(token)
            if token == scene.own.token or (txn is not None and attempts.is_alive(txn, scene.own.owner)):
                continue
            self._end_transaction(txn.id if txn else None)
            self._take_over_staging(scene, token)
        finished = sealed_output(scene.storage, scene.own.token)
        if finished is None:
            remove_whole(scene.storage, staging_name(scene.own.token))
        return finished

    def _take_over_staging(self, scene: _Scene, token: str) -> None:
        """Move finished output to the asking attempt's own name; remove anything else."""
        own = staging_name(scene.own.token)
        if sealed_output(scene.storage, token) is None or scene.storage.exists(own):
            remove_whole(scene.storage, staging_name(token))
        else:
            scene.storage.publish(staging_name(token), own)

    def _storage_of(self, entity: Entity) -> Storage | None:
        """None where the partition is gone, and its directories with it."""
        try:
            return storage_for(load_facts(self._client, entity).location)
        except ObjectNotFoundError:
            return None


def _busy(row: CompactionRow, reason: str) -> Outcome:
    return Outcome(row.entity, OutcomeState.SKIPPED, f"{row.entity} {reason}", row.id)
