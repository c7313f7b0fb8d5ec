"""What a new attempt does first: put in order what dead attempts left of the same partition.

Whoever takes over first takes the predecessor's staging directory out of its reach (:mod:`store_rules`), so that a
predecessor that was only asleep has nothing left to publish; then takes back what must not stay of what it published
and ends its transaction, in the order that :mod:`dead_results` and :mod:`withdrawal` explain; then ends its request.

Several may do this at once: a moved directory belongs to whoever moved it last, and everything else may be done twice,
or be found done.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing, names_only
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.publisher import publisher_on, remove_discards
from airflow_provider_acid.compaction.publish.staging import (
    FinishedOutput,
    finish_removals,
    staging_name,
    staging_tokens,
)
from airflow_provider_acid.compaction.publish.undo_note import serves_an_undo
from airflow_provider_acid.compaction.recover.attempts import Attempts, nobodys_pool, pool_of_txn, tokens_in
from airflow_provider_acid.compaction.recover.dead_results import dead_results, kept_until
from airflow_provider_acid.compaction.recover.recovered_partition import DIED, EndRow, RecoveredPartition, busy, end_row
from airflow_provider_acid.compaction.run.dead_runs import DeadRuns
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    OwnershipLostError,
)
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnInfo

log = logging.getLogger(__name__)


class Recovery:
    """Puts in order what dead attempts left; belongs to one thread, like its client.

    :param end: how a claim ends whose worker is dead, with a message; by default it fails.
    :param run_places: where all who are given the same have looked for dead runs.
    :param owners: of the batch that begins: runs that former tries of its task made are dead, whatever their
        transactions' age.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        *,
        end: EndRow | None = None,
        run_places: set[RunPlace] | None = None,
        owners: Collection[str] = (),
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._results = dead_results(client, queue, settings)
        self._end_row = end
        self._owners = owners
        self._dead_runs = DeadRuns(settings.storages, self._look_for_living, lambda: client.database_uuid(), run_places)

    def recover(self, facts: EntityFacts, own: RequestPool) -> Outcome | FinishedOutput | None:
        """Bury dead attempts of one partition, or say who is alive.

        :returns: an outcome where a living attempt has the partition, where a dead one had finished but for
            its commit, or where a result waits to be cleaned that stands in the way; the finished output of a dead
            attempt, for whoever adopts it first; or None.
        :raises OwnershipLostError: the metastore contradicts itself; nothing was changed.
        """
        # The rows first, then who is alive: whoever claimed one of them had opened its transaction before, or is about
        # to.
        rows = self._queue.rows(entity=facts.entity)
        partition = RecoveredPartition(
            facts.entity, self._settings.storages.open(facts.location), self._look, own, own.owner
        )
        for row in rows:
            outcome = self._recover_row(partition, row)
            if outcome is not None:
                return outcome
        finished, listing = self._recover_staging(partition)
        # What appears after a look that found no staging directory is no dead attempt's: that has one, or had published
        # before. And the snapshot is taken by a look of its own.
        self._results.withdraw_aborted(partition, listing)
        self.remove_dead_runs(facts.table.location)
        return finished

    def remove_dead_runs(self, table_location: str) -> None:
        """Remove dead operators' run directories where a batch that begins with a table has its own, once."""
        self._dead_runs.remove(self._settings.run_directory, table_location)

    def recover_claim(self, row: CompactionRow) -> Outcome | None:
        """Bury the dead attempt that has claimed ``row``; for who compacts nothing himself.

        :returns: an outcome where the attempt may be alive, or what it published cannot be taken back yet; None
            where its request was ended.
        """
        attempts = self._look()
        partition = self._find_partition(row.entity, attempts)
        if partition is not None:
            return self._recover_working(partition, row)
        alive = _who_works(attempts, row, None)
        if alive is None:
            end_row(self._queue, row, f"{DIED}, and its partition is gone: {row.worker_id}")
        return alive

    def remove_orphans(self, entity: Entity, storage: Storage, listing: Listing) -> tuple[str, ...]:
        """Remove staging directories of attempts that are neither alive nor in the queue, and cut-off removals.

        Half of a pair that one of them published is taken back before.

        :param listing: of the partition, taken before this call, since who is alive is looked up after it: whoever
            made a staging directory had opened its transaction before.
        :returns: names of what was removed.
        """
        removed = [*finish_removals(storage, listing), *remove_discards(storage, listing)]
        tokens = staging_tokens(listing)
        if not tokens:
            return tuple(removed)
        attempts = self._look()
        partition = RecoveredPartition(entity, storage, lambda: attempts, nobodys_pool(entity), None)
        rows = self._queue.rows(entity=entity)
        in_the_queue = tokens_in(rows)
        staging = publisher_on(storage)
        for token in tokens:
            txn = partition.attempts.transaction_of(token)
            is_alive = txn is not None and partition.attempts.is_alive(txn, None)
            if token in in_the_queue or is_alive or serves_an_undo(storage, token, rows):
                continue
            moved = staging.take_over(token)
            if moved is not None and self._results.take_back(partition, moved, txn.id if txn else None) is None:
                staging.remove(moved)
                removed.append(staging_name(token))
        return tuple(removed)

    def _look_for_living(self) -> frozenset[str]:
        """The tokens of all attempts whose transactions are alive now, but for those of the task's former tries."""
        attempts = self._look()
        living = (pool_of_txn(txn) for txn in attempts.transactions.values() if attempts.is_alive(txn, None))
        return frozenset(pool.token for pool in living if pool is not None and pool.owner not in self._owners)

    def is_unsettled(self, row: CompactionRow) -> bool:
        """Whether :meth:`settle_uncommitted` has something to do about a row."""
        return self._results.is_unsettled(row)

    def settle_uncommitted(self, entities: Collection[Entity]) -> tuple[Outcome, ...]:
        """Settle rows whose workers had all but finished; see :class:`~.dead_results.DeadResults`.

        :returns: failed outcomes where that was not possible.
        :raises MetastoreUnavailableError: the metastore does not answer.
        """
        wanted = set(entities)
        found = (row for state in self._results.unsettled_states for row in self._queue.rows(state=state))
        rows = [row for row in found if row.entity in wanted and self._results.is_unsettled(row)]
        if not rows:
            return ()
        attempts = self._look()
        settled = (self._settle(attempts, row) for row in rows)
        return tuple(outcome for outcome in settled if outcome is not None)

    def _settle(self, attempts: Attempts, row: CompactionRow) -> Outcome | None:
        try:
            with Supervised(row.entity):
                return self._results.settle(attempts, row, None, self._find_partition(row.entity, attempts))
        except MetastoreUnavailableError:
            raise
        except AcidError as error:
            return Outcome(row.entity, OutcomeState.FAILED, str(error), row.id)

    def may_hold_uncommitted(self, listing: Listing) -> bool:
        """Whether :meth:`withdraw_aborted` may have something to do about what a partition holds."""
        return self._results.may_hold_uncommitted(listing)

    def withdraw_aborted(self, entity: Entity, storage: Storage) -> str | None:
        """Take back what compactions with aborted transactions left: a minor's directories go both or not at all.

        :param storage: of the partition.
        :returns: what that waits for; None where nothing is left.
        """
        partition = RecoveredPartition(entity, storage, self._look, nobodys_pool(entity), None)
        return self._results.withdraw_aborted(partition)

    def _look(self) -> Attempts:
        return Attempts.look(self._client, self._settings.transaction_timeout_seconds)

    def _recover_row(self, partition: RecoveredPartition, row: CompactionRow) -> Outcome | None:
        if self._results.is_unsettled(row):
            return self._results.settle(partition.attempts, row, partition.own.owner, partition)
        if row.state is CompactionState.INITIATED:
            return self._recover_unclaimed(partition, row)
        if row.state is CompactionState.WORKING:
            return self._recover_working(partition, row)
        return None

    def _recover_unclaimed(self, partition: RecoveredPartition, row: CompactionRow) -> Outcome | None:
        pool = RequestPool.parse(row.pool)
        if pool is None:
            return None
        requested_seconds = partition.attempts.age_seconds(row.enqueue_ms)
        if pool.owner != partition.own.owner and requested_seconds <= partition.attempts.timeout_seconds:
            return busy(row, "was just requested by another task")
        claim = self._queue.claim(str(pool), partition.own.worker_id("recovery"))
        if claim is not None:
            self._queue.fail(claim, f"{DIED} before it claimed its request")
        return None

    def _recover_working(self, partition: RecoveredPartition, row: CompactionRow) -> Outcome | None:
        pool = RequestPool.of_worker(row.worker_id)
        if pool == partition.own:
            return None
        alive = _who_works(partition.attempts, row, partition.owner)
        if alive is not None or pool is None:
            return alive
        # In this order: once the staging directory is out of reach nothing more is published, and until the row has
        # ended a death of ours leaves it to be found again.
        moved = publisher_on(partition.storage).take_over(pool.token)
        txn = _transaction(partition.attempts, row)
        txn_id = txn.id if txn else row.txn_id
        try:
            waits = self._results.take_back(partition, moved, txn_id)
            if waits is not None:
                return kept_until(row, txn_id, waits)
            end_row(self._queue, row, f"{DIED} and another took over: {row.worker_id}", self._end_row)
        except OwnershipLostError:
            if not self._has_gone_on(row):
                raise
            return busy(row, f"was compacted by {row.worker_id}, which was only asleep, and has ended just now")
        return None

    def _has_gone_on(self, row: CompactionRow) -> bool:
        """Whether its attempt committed or ended since the row was looked at."""
        now = self._queue.row(row.id)
        return now is None or (now.state, now.commit_ms) != (row.state, row.commit_ms)

    def _recover_staging(self, partition: RecoveredPartition) -> tuple[FinishedOutput | None, Listing | None]:
        """Take over every dead attempt's staging directory; keep the finished output of one, remove the others.

        :returns: that, and what lies right in the partition, where nothing had to be done.
        """
        listing = partition.storage.list(into=names_only)
        removed = finish_removals(partition.storage, listing)
        tokens = staging_tokens(listing)
        if not tokens:
            return None, None if removed else listing
        # Looked at after the listing: whoever made a staging directory opened its transaction before, and a result
        # that was published since then is in the queue.
        attempts = self._look()
        rows = self._queue.rows(entity=partition.entity)
        waiting = tokens_in(filter(self._results.is_unsettled, rows))
        staging = publisher_on(partition.storage)
        finished: FinishedOutput | None = None
        for token in tokens:
            txn = attempts.transaction_of(token)
            is_alive = txn is not None and attempts.is_alive(txn, partition.owner)
            if token in {partition.own.token, *waiting} or is_alive or serves_an_undo(partition.storage, token, rows):
                continue
            moved = staging.take_over(token)
            if moved is None:
                continue
            waits = self._results.take_back(partition, moved, txn.id if txn else None)
            found = staging.finished_output(moved) if finished is None else None
            finished = finished or found
            # Where there are no renames the name stays, and its journal has to tell the next recovery whether what
            # waits for its removal is whole or a part.
            if found is None and waits is None:
                staging.remove(moved)
        return finished, None

    def _find_partition(self, entity: Entity, attempts: Attempts) -> RecoveredPartition | None:
        """For who is no attempt; None where the partition is gone, and its directories with it."""
        try:
            storage = self._settings.storages.open(load_facts(self._client, entity).location)
        except ObjectNotFoundError:
            return None
        return RecoveredPartition(entity, storage, lambda: attempts, nobodys_pool(entity), None)


def _who_works(attempts: Attempts, row: CompactionRow, owner: str | None) -> Outcome | None:
    """Who has claimed a row and may be alive; None where that is a dead attempt of ours."""
    pool = RequestPool.of_worker(row.worker_id)
    if pool is None:
        return busy(row, f"is being compacted by the worker {row.worker_id}, which is not of this package")
    txn = _transaction(attempts, row)
    if txn is not None and attempts.is_alive(txn, owner):
        return busy(row, f"is being compacted by {row.worker_id} in transaction {txn.id}")
    claimed_seconds = attempts.age_seconds(row.start_ms)
    if txn is None and pool.owner != owner and claimed_seconds <= attempts.timeout_seconds:
        return busy(row, f"was claimed {claimed_seconds:.0f} s ago by {row.worker_id}")
    return None


def _transaction(attempts: Attempts, row: CompactionRow) -> TxnInfo | None:
    """The open or aborted transaction of the attempt that has claimed a row."""
    pool = RequestPool.of_worker(row.worker_id)
    of_attempt = None if pool is None else attempts.transaction_of(pool.token)
    return attempts.transactions.get(row.txn_id or 0) or of_attempt
