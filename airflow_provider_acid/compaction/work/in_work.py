"""One partition of a batch between its begin and its end: what is done for it, by its own hand, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction, Waiting
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.finishing import Finished
from airflow_provider_acid.compaction.work.hands import Hand
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import AcidError, SparkJobError, StorageError, UnexpectedError
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.result import CompactionResult

T = TypeVar("T")

Done = Finished | None
"""What came of something: None where the partition goes on as it did."""

BATCH_ENDED = "the batch ended before this partition was finished"
"""Why a partition is given back that is not at fault for what ended all."""


class InWork:
    """A partition that is claimed, locked and planned; for the thread that decides.

    :param hand: the one that began it.
    :ivar input_bytes: of its plan.
    :ivar waiting: its merged result, which waits to be published; None before.
    """

    def __init__(self, hand: Hand, active: ActiveCompaction) -> None:
        self.active = active
        # Asked for at every look at what is in work.
        self.input_bytes = active.plan.input_bytes
        self.waiting: Waiting | None = None
        self._hand = hand
        self._job: Future[Done] | None = None
        self._is_named = False

    @property
    def job(self) -> Future[Done] | None:
        """What its hand is asked for, until :meth:`take`; None where it is left alone."""
        return self._job

    @property
    def hand(self) -> Hand:
        """The one that began it, and finishes it."""
        return self._hand

    @property
    def keeps_readers_out(self) -> bool:
        """Whether it asked for the EXCLUSIVE lock, behind which new readers wait: its hand must not be busy."""
        return self.active.transaction.exclusive_lock_id is not None

    @property
    def is_merging(self) -> bool:
        """Whether nothing but its result is waited for."""
        return self._job is None and self.waiting is None

    @property
    def may_need_the_application(self) -> bool:
        """Whether it is not merged yet, or may be begun anew: a minor that gets no lock, as a major."""
        return self.waiting is None or self.active.plan.type is CompactionType.MINOR

    def take(self) -> Outcome | DuePartition | None:
        """What came of what its hand did, if that is done; None where the partition is still in work.

        :raises BaseException: what happened is not this partition's alone.
        """
        job = self._job
        if job is None or not job.done():
            return None
        self._job = None
        done = job.result()
        if done is None or isinstance(done, Outcome | DuePartition):
            return done
        self.waiting = done
        return None

    def finish(self, result: CompactionResult | AcidError, application_id: str | None) -> None:
        """Have its result published, or the partition given up where there is none.

        :param application_id: who merged; None where that is not known, or nobody did.
        """
        if isinstance(result, StorageError):
            # The run's place did not answer, and no reader of the partition.
            self.give_back(str(result), _state_of(result))
            return
        if isinstance(result, AcidError):
            self.abandon(str(result))
            return
        name = None if self._is_named else application_id
        self._ask(partial(_finish, self.active, result, name))

    def resume(self) -> None:
        """Have another look at what its result waits for."""
        if self.waiting is not None and self._job is None:
            waiting = self.waiting
            self._ask(lambda worker: worker.resume(waiting))

    def watch(self, application_id: str | None, timeout_seconds: float) -> None:
        """Have the metastore told what is to be told of it, or give it up, while it is merged.

        :param application_id: the Spark application that merges it, for ``SHOW COMPACTIONS``.
        :param timeout_seconds: so long it may take at most.
        """
        try:
            with Supervised(self.active.entity):
                self._check_time(timeout_seconds)
                # What the heartbeats know; nobody is asked.
                self.active.transaction.check()
        except AcidError as error:
            self.abandon(str(error))
            return
        if application_id is not None and not self._is_named:
            self._is_named = True
            self._ask(partial(_name, self.active, application_id))
        else:
            self._ask(partial(_keep, self.active))

    def abandon(self, message: str) -> None:
        """Have it given up, unpublished."""
        self._ask(lambda worker: worker.abandon(self.active, message))

    def give_back(self, message: str, state: OutcomeState) -> None:
        """Have it given up, unmerged, through no fault of its own."""
        self._ask(lambda worker: worker.give_back(self.active, message, state))

    def _check_time(self, timeout_seconds: float) -> None:
        if time.monotonic() - self.active.begun_monotonic > timeout_seconds:
            raise SparkJobError(
                str(self.active.entity),
                f"was not merged within {timeout_seconds:.0f} s",
                "give the application more cores, or raise [hive_acid] worker_timeout_seconds and Hive's own alike",
            )

    def _ask(self, work: Callable[[Worker], Done]) -> None:
        self._job = self._hand.ask(partial(_guarded, self.active.entity, work))


def begin(
    due: Sequence[DuePartition], hand_over: Callable[[Worker, int, ActiveCompaction], None], worker: Worker
) -> list[ActiveCompaction | Outcome]:
    """Begin partitions together, and hand over each that is to be merged; its error ends it alone.

    :param hand_over: given a partition's place among them.
    """
    begun = worker.begin_together(due)
    try:
        for place, one in enumerate(begun):
            if isinstance(one, ActiveCompaction) and one.adopted is None:
                begun[place] = _handed_over(one, partial(hand_over, worker, place, one), worker)
    except BaseException:
        for one in begun:
            if isinstance(one, ActiveCompaction):
                _given_back(one, BATCH_ENDED, OutcomeState.FAILED, worker)
        raise
    return begun


def _handed_over(active: ActiveCompaction, hand_over: Callable[[], None], worker: Worker) -> ActiveCompaction | Outcome:
    try:
        with Supervised(active.entity):
            hand_over()
    except AcidError as error:
        # The run's place refused it, and no reader of the partition.
        return _given_back(active, str(error), _state_of(error), worker)
    return active


def _state_of(error: AcidError) -> OutcomeState:
    return OutcomeState.REFUSED if error.is_permanent else OutcomeState.FAILED


def _finish(active: ActiveCompaction, result: CompactionResult, name: str | None, worker: Worker) -> Done:
    if name is not None:
        worker.name_application(active, name)
    return worker.finish(active, result)


def _name(active: ActiveCompaction, name: str, worker: Worker) -> Done:
    worker.name_application(active, name)
    return None


def _keep(active: ActiveCompaction, worker: Worker) -> Done:
    try:
        with Supervised(active.entity):
            worker.keep(active)
    except AcidError as error:
        return worker.abandon(active, str(error))
    return None


def _given_back(active: ActiveCompaction, message: str, state: OutcomeState, worker: Worker) -> Outcome:
    return _guarded(active.entity, lambda worker: worker.give_back(active, message, state), worker)


def _guarded(entity: Entity, work: Callable[[Worker], T], worker: Worker) -> T | Outcome:
    """What is done for one partition; what nobody foresaw of it ends this partition alone."""
    try:
        with Supervised(entity):
            return work(worker)
    except UnexpectedError as error:
        return Outcome(entity, OutcomeState.FAILED, str(error))
