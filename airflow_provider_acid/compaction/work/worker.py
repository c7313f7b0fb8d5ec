"""Hive's Worker for one partition at a time: begin, and, once the Spark job has merged, finish or abandon.

The order of steps is Hive's own: enqueue, claim, transaction and lock, snapshot, record, merge, verify, fence,
publish, mark compacted, commit. The second half is in :mod:`finishing`. Whatever dies in between, :mod:`recovery` puts
in order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from airflow_provider_acid.acid.directory import BaseDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction, Waiting
from airflow_provider_acid.compaction.eligibility import check_entity, file_format
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.replaced import write_replaced
from airflow_provider_acid.compaction.publish.staging import FinishedOutput, open_staging, staging_name
from airflow_provider_acid.compaction.recover.attempts import worker_id
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.requests_of_others import in_the_way, servable_facts
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import Snapshot, take_snapshot
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.finishing import Finished, Finisher
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreError,
    ObjectNotFoundError,
    OwnershipLostError,
    RefusedError,
    UnsupportedTableError,
)
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import KEEP_SECONDS, ClaimedCompaction, CompactionQueue, NotEnqueued
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.partition import AttemptNames, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.planning import choose, plan_compaction
from airflow_provider_acid.plan.result import CompactionResult

log = logging.getLogger(__name__)

TransactionFactory = Callable[[Entity, str], CompactionTransaction]
"""Makes the (not yet started) transaction for an entity; the text goes into its agent info."""


class Worker:
    """Begins and finishes compactions; belongs to one thread, like its client.

    :param identity: of the task; stays the same when the same task is tried again.
    :param host: this machine's name, shown with the worker's id in ``SHOW COMPACTIONS``.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        transactions: TransactionFactory,
        settings: CompactionSettings,
        *,
        identity: str,
        host: str,
        on_step: StepListener = ignore_steps,
    ) -> None:
        self._client = client
        self._queue = queue
        self._transactions = transactions
        self._settings = settings
        self._identity = identity
        self._host = host
        self._on_step = on_step
        self._neighbours = Neighbours(client, queue.database, settings.exclusive_locations)
        self._recovery = Recovery(client, queue, settings)
        self._finisher = Finisher(queue, settings, on_step)
        self._kept: dict[int, float] = {}
        self._policy = settings.policy(queue.hive)

    @property
    def metastore(self) -> str | None:
        """The id of its metastore's database; None where that is not known."""
        return self._client.database_uuid()

    def begin(self, due: DuePartition) -> ActiveCompaction | Outcome:
        """Claim, lock and plan one partition; an outcome where there is nothing (more) to do.

        Errors of this one partition come back as its outcome.
        """
        pool = RequestPool.new(owner_of(self._identity, str(due.entity)))
        try:
            with Supervised(due.entity):
                return self._begin(due, pool)
        except AcidError as error:
            state = OutcomeState.REFUSED if error.is_permanent else OutcomeState.FAILED
            return Outcome(due.entity, state, str(error), due.request_id)

    def _begin(self, due: DuePartition, pool: RequestPool) -> ActiveCompaction | Outcome:
        if due.request_id is not None:
            return self._begin_foreign(due, due.request_id, pool)
        facts = load_facts(self._client, due.entity)
        if not facts.table.is_transactional or facts.table.is_external:
            check_entity(facts)
        self._neighbours.check(facts.table, facts.partition)
        recovered = self._recovery.recover(facts, pool)
        self._on_step(Step.RECOVERED, due.entity)
        if isinstance(recovered, Outcome):
            return recovered
        made = self._queue.enqueue(due.entity, due.type, str(pool), {})
        if isinstance(made, NotEnqueued):
            _drop(self._settings.storages.open(facts.location), recovered)
            return Outcome(due.entity, OutcomeState.SKIPPED, made.reason)
        self._on_step(Step.ENQUEUED, due.entity)
        claim = self._queue.claim(str(pool), worker_id(pool, self._host))
        if claim is None or claim.id != made.id:
            raise OwnershipLostError(
                f"compaction request {made.id} of {due.entity}",
                "was taken by somebody else before it could be claimed",
                "switch off Hive's own workers, or let only one scheduler compact this table",
            )
        self._on_step(Step.CLAIMED, due.entity)
        return self._prepare_or_close(due, claim, pool, recovered)

    def _begin_foreign(self, due: DuePartition, request_id: int, pool: RequestPool) -> ActiveCompaction | Outcome:
        """Serve a request that others made; one that is not ours to do is left as it is."""
        row = self._queue.row(request_id)
        if row is None or row.state.is_terminal or row.commit_ms is not None:
            return Outcome(due.entity, OutcomeState.SKIPPED, "the request is no longer waiting", request_id)
        if row.state is not CompactionState.INITIATED:
            # By a dead attempt of ours perhaps, which nobody else would put in order.
            return self._begin(replace(due, request_id=None), pool)
        try:
            facts = servable_facts(self._client, row)
            self._neighbours.check(facts.table, facts.partition)
        except (RefusedError, ObjectNotFoundError) as error:
            return _left(row, str(error))
        # Before the claim: where somebody else is in the way, the request stays.
        recovered = self._recovery.recover(facts, pool)
        self._on_step(Step.RECOVERED, row.entity)
        if isinstance(recovered, Outcome):
            return recovered
        claim = self._queue.claim_foreign(row, worker_id(pool, self._host))
        if not isinstance(claim, ClaimedCompaction):
            _drop(self._settings.storages.open(facts.location), recovered)
            return _left(row, "it is no longer waiting" if claim is None else in_the_way(claim))
        self._on_step(Step.CLAIMED, row.entity)
        served = replace(due, entity=row.entity, type=CompactionType(row.type))
        return self._prepare_or_close(served, claim, pool, recovered)

    def _prepare_or_close(
        self, due: DuePartition, claim: ClaimedCompaction, pool: RequestPool, finished: FinishedOutput | None
    ) -> ActiveCompaction | Outcome:
        try:
            with Supervised(claim.entity):
                return self._prepare(due, claim, pool, finished)
        except AcidError as error:
            if error.is_permanent:
                # No fault of the partition: Hive does not count what did not initiate.
                self._queue.refuse(claim, str(error))
                return Outcome(claim.entity, OutcomeState.REFUSED, str(error), claim.id)
            self._finisher.end_row(claim, error)
            return Outcome(claim.entity, OutcomeState.FAILED, str(error), claim.id)

    def _prepare(
        self, due: DuePartition, claim: ClaimedCompaction, pool: RequestPool, finished: FinishedOutput | None
    ) -> ActiveCompaction | Outcome:
        transaction = self._transactions(due.entity, str(pool))
        transaction.start()
        try:
            self._on_step(Step.TRANSACTION_OPENED, due.entity)
            return self._plan(due, claim, transaction, pool, finished)
        except BaseException:
            transaction.close()
            raise

    def _plan(
        self,
        due: DuePartition,
        claim: ClaimedCompaction,
        transaction: CompactionTransaction,
        pool: RequestPool,
        finished: FinishedOutput | None,
    ) -> ActiveCompaction | Outcome:
        facts = self._checked_facts(due.entity)
        storage = self._settings.storages.open(facts.location)
        self.check_publication(storage)
        snapshot = take_snapshot(
            self._client,
            due.entity.full_table_name,
            storage,
            transaction.txn_id,
            self._queue.hive,
            insert_only=facts.table.is_insert_only,
        )
        partition = _partition_state(facts, snapshot)
        nothing = choose(due.entity, snapshot.directory, partition.format, due.type, self._policy).nothing
        if snapshot.write_ids.high_water_mark <= 0:
            raise RefusedError(str(due.entity), "nothing was ever committed to it", "compact it once it holds data")
        if nothing is not None:
            claim = self._record(claim, transaction, facts, snapshot)
            _drop(storage, finished)
            left_over = _left_over(snapshot)
            if left_over and self._queue.hive.lists_what_is_replaced:
                storage.make_directory(staging_name(pool.token))
                write_replaced(storage, staging_name(pool.token), left_over)
            return self._finish_without_merge(claim, transaction, snapshot, nothing)
        visibility_txn_id = transaction.txn_id if self._queue.hive.publishes_by_commit else 0
        names = AttemptNames(pool.token, staging_name(pool.token), visibility_txn_id)
        # Before recording, which makes the metastore remember the transaction also if the plan is refused.
        plan = plan_compaction(partition, names, due.type, due.reason, self._policy)
        claim = self._record(claim, transaction, facts, snapshot)
        adopted = self._adopt(storage, plan, finished)
        self._fill_staging(storage, plan, snapshot, is_new=adopted is None)
        self._on_step(Step.STAGED, due.entity)
        return ActiveCompaction(
            claim, transaction, storage, plan, facts.table.location, adopted, snapshot.newest_txn_id
        )

    def _checked_facts(self, entity: Entity) -> EntityFacts:
        facts = load_facts(self._client, entity)
        check_entity(facts)
        self._neighbours.check(facts.table, facts.partition)
        return facts

    def check_publication(self, storage: Storage) -> None:
        """Do nothing where nobody can see a part of a result.

        :raises UnsupportedTableError: renames publish, and this store's are not atomic.
        :raises RefusedError: files are published one by one, and readers may not be kept away meanwhile.
        """
        no_lock = self._policy.minor_publication is MinorPublication.NEVER
        if no_lock and not storage.rules.renames:
            raise RefusedError(
                storage.location,
                "lies on an object store, where results of several files take an EXCLUSIVE lock for their publication, "
                "and minor_publish_lock is off",
                "switch it on, or, if every reader checks a compaction's transaction as Hive 4 does (Trino does not), "
                "readers_honour_visibility",
            )
        if not self._queue.hive.publishes_by_commit and not storage.rules.renames:
            raise UnsupportedTableError(
                storage.location,
                "lies on a store that renames directories file by file, and on Hive 3 every reader would see parts of "
                "the result",
                "compact it from a Hive 4 metastore, or keep such tables on HDFS",
            )

    def _record(
        self, claim: ClaimedCompaction, transaction: CompactionTransaction, facts: EntityFacts, snapshot: Snapshot
    ) -> ClaimedCompaction:
        high_water_mark = snapshot.write_ids.high_water_mark
        recorded = self._queue.record(claim, high_water_mark, transaction.txn_id, facts.table.owner)
        self._on_step(Step.RECORDED, claim.entity)
        return recorded

    def _adopt(
        self, storage: Storage, plan: CompactionPlan, finished: FinishedOutput | None
    ) -> CompactionResult | None:
        if finished is None:
            return None
        if not plan.merges_the_same_as(finished.plan):
            _drop(storage, finished)
        elif publisher_on(storage).adopt(finished, plan):
            log.info("%s: adopting the finished output of a dead attempt", plan.entity)
            return replace(finished.result, attempt=plan.attempt, plan_digest=plan.digest)
        return None

    def _fill_staging(self, storage: Storage, plan: CompactionPlan, snapshot: Snapshot, *, is_new: bool) -> None:
        try:
            if is_new:
                open_staging(storage, plan)
            if self._queue.hive.lists_what_is_replaced:
                write_replaced(storage, plan.staging, _replaced(plan, snapshot))
        except AcidError:
            publisher_on(storage).remove(plan.staging)
            raise

    def _finish_without_merge(
        self, claim: ClaimedCompaction, transaction: CompactionTransaction, snapshot: Snapshot, reason: str
    ) -> Outcome:
        """Hive's rule: with obsolete or aborted directories the Cleaner has work, otherwise the request is refused."""
        entity = claim.entity
        if _left_over(snapshot):
            self._queue.complete(claim)
            self._on_step(Step.MARKED_COMPACTED, entity)
            self._finisher.commit(transaction)
            self._on_step(Step.COMMITTED, entity)
            message = f"{reason}; obsolete directories go to the cleaner"
        else:
            transaction.close()
            message = f"None of the compaction thresholds met: {reason}"
            self._queue.refuse(claim, message)
        return Outcome(entity, OutcomeState.NOTHING_TO_MERGE, message, claim.id)

    def finish(self, active: ActiveCompaction, result: CompactionResult) -> Finished:
        """Verify, fence and publish what the job made; see :meth:`~.finishing.Finisher.finish`."""
        return self._finisher.finish(active, result)

    def resume(self, waiting: Waiting) -> Finished:
        """Publish what waited; see :meth:`~.finishing.Finisher.resume`."""
        return self._finisher.resume(waiting)

    def keep(self, active: ActiveCompaction) -> None:
        """Tell the queue from time to time that an active compaction is not forgotten.

        :raises OwnershipLostError: its claim is lost.
        """
        now = time.monotonic()
        kept_monotonic = self._kept.get(active.claim.id, active.begun_monotonic)
        if now - max(active.begun_monotonic, kept_monotonic) < KEEP_SECONDS:
            return
        try:
            self._queue.keep(active.claim)
        except MetastoreError as error:
            log.warning("%s: its claim could not be refreshed, trying again: %s", active.entity, error)
            return
        self._kept[active.claim.id] = now

    def name_application(self, active: ActiveCompaction, application_id: str) -> None:
        """Tell the queue which Spark application merges; whether it can be told matters to nobody's rows."""
        try:
            self._queue.set_job_id(active.claim, application_id)
        except AcidError as error:
            log.warning("%s: SHOW COMPACTIONS does not name its application: %s", active.entity, error)

    def abandon(self, active: ActiveCompaction, message: str) -> Outcome:
        """Give up an unpublished compaction; see :meth:`~.finishing.Finisher.abandon`."""
        return self._finisher.abandon(active, message)


def _drop(storage: Storage, finished: FinishedOutput | None) -> None:
    if finished is not None:
        publisher_on(storage).remove(finished.staging)


def _replaced(plan: CompactionPlan, snapshot: Snapshot) -> set[str]:
    """Names that the Cleaner may delete once the plan's result is published."""
    originals = {file.path.partition("/")[0] for file in snapshot.directory.originals if plan.makes_first_base}
    return {*plan.directories, *originals, *_left_over(snapshot)}


def _left_over(snapshot: Snapshot) -> set[str]:
    """What nobody needs any more; also overwrites that were aborted, of which Hive 3's compactor takes no notice."""
    directory = snapshot.directory
    overwrites = (part for part in directory.directories if isinstance(part, BaseDirectory) and not part.compacted)
    aborted = {part.path for part in overwrites if snapshot.write_ids.is_write_id_aborted(part.write_id)}
    return {*directory.obsolete, *directory.aborted, *aborted}


def _partition_state(facts: EntityFacts, snapshot: Snapshot) -> PartitionState:
    return PartitionState(
        entity=facts.entity,
        location=facts.location,
        directory=snapshot.directory,
        write_ids=snapshot.write_ids,
        columns=facts.columns,
        bucketed=facts.bucketed,
        table_parameters=facts.table.parameters,
        format=file_format(facts.table, facts.partition),
        flush_lengths=snapshot.flush_lengths,
    )


def _left(row: CompactionRow, reason: str) -> Outcome:
    return Outcome(row.entity, OutcomeState.SKIPPED, f"request {row.id} is left as it is: {reason}", row.id)
