"""The first steps with a partition: what dead attempts left is put in order, then it is claimed and locked."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.eligibility import check_entity
from airflow_provider_acid.compaction.facts import EntityFacts, FactsOfMany
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import FinishedOutput
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.requests_of_others import in_the_way, servable_facts, served_pools
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.exceptions import (
    AcidError,
    ObjectNotFoundError,
    OwnershipLostError,
    RefusedError,
    StorageError,
)
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, NotEnqueued
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

log = logging.getLogger(__name__)

TransactionFactory = Callable[[Entity, str], CompactionTransaction]
"""Makes the (not yet started) transaction for an entity; the text goes into its agent info."""


@dataclass(frozen=True)
class Claimed:
    """A partition that is claimed and locked, and not yet planned.

    :param due: what is to be done, of a request of others what that asks for.
    :param pool: the attempt's own.
    :param finished: the finished output of a dead attempt; None where there is none.
    :param location: of the partition, where dead attempts were looked for.
    """

    due: DuePartition
    claim: ClaimedCompaction
    transaction: CompactionTransaction
    pool: RequestPool
    finished: FinishedOutput | None
    location: str


class Claimer:
    """Claims partitions; belongs to one thread, like its client.

    :param host: this machine's name, shown with the worker's id in ``SHOW COMPACTIONS``.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        transactions: TransactionFactory,
        settings: CompactionSettings,
        neighbours: Neighbours,
        finisher: Finisher,
        recovery: Recovery,
        *,
        host: str,
        on_step: StepListener,
    ) -> None:
        self._client = client
        self._queue = queue
        self._transactions = transactions
        self._settings = settings
        self._neighbours = neighbours
        self._finisher = finisher
        self._host = host
        self._on_step = on_step
        self._recovery = recovery

    def claim(self, due: DuePartition, pool: RequestPool, known: FactsOfMany) -> Claimed | Outcome:
        """Claim and lock one partition; an outcome where there is nothing (more) to do.

        :param pool: a new one.
        :raises AcidError: nothing was claimed.
        """
        if due.request_id is not None:
            return self._claim_foreign(due, due.request_id, pool, known)
        facts = known.of(due.entity)
        if not facts.table.is_transactional or facts.table.is_external:
            check_entity(facts)
        self._neighbours.check(facts.table, facts.partition)
        _check_rights(self._settings.storages.open(facts.location))
        recovered = self._recover(facts, pool)
        if isinstance(recovered, Outcome):
            return recovered
        made = self._queue.enqueue(due.entity, due.type, str(pool), {})
        if isinstance(made, NotEnqueued):
            drop(self._settings.storages.open(facts.location), recovered)
            return Outcome(due.entity, OutcomeState.SKIPPED, made.reason)
        self._on_step(Step.ENQUEUED, due.entity)
        claim = self._queue.claim(str(pool), pool.worker_id(self._host))
        if claim is None or claim.id != made.id:
            raise OwnershipLostError(
                f"compaction request {made.id} of {due.entity}",
                "was taken by somebody else before it could be claimed",
                "switch off Hive's own workers, or let only one scheduler compact this table",
            )
        return self._lock(due, claim, pool, recovered, facts.location)

    def _claim_foreign(
        self, due: DuePartition, request_id: int, pool: RequestPool, known: FactsOfMany
    ) -> Claimed | Outcome:
        """Serve a request that others made; one that is not ours to do is left as it is."""
        row = self._queue.row(request_id)
        if row is not None and _was_given_up_by(pool.owner, row):
            # The metastore hands out no request twice, so that another try of the task makes one of its own.
            return self.claim(replace(due, request_id=None), pool, known)
        is_at_work = row is not None and row.state is CompactionState.WORKING
        if row is None or row.state.is_terminal or (row.commit_ms is not None and not is_at_work):
            return Outcome(due.entity, OutcomeState.SKIPPED, "the request is no longer waiting", request_id)
        if row.state is not CompactionState.INITIATED:
            # By a dead attempt of ours perhaps, which nobody else would put in order.
            return self.claim(replace(due, request_id=None), pool, known)
        try:
            facts = servable_facts(self._client, row, served_pools(self._settings, self._queue))
            self._neighbours.check(facts.table, facts.partition)
            _check_rights(self._settings.storages.open(facts.location))
        except (RefusedError, ObjectNotFoundError) as error:
            return _left(row, str(error))
        # Before the claim: where somebody else is in the way, the request stays.
        recovered = self._recover(facts, pool)
        if isinstance(recovered, Outcome):
            return recovered
        claim = self._queue.claim_foreign(row, pool.worker_id(self._host))
        if not isinstance(claim, ClaimedCompaction):
            drop(self._settings.storages.open(facts.location), recovered)
            return _left(row, "it is no longer waiting" if claim is None else in_the_way(claim))
        served = replace(due, entity=row.entity, type=CompactionType(row.type))
        return self._lock(served, claim, pool, recovered, facts.location)

    def _recover(self, facts: EntityFacts, pool: RequestPool) -> Outcome | FinishedOutput | None:
        recovered = self._recovery.recover(facts, pool)
        self._on_step(Step.RECOVERED, facts.entity)
        return recovered

    def _lock(
        self,
        due: DuePartition,
        claim: ClaimedCompaction,
        pool: RequestPool,
        finished: FinishedOutput | None,
        location: str,
    ) -> Claimed | Outcome:
        self._on_step(Step.CLAIMED, due.entity)
        transaction = self._transactions(due.entity, str(pool))
        try:
            with Supervised(claim.entity):
                transaction.start()
                self._on_step(Step.TRANSACTION_OPENED, due.entity)
        except AcidError as error:
            transaction.close()
            return self._finisher.end_unplanned(claim, error)
        except BaseException:
            transaction.close()
            raise
        return Claimed(due, claim, transaction, pool, finished, location)


def _was_given_up_by(owner: str, row: CompactionRow) -> bool:
    """Whether a former try of the same task claimed a request and published nothing."""
    worker = RequestPool.of_worker(row.worker_id)
    ended = row.state in (CompactionState.FAILED, CompactionState.REFUSED) and row.commit_ms is None
    return ended and worker is not None and worker.owner == owner


def drop(storage: Storage, finished: FinishedOutput | None) -> None:
    """Remove a dead attempt's finished output, which nobody takes over."""
    if finished is not None:
        publisher_on(storage).remove(finished.staging)


def _check_rights(storage: Storage) -> None:
    may_change: bool | None = True
    # What is not there, or does not answer, shows in what follows.
    with suppress(StorageError):
        may_change = storage.may_change()
    if may_change is False and storage.exists(""):
        raise RefusedError(
            storage.location,
            "may not be written into by this user, so that no result can be put there",
            "give Airflow's user the right, or have it act for the tables' owner (proxy_user of the HDFS options)",
        )


def _left(row: CompactionRow, reason: str) -> Outcome:
    return Outcome(row.entity, OutcomeState.SKIPPED, f"request {row.id} is left as it is: {reason}", row.id)
