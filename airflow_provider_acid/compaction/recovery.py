"""What a new attempt does first: put in order what dead attempts left of the same partition.

Whoever takes over first moves the predecessor's staging directory, so that a predecessor that was only asleep has
nothing left to rename; then ends its transaction, so that it can commit nothing, and takes back what it published, in
the order that :mod:`withdrawal` explains.
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
from airflow_provider_acid.compaction.withdrawal import Withdrawal
from airflow_provider_acid.exceptions import ObjectNotFoundError, OwnershipLostError
from airflow_provider_acid.filesystem import Storage, storage_for
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnState

log = logging.getLogger(__name__)

DIED = "an attempt died"
"""How the messages begin with which rows of dead attempts are failed; they are not the partition's fault."""


@dataclass(frozen=True)
class _Scene:
    """What was found about one partition, and who asks.

    :param owner: the asking task, whose former tries are dead; None where nobody's are known to be.
    """

    entity: Entity
    storage: Storage
    attempts: Attempts
    own: RequestPool
    owner: str | None


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
        scene = _Scene(facts.entity, storage_for(facts.location), self._look(), own, own.owner)
        for row in rows:
            outcome = self._recover_row(scene, row)
            if outcome is not None:
                return outcome
        finished = self._recover_staging(scene)
        self._withdraw_aborted(scene)
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
        settled = (self._settle(attempts, row, None, self._scene_of(row.entity, attempts)) for row in rows)
        return tuple(outcome for outcome in settled if outcome is not None)

    def withdraw_aborted(self, entity: Entity) -> str | None:
        """Take back what compactions with aborted transactions left: a minor's directories go both or not at all.

        :returns: what that waits for; None where nothing is left.
        """
        scene = self._scene_of(entity, self._look())
        return None if scene is None else self._withdraw_aborted(scene)

    def _withdraw_aborted(self, scene: _Scene) -> str | None:
        aborted = self._client.open_transactions().aborted
        self._put_out_of_reach(scene, aborted)
        waits = self._withdrawal(scene).withdraw_aborted(aborted)
        if waits is not None:
            log.warning("%s: what an aborted compaction published stays and waits for %s", scene.entity, waits)
        return waits

    def _put_out_of_reach(self, scene: _Scene, aborted: Collection[int]) -> None:
        """Rename the staging directories of attempts whose transactions are aborted; what is in them stays of use.

        A sleeper would else publish after the removal, at worst the other half, and once the table's aborted write
        ids are forgotten its transaction counts as committed.
        """
        tokens = staging_tokens(scene.storage.list())
        attempts = self._look() if tokens else scene.attempts
        for token in tokens:
            txn = attempts.transaction_of(token)
            if txn is not None and txn.id in aborted:
                nobodys = RequestPool.new(scene.own.owner)
                scene.storage.publish(staging_name(token), staging_name(nobodys.token))

    def _look(self) -> Attempts:
        return Attempts.look(self._client, self._settings.transaction_timeout_seconds)

    def _recover_row(self, scene: _Scene, row: CompactionRow) -> Outcome | None:
        if row.state is CompactionState.READY_FOR_CLEANING and row.commit_ms is None:
            return self._settle(scene.attempts, row, scene.own.owner, scene)
        if row.state is CompactionState.INITIATED:
            return self._recover_unclaimed(scene, row)
        if row.state is CompactionState.WORKING:
            return self._recover_working(scene, row)
        return None

    def _settle(
        self, attempts: Attempts, row: CompactionRow, owner: str | None, scene: _Scene | None
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
            waits = None
            if scene is not None and pool_of_txn(txn) is not None:
                waits = self._withdraw(scene, row, txn.id)
            if waits is not None:
                return waits
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
        # In this order: once the staging directory is out of reach nothing more is published, and until the row is
        # failed a death of ours leaves it to be found again.
        moved = self._move_staging(scene, pool.token)
        waits = self._withdraw(scene, row, txn.id if txn else row.txn_id)
        self._drop_unfinished(scene, moved)
        if waits is not None:
            return waits
        self._queue.fail(row, f"{DIED} and another took over: {row.worker_id}")
        return None

    def _withdraw(self, scene: _Scene, row: CompactionRow, txn_id: int | None) -> Outcome | None:
        """End a dead attempt's transaction and take back what it published; an outcome where that has to wait."""
        waits = None if txn_id is None else self._withdrawal(scene).withdraw(txn_id)
        if waits is None:
            return None
        return _busy(
            row, f"keeps what transaction {txn_id} published and did not commit; its removal waits for {waits}"
        )

    def _withdrawal(self, scene: _Scene) -> Withdrawal:
        return Withdrawal(
            self._client,
            self._settings,
            scene.entity,
            scene.storage,
            asker=str(scene.own),
            owner=scene.owner,
        )

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
            moved = self._move_staging(scene, token)
            if txn is not None:
                self._withdrawal(scene).withdraw(txn.id)
            self._drop_unfinished(scene, moved)
        return self._drop_unfinished(scene)

    def _move_staging(self, scene: _Scene, token: str) -> str:
        """Take a dead attempt's staging directory out of its reach, to the asking attempt's own name if that is free.

        What is of no use is removed once what it published is taken back, for that needs the journal in it.

        :returns: its new name.
        """
        is_free = not scene.storage.exists(staging_name(scene.own.token))
        target = staging_name((scene.own if is_free else RequestPool.new(scene.own.owner)).token)
        if scene.storage.exists(staging_name(token)):
            scene.storage.publish(staging_name(token), target)
        return target

    def _drop_unfinished(self, scene: _Scene, moved: str | None = None) -> FinishedOutput | None:
        """The finished output among what was moved; anything else is removed."""
        finished = sealed_output(scene.storage, scene.own.token)
        own = staging_name(scene.own.token)
        if finished is None:
            remove_whole(scene.storage, own)
        if moved is not None and moved != own:
            remove_whole(scene.storage, moved)
        return finished

    def _scene_of(self, entity: Entity, attempts: Attempts) -> _Scene | None:
        """For the cleaner, which is no attempt; None where the partition is gone, and its directories with it."""
        try:
            storage = storage_for(load_facts(self._client, entity).location)
        except ObjectNotFoundError:
            return None
        return _Scene(entity, storage, attempts, RequestPool.new(owner_of("cleaner", str(entity))), None)


def _busy(row: CompactionRow, reason: str) -> Outcome:
    return Outcome(row.entity, OutcomeState.SKIPPED, f"{row.entity} {reason}", row.id)
