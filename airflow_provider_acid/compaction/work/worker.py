"""Hive's Worker: begin partitions, and, once the Spark job has merged one, finish or abandon it.

The order of steps is Hive's own: enqueue, claim, transaction and lock (:mod:`.claiming`), snapshot, record
(:mod:`.preparing`), merge, verify, fence, publish, mark compacted, commit (:mod:`.finishing`). Whatever dies in
between, :mod:`recovery` puts in order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction, Waiting
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.facts import FactsOfMany
from airflow_provider_acid.compaction.neighbours import KnownPlaces, Neighbours
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import TransactionView
from airflow_provider_acid.compaction.steps import StepListener, ignore_steps
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.claiming import Claimed, Claimer, TransactionFactory
from airflow_provider_acid.compaction.work.finishing import Finished, Finisher
from airflow_provider_acid.compaction.work.preparing import Preparer
from airflow_provider_acid.exceptions import AcidError, MetastoreError, ObjectNotFoundError
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import KEEP_SECONDS, CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.plan.result import CompactionResult

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LookedAt:
    """What those who work side by side in one batch look at once for all of them.

    :param owners: of the batch's requests, by which former tries of its task are known (:meth:`of_task`).
    """

    places: KnownPlaces = field(default_factory=KnownPlaces)
    run_places: set[RunPlace] = field(default_factory=set)
    owners: frozenset[str] = frozenset()

    @classmethod
    def of_task(cls, identity: str, entities: Iterable[Entity]) -> LookedAt:
        """Of a new batch.

        :param identity: see :class:`Worker`.
        """
        return cls(owners=frozenset(owner_of(identity, str(entity)) for entity in entities))

    def take(self, place: RunPlace) -> RunPlace:
        """The place for the batch's own run: none of them looks there any more, where it would seem a former try's."""
        self.run_places.add(place)
        return place


class Worker:
    """Begins and finishes compactions; belongs to one thread, like its client.

    :param identity: of the task; stays the same when the same task is tried again.
    :param host: this machine's name, shown with the worker's id in ``SHOW COMPACTIONS``.
    :param looked_at: of its batch, where others work beside it.
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
        looked_at: LookedAt | None = None,
        on_step: StepListener = ignore_steps,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._identity = identity
        looked_at = LookedAt() if looked_at is None else looked_at
        neighbours = Neighbours(client, queue.database, settings.exclusive_locations, looked_at.places)
        recovery = Recovery(client, queue, settings, run_places=looked_at.run_places, owners=looked_at.owners)
        self._finisher = Finisher(queue, settings, on_step)
        self._claimer = Claimer(
            client, queue, transactions, settings, neighbours, self._finisher, recovery, host=host, on_step=on_step
        )
        self._preparer = Preparer(queue, settings, neighbours, self._finisher, on_step)
        self._kept: dict[int, float] = {}

    @property
    def metastore(self) -> str | None:
        """The id of its metastore's database; None where that is not known."""
        return self._client.database_uuid()

    def table_location(self, due: Iterable[DuePartition]) -> str | None:
        """Where the first table of a batch that is there lies; None where none is.

        :raises MetastoreError: the metastore does not say it.
        """
        for database, table in dict.fromkeys((one.entity.database, one.entity.table) for one in due):
            with suppress(ObjectNotFoundError):
                return self._client.get_table(database, table).location
        return None

    def begin(self, due: DuePartition) -> ActiveCompaction | Outcome:
        """Begin one partition; see :meth:`begin_together`."""
        return self.begin_together([due])[0]

    def begin_together(self, due: Sequence[DuePartition]) -> list[ActiveCompaction | Outcome]:
        """Claim, lock and plan partitions; an outcome where there is nothing (more) to do.

        All are locked before any is looked at, so that one look at the metastore is right for all of them.

        :returns: one of each, in their order; errors of one partition come back as its outcome.
        """
        if self._settings.keep_replaced_seconds and self._queue.hive.is_claimed_until_cleaned:
            self._clean_kept([one.entity for one in due])
        known = FactsOfMany(self._client, [one.entity for one in due])
        claimed: list[Claimed | Outcome] = []
        try:
            for one in due:
                claimed.append(self._claim(one, known))
            locked = [one for one in claimed if isinstance(one, Claimed)]
            known = FactsOfMany(self._client, [one.due.entity for one in locked])
            view = TransactionView(self._client, min((one.transaction.txn_id for one in locked), default=None))
            return [one if isinstance(one, Outcome) else self._preparer.prepare(one, known, view) for one in claimed]
        except BaseException:
            for begun in claimed:
                if isinstance(begun, Claimed):
                    begun.transaction.close()
            raise

    def _clean_kept(self, entities: Sequence[Entity]) -> None:
        """Clean what is kept for an undo: on Hive 3 the claims of its compactions would stand in the way of new ones.

        What cannot be cleaned has its partition left alone, by the claim that is there.
        """
        settings = replace(self._settings, keep_replaced_hours=0.0)
        try:
            Cleaner(self._client, self._queue, settings).clean(entities)
        except AcidError as error:
            log.warning("What is kept for an undo is not cleaned now: %s", error)

    def _claim(self, due: DuePartition, known: FactsOfMany) -> Claimed | Outcome:
        pool = RequestPool.new(owner_of(self._identity, str(due.entity)))
        try:
            with Supervised(due.entity):
                return self._claimer.claim(due, pool, known)
        except AcidError as error:
            state = OutcomeState.REFUSED if error.is_permanent else OutcomeState.FAILED
            return Outcome.unless_gone(due, error, Outcome(due.entity, state, str(error), due.request_id))

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

    def give_back(self, active: ActiveCompaction, message: str, state: OutcomeState) -> Outcome:
        """Give up one that is not at fault; see :meth:`~.finishing.Finisher.give_back`."""
        return self._finisher.give_back(active, message, state)
