"""The second half of a Worker's job: verify, fence and publish what the Spark job merged, or give it up.

Where a result appears in several steps, readers that ignore a compaction's transaction would miss rows or see deleted
ones between them; so an EXCLUSIVE lock keeps such readers away meanwhile. It does so of a delta and a delete delta, and
where there are no renames (:mod:`publication_by_copy`), of several data files.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock, AwaitsReaders, Waiting
from airflow_provider_acid.compaction.exclusive_lock import ask_when_due
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.fence import check_inputs, verify_output
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.undo_note import write_undo_note
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import (
    AcidError,
    ForbiddenError,
    HalfPublishedError,
    OwnershipLostError,
    RefusedError,
)
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.exchange import ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.result import CompactionResult, Fault

log = logging.getLogger(__name__)

Finished = Outcome | Waiting | DuePartition
"""How finishing went: it ended, waits, or the partition is to be begun anew as given."""


class Finisher:
    """Finishes compactions whose result is there; belongs to one thread, like its queue's client."""

    def __init__(self, queue: CompactionQueue, settings: CompactionSettings, on_step: StepListener) -> None:
        self._queue = queue
        self._settings = settings
        self._publication = settings.policy(queue.hive).minor_publication
        self._on_step = on_step

    def finish(self, active: ActiveCompaction, result: CompactionResult) -> Finished:
        """Verify, fence and publish what the job made; abandons the attempt where any of it fails.

        :returns: something that waits goes to :meth:`resume`, from time to time.
        """
        if result.error is not None:
            return self._end_unmerged(active, result.error, result.fault)
        try:
            with Supervised(active.entity):
                verify_output(active.storage, active.plan, result)
                self._on_step(Step.VERIFIED, active.entity)
                deadline = time.monotonic() + self._settings.minor_lock_wait_seconds
                if self._has_readers_without_a_base(active):
                    return AwaitsReaders(active, result, deadline)
                self._fence(active)
                self._on_step(Step.FENCED, active.entity)
                if self._takes_the_lock(active, result):
                    return self.resume(AwaitsLock(active, result, deadline - LOCK_QUEUE_SECONDS, deadline))
                self._publish(active, result)
        except HalfPublishedError as error:
            return self._settle(active, error)
        except AcidError as error:
            return self._give_up(active, error)
        return self._complete_or_settle(active, result)

    def resume(self, waiting: Waiting) -> Finished:
        """Publish what waited long enough; errors and results as of :meth:`finish`."""
        active = waiting.active
        try:
            with Supervised(active.entity):
                goes_on = self._wait(waiting)
                if goes_on is not None:
                    return goes_on
                self._fence(active)
                self._publish(active, waiting.result)
        except HalfPublishedError as error:
            return self._settle(active, error)
        except AcidError as error:
            return self._give_up(active, error)
        return self._complete_or_settle(active, waiting.result)

    def _wait(self, waiting: Waiting) -> Finished | None:
        """What becomes of something that cannot be published yet; None where it can."""
        if isinstance(waiting, AwaitsLock):
            return self._wait_for_lock(waiting)
        is_over = time.monotonic() >= waiting.deadline_monotonic
        active = waiting.active
        return None if is_over or not _has_older_readers(active) else waiting

    def _wait_for_lock(self, waiting: AwaitsLock) -> Finished | None:
        active = waiting.active
        if ask_when_due(active.transaction, waiting.ask_monotonic):
            self._on_step(Step.EXCLUSIVE_LOCK_ASKED, active.entity)
            waiting = _in_the_queue(waiting)
        if active.transaction.exclusive_lock_id is None:
            return waiting
        if not active.transaction.has_exclusive():
            return waiting if time.monotonic() < waiting.deadline_monotonic else self._end_of_waiting(waiting)
        self._on_step(Step.EXCLUSIVE_LOCK_HELD, active.entity)
        return None

    def complete(self, claim: ClaimedCompaction, transaction: CompactionTransaction) -> None:
        """Commit what is published, and make its request ready for cleaning.

        In this order: until it is marked, a request keeps every other one of its partition away, Hive's own workers'
        too, so that whoever is held up before the commit commits beside nobody's result. Where the rename published,
        all that the transaction still does is hold a lock: it is ended last, and a failure is only logged.
        """
        if self._queue.hive.publishes_by_commit:
            transaction.commit()
            self._on_step(Step.COMMITTED, claim.entity)
            self._mark(claim)
            return
        self._mark(claim)
        try:
            transaction.commit()
        except AcidError as error:
            transaction.close()
            log.warning("%s: complete, but its transaction could not be committed: %s", transaction.entity, error)
        self._on_step(Step.COMMITTED, claim.entity)

    def _mark(self, claim: ClaimedCompaction) -> None:
        self._queue.complete(claim)
        self._on_step(Step.MARKED_COMPACTED, claim.entity)

    def abandon(self, active: ActiveCompaction, message: str) -> Outcome:
        """Give up an unpublished compaction: no source for a rename, no transaction, the row failed."""
        self._withdraw(active)
        self._fail_row(active.claim, message)
        return Outcome(active.entity, OutcomeState.FAILED, message, active.claim.id)

    def give_back(self, active: ActiveCompaction, message: str, state: OutcomeState) -> Outcome:
        """The same where the partition is not at fault: Hive counts no failure of what was refused.

        :param state: refused, or failed where another try may end in another way.
        """
        self._withdraw(active)
        self._refuse_row(active.claim, message)
        return Outcome(active.entity, state, message, active.claim.id)

    def _end_unmerged(self, active: ActiveCompaction, error: str, fault: Fault | None) -> Outcome:
        if fault is Fault.ENVIRONMENT:
            return self.give_back(active, error, OutcomeState.REFUSED)
        outcome = self.abandon(active, error)
        return replace(outcome, state=OutcomeState.REFUSED) if fault is Fault.PARTITION else outcome

    def _give_up(self, active: ActiveCompaction, error: AcidError) -> Outcome:
        self._withdraw(active)
        self.end_row(active.claim, error)
        state = OutcomeState.REFUSED if error.is_permanent else OutcomeState.FAILED
        return Outcome(active.entity, state, str(error), active.claim.id)

    def end_unplanned(self, claim: ClaimedCompaction, error: AcidError) -> Outcome:
        """Give up a claim for which there is no plan, and whose transaction, if any, has ended."""
        if error.is_permanent:
            # No fault of the partition: Hive does not count what did not initiate.
            self._refuse_row(claim, str(error))
            return Outcome(claim.entity, OutcomeState.REFUSED, str(error), claim.id)
        self.end_row(claim, error)
        return Outcome(claim.entity, OutcomeState.FAILED, str(error), claim.id)

    def end_row(self, claim: ClaimedCompaction, error: AcidError) -> None:
        """Move the request to history, if that can be done; recovery does it otherwise.

        As refused where the partition was lost to somebody else, or a right is missing, and as failed for every other
        error: Hive's Initiator gives up a partition that failed twice, and this one did not.
        """
        if isinstance(error, OwnershipLostError | ForbiddenError):
            self._refuse_row(claim, str(error))
        else:
            self._fail_row(claim, str(error))

    def _fail_row(self, claim: ClaimedCompaction, message: str) -> None:
        try:
            with Supervised(claim.entity):
                self._queue.fail(claim, message)
        except AcidError as error:
            log.warning("%s: the request could not be marked as failed: %s", claim.entity, error)

    def _takes_the_lock(self, active: ActiveCompaction, result: CompactionResult) -> bool:
        """Whether readers have to be kept away; see :class:`~airflow_provider_acid.plan.partition.MinorPublication`.

        One directory alone only shows more than its sources to who began before the merged transactions had ended.
        """
        plan = active.plan
        if self._publication is MinorPublication.LOCK_FREE:
            return False
        if publisher_on(active.storage).shows_parts(result):
            return True
        if plan.type is CompactionType.MAJOR:
            return False
        # A reader without a lock yet takes its snapshot after it has one, as Trino does.
        return len(plan.outputs) > 1 or _has_older_readers(active)

    def _has_readers_without_a_base(self, active: ActiveCompaction) -> bool:
        """Whether older readers that have yet to list find no base for them (``ACID_NOT_ENOUGH_HISTORY``).

        On Hive 4 the compaction's transaction hides the base from them.
        """
        return not self._queue.hive.publishes_by_commit and active.plan.makes_first_base and _has_older_readers(active)

    def _fence(self, active: ActiveCompaction) -> None:
        check_inputs(active.storage, active.plan, active.seen)
        self._queue.fence(active.claim)
        active.transaction.verify()

    def _publish(self, active: ActiveCompaction, result: CompactionResult) -> None:
        if self._keeps_for_undo(active):
            write_undo_note(active.storage, active.plan, active.transaction.txn_id)
        # What nobody foresaw may have come between two renames: then only a look at the partition tells.
        with Supervised(active.entity, HalfPublishedError):
            publisher_on(active.storage).publish(active, result, self._on_step)
        self._on_step(Step.PUBLISHED, active.entity)

    def _complete_or_settle(self, active: ActiveCompaction, result: CompactionResult) -> Outcome:
        try:
            with Supervised(active.entity):
                return self._complete(active, result)
        except AcidError as error:
            return self._settle(active, error)

    def _complete(self, active: ActiveCompaction, result: CompactionResult) -> Outcome:
        plan = active.plan
        self.complete(active.claim, active.transaction)
        self._tidy_up(active)
        self._on_step(Step.STAGING_REMOVED, plan.entity)
        return Outcome(
            plan.entity,
            OutcomeState.COMPACTED,
            plan.reason,
            active.claim.id,
            plan.targets,
            plan.input_bytes,
            sum(file.size_bytes for file in result.files),
            sum(file.rows_out for file in result.files),
            round(time.monotonic() - active.begun_monotonic, 3),
        )

    def _keeps_for_undo(self, active: ActiveCompaction) -> bool:
        return self._settings.keep_replaced_seconds > 0 and active.storage.rules.renames

    def _tidy_up(self, active: ActiveCompaction) -> None:
        staging = active.plan.staging
        parts = [f"{staging}/{name}" for name in (ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY)]
        try:
            with Supervised(active.entity):
                keeps = self._queue.hive.lists_what_is_replaced or self._keeps_for_undo(active)
                active.storage.delete(parts if keeps else [staging])
        except AcidError as error:
            log.warning("%s: the compaction is committed, but its staging directory stays: %s", active.entity, error)

    def _settle(self, active: ActiveCompaction, error: AcidError) -> Outcome:
        """Something is published but the metastore did not confirm: only the metastore knows what holds."""
        active.transaction.close()
        message = f"{error} What was published ({', '.join(active.plan.targets)}) is left to the next run to judge."
        return Outcome(active.entity, OutcomeState.FAILED, message, active.claim.id)

    def _end_of_waiting(self, waiting: AwaitsLock) -> Finished:
        """The lock was not granted in time: the attempt ends, which withdraws it and lets waiting readers go on."""
        active = waiting.active
        seconds = self._settings.minor_lock_wait_seconds
        reason = f"the EXCLUSIVE lock was not granted within {seconds:g} s (held by {active.transaction.blockers()})"
        self._withdraw(active)
        shows_parts = publisher_on(active.storage).shows_parts(waiting.result)
        # A major of as many files would need the same lock.
        major_helps = active.plan.type is CompactionType.MINOR and not shows_parts
        if major_helps and self._settings.minor_lock_timeout_action is LockTimeoutAction.MAJOR:
            message = f"{active.plan.reason}; done as a major, because {reason}"
            again: Finished = DuePartition(active.entity, CompactionType.MAJOR, message, was_seen=True)
        else:
            longer = "wait longer, by minor_lock_wait_seconds"
            other = "set minor_lock_timeout_action to major" if major_helps else longer
            remedy = f"try again when these have ended, or {other}"
            message = str(RefusedError(str(active.entity), reason, remedy))
            again = Outcome(active.entity, OutcomeState.REFUSED, message, active.claim.id)
        self._refuse_row(active.claim, message)
        return again

    def _withdraw(self, active: ActiveCompaction) -> None:
        try:
            with Supervised(active.entity):
                publisher_on(active.storage).give_up(active.plan)
        except AcidError as error:
            log.warning("%s: the staging directory stays: %s", active.entity, error)
        active.transaction.close()

    def _refuse_row(self, claim: ClaimedCompaction, message: str) -> None:
        try:
            with Supervised(claim.entity):
                self._queue.refuse(claim, message)
        except AcidError as error:
            log.warning("%s: the request could not be marked as refused: %s", claim.entity, error)


def _has_older_readers(active: ActiveCompaction) -> bool:
    return active.transaction.others_hold_locks(active.newest_txn_id)


def _in_the_queue(waiting: AwaitsLock) -> AwaitsLock:
    deadline = min(waiting.deadline_monotonic, time.monotonic() + LOCK_QUEUE_SECONDS)
    return replace(waiting, deadline_monotonic=deadline)
