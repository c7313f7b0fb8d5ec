"""A claimed partition is looked at, planned and put on record; what is left to do is the merge."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_acid.acid.directory import BaseDirectory
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.eligibility import check_entity, file_format
from airflow_provider_acid.compaction.facts import EntityFacts, FactsOfMany
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.replaced import write_replaced
from airflow_provider_acid.compaction.publish.staging import FinishedOutput, open_staging, staging_name
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import Snapshot, TransactionView, take_snapshot
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.claiming import Claimed, drop
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.exceptions import AcidError, OwnershipLostError, RefusedError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue
from airflow_provider_acid.metastore.thrift.stringable_map import parse_stringable_map
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.partition import AttemptNames, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.planning import choose, plan_compaction
from airflow_provider_acid.plan.result import CompactionResult

log = logging.getLogger(__name__)

_OF_THE_TABLE, _OF_HIVES_JOB = "tblprops.", "compactor."
"""How the properties of a request begin (Hive's ``CompactorMR.overrideTblProps`` and ``overrideMRProps``)."""


class Preparer:
    """Plans what is claimed; belongs to one thread, like its queue's client."""

    def __init__(
        self,
        queue: CompactionQueue,
        settings: CompactionSettings,
        neighbours: Neighbours,
        finisher: Finisher,
        on_step: StepListener,
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._neighbours = neighbours
        self._finisher = finisher
        self._on_step = on_step
        self._policy = settings.policy(queue.hive)

    def prepare(self, claimed: Claimed, known: FactsOfMany, view: TransactionView) -> ActiveCompaction | Outcome:
        """Plan a partition; an outcome where there is nothing to merge, or an error of this partition.

        :param known: asked for after the partition was locked, as is ``view``.
        """
        try:
            with Supervised(claimed.claim.entity):
                return self._plan(claimed, known, view)
        except AcidError as error:
            claimed.transaction.close()
            return Outcome.unless_gone(claimed.due, error, self._finisher.end_unplanned(claimed.claim, error))

    def _plan(self, claimed: Claimed, known: FactsOfMany, view: TransactionView) -> ActiveCompaction | Outcome:
        due, claim, transaction = claimed.due, claimed.claim, claimed.transaction
        facts = known.of(due.entity)
        check_entity(facts)
        self._neighbours.check(facts.table, facts.partition)
        if facts.location != claimed.location:
            raise OwnershipLostError(
                str(due.entity), f"was moved from {claimed.location} to {facts.location} meanwhile", "try again"
            )
        storage = self._settings.storages.open(facts.location)
        self.check_publication(storage)
        snapshot = take_snapshot(
            view,
            due.entity.full_table_name,
            storage,
            self._queue.hive,
            insert_only=facts.table.is_insert_only,
            own_txn_id=transaction.txn_id,
        )
        partition = _partition_state(facts, snapshot, _overridden(claim))
        nothing = choose(due.entity, snapshot.directory, partition.format, due.type, self._policy).nothing
        if snapshot.write_ids.high_water_mark <= 0:
            raise RefusedError(str(due.entity), "nothing was ever committed to it", "compact it once it holds data")
        if nothing is not None:
            claim = self._record(claim, transaction, facts, snapshot)
            drop(storage, claimed.finished)
            left_over = _left_over(snapshot)
            if left_over and self._queue.hive.lists_what_is_replaced:
                storage.make_directory(staging_name(claimed.pool.token))
                write_replaced(storage, staging_name(claimed.pool.token), left_over)
            return self._finish_without_merge(claim, transaction, snapshot, nothing)
        visibility_txn_id = transaction.txn_id if self._queue.hive.publishes_by_commit else 0
        names = AttemptNames(claimed.pool.token, staging_name(claimed.pool.token), visibility_txn_id)
        # Before recording, which makes the metastore remember the transaction also if the plan is refused.
        plan = plan_compaction(partition, names, due.type, due.reason, self._policy)
        claim = self._record(claim, transaction, facts, snapshot)
        adopted = self._adopt(storage, plan, claimed.finished)
        self._fill_staging(storage, plan, snapshot, is_new=adopted is None)
        self._on_step(Step.STAGED, due.entity)
        seen = frozenset(name for name in snapshot.listing.directories if "/" not in name)
        return ActiveCompaction(
            claim, transaction, storage, plan, facts.table.location, adopted, snapshot.newest_txn_id, seen
        )

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
            drop(storage, finished)
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
            self._finisher.complete(claim, transaction)
            message = f"{reason}; obsolete directories go to the cleaner"
        else:
            transaction.close()
            message = f"None of the compaction thresholds met: {reason}"
            self._queue.refuse(claim, message)
        return Outcome(entity, OutcomeState.NOTHING_TO_MERGE, message, claim.id)


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


def _partition_state(facts: EntityFacts, snapshot: Snapshot, overridden: Mapping[str, str]) -> PartitionState:
    return PartitionState(
        entity=facts.entity,
        location=facts.location,
        directory=snapshot.directory,
        write_ids=snapshot.write_ids,
        columns=facts.columns,
        bucketed=facts.bucketed,
        table_parameters={**facts.table.parameters, **overridden},
        format=file_format(facts.table, facts.partition),
        flush_lengths=snapshot.flush_lengths,
    )


def _overridden(claim: ClaimedCompaction) -> Mapping[str, str]:
    """Table properties that hold for this request alone: its ``WITH OVERWRITE TBLPROPERTIES ('tblprops.…')``.

    :raises MetastoreError: they have another form than Hive writes.
    """
    properties = parse_stringable_map(claim.info.properties)
    if of_hives_job := sorted(name for name in properties if name.startswith(_OF_HIVES_JOB)):
        log.warning("%s: %s are for a job of Hive's, and mean nothing here", claim.entity, ", ".join(of_hives_job))
    return {
        name.removeprefix(_OF_THE_TABLE): value for name, value in properties.items() if name.startswith(_OF_THE_TABLE)
    }
