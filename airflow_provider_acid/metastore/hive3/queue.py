"""The compaction queue of a Hive 3.1 metastore: requests over Thrift, everything else in its database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sqlalchemy.engine import Connection

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.metastore.database.cleaning import WriteIdBookkeeping, has_twin
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive3.clock import MetastoreClock
from airflow_provider_acid.metastore.hive3.expected_row import as_expected, ownership_lost
from airflow_provider_acid.metastore.hive3.mutex import InitiatorMutex
from airflow_provider_acid.metastore.hive3.row_notes import Published, RowNotes
from airflow_provider_acid.metastore.hive3.row_store import RowStore
from airflow_provider_acid.metastore.hive3.stored_rows import (
    ATTEMPTED,
    ENQUEUED_PROPERTY,
    FAILED,
    INITIATED,
    LETTERS,
    POOL_PROPERTY,
    SUCCEEDED,
    WORKING,
    StoredRow,
)
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction, Enqueued, NotEnqueued
from airflow_provider_acid.metastore.queue_rules import (
    ExpectedRow,
    already_scheduled,
    check_recordable,
    forgettable,
    in_cleaning_order,
    recorded_txn_id,
    subject_of,
    was_cleaned,
)
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.compactions import HADOOP_JOB_ID_LENGTH
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

RUN_AS_LENGTH = 128
"""Width of CQ_RUN_AS."""

WRITE_ATTEMPTS = 3
"""How often a change is tried whose answer got lost and that, on looking, was not made."""


class SqlCompactionQueue:
    """See :class:`~.queue.CompactionQueue`.

    A change looks at the row, compares it with what the caller believes, and is then carried out on condition that
    state, worker and notes are still what was looked at. An answer that got lost is settled by looking again.

    :param hive: the kind of the client's metastore; one that takes requests over Thrift and no more.
    :param database: that metastore's database.
    :raises MetastoreVersionError: the database is not that of a Hive 3.1 metastore.
    """

    def __init__(self, client: AcidMetastoreClient, hive: Hive, database: MetastoreDatabase) -> None:
        self._client = client
        self.hive = hive
        self.database = database
        self._clock = MetastoreClock(client, database)
        self._store = RowStore(database, self._clock)
        self._bookkeeping = WriteIdBookkeeping.of(database)

    def enqueue(
        self, entity: Entity, type: CompactionType, pool: str, properties: Mapping[str, str] | None = None
    ) -> Enqueued | NotEnqueued:
        """See :meth:`~.queue.CompactionQueue.enqueue`."""
        now_ms = self.database.read("clock", self._clock.now_ms)
        marked = {**(properties or {}), POOL_PROPERTY: pool, ENQUEUED_PROPERTY: str(now_ms)}
        try:
            answer = self._client.compact(entity, type, properties=marked)
        except MetastoreUnavailableError:
            made = self.rows(entity=entity, pool=pool)
            if not made:
                raise
            return Enqueued(made[-1].id)
        if answer.accepted:
            return Enqueued(answer.id)
        return NotEnqueued(already_scheduled(answer.id, answer.state), self.row(answer.id))

    def claim(self, pool: str, worker_id: str) -> ClaimedCompaction | None:
        """See :meth:`~.queue.CompactionQueue.claim`.

        A row whose result is published, and which Hive's Initiator took back after its worker time-out, is ready for
        cleaning again.
        """
        return self._claim(worker_id, lambda row: row.notes.pool == pool)

    def line(self, rows: Iterable[CompactionRow]) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.line`; each is claimed by its id."""
        return []

    def claim_foreign(self, row: CompactionRow, worker_id: str) -> ClaimedCompaction | None:
        """See :meth:`~.queue.CompactionQueue.claim_foreign`; a request of a pool is never claimed."""
        return self._claim(worker_id, lambda waiting: waiting.id == row.id and waiting.notes.pool is None)

    def record(self, claim: ClaimedCompaction, highest_write_id: int, txn_id: int, run_as: str) -> ClaimedCompaction:
        """See :meth:`~.queue.CompactionQueue.record`."""
        check_recordable(claim, highest_write_id)

        def record(connection: Connection, row: StoredRow) -> bool:
            notes = replace(row.notes, txn_id=txn_id)
            changes = {
                "HIGHEST_WRITE_ID": highest_write_id,
                "RUN_AS": run_as[:RUN_AS_LENGTH],
                "META_INFO": notes.stored(),
            }
            return self._store.update(connection, row, changes)

        self._change(claim, record, may_be_published=False)
        info = replace(claim.info, highest_write_id=highest_write_id, run_as=run_as)
        return replace(claim, info=info, txn_id=txn_id)

    def fence(self, claim: ClaimedCompaction) -> None:
        """See :meth:`~.queue.CompactionQueue.fence`; the cleanings of Hive 3 count no transactions."""
        as_expected(claim, self._store.find(claim.id))

    def set_job_id(self, claim: ClaimedCompaction, job_id: str) -> None:
        """See :meth:`~.queue.CompactionQueue.set_job_id`."""
        changes = {"HADOOP_JOB_ID": job_id[:HADOOP_JOB_ID_LENGTH]}
        self._change(claim, lambda connection, row: self._store.update(connection, row, changes))

    def complete(self, claim: ClaimedCompaction) -> None:
        """See :meth:`~.queue.CompactionQueue.complete`; the row stays 'working' for everybody else."""
        txn_id = recorded_txn_id(claim)
        self.fence(claim)
        locks = [lock.lock_id for lock in self._client.show_locks(claim.entity)]
        newest_lock_id = max(locks, default=0)
        next_txn_id = self._client.open_transactions().high_water_mark

        def complete(connection: Connection, row: StoredRow) -> bool:
            now_ms = self._clock.now_ms(connection)
            published = Published(next_txn_id, newest_lock_id, now_ms)
            # Somebody else's request has no pool; the Cleaner finds the attempt's staging directory by it.
            own = RequestPool.of_worker(claim.worker_id)
            pool = row.notes.pool or (None if own is None else str(own))
            notes = replace(row.notes, pool=pool, txn_id=txn_id, published=published)
            return self._store.update(connection, row, {"META_INFO": notes.stored(), "START": now_ms})

        self._change(claim, complete)

    def keep(self, row: ExpectedRow) -> None:
        """See :meth:`~.queue.CompactionQueue.keep`."""

        def keep(connection: Connection, stored: StoredRow) -> bool:
            return self._store.update(connection, stored, {"START": self._clock.now_ms(connection)})

        self._change(row, keep)

    def give_back(self, row: CompactionRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.give_back`; as Hive's ``revokeTimedoutWorkers`` does it."""
        if row.state is not CompactionState.WORKING:
            raise OwnershipLostError(str(row), "nobody works on it", "look the row up again")
        mutex = InitiatorMutex.of(self.database)

        def give_back(connection: Connection, stored: StoredRow) -> bool:
            mutex.hold(connection)
            notes = replace(stored.notes, message=message)
            changes = {"STATE": INITIATED, "WORKER_ID": None, "START": None, "META_INFO": notes.stored()}
            return self._store.update(connection, stored, changes)

        def is_given_back(now: StoredRow | None) -> bool:
            return now is not None and now.state == INITIATED and now.notes.message == message

        self._change(row, give_back, is_given_back)

    def fail(self, row: ExpectedRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.fail`."""
        self._end(row, FAILED, lambda notes: replace(notes, message=message), CompactionState.FAILED)

    def refuse(self, row: ExpectedRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.refuse`; Hive 3.1, which has no such state, shows it as attempted.

        Its Initiator passes such rows over where it counts failures, and its purge removes them as any other.
        """
        refused = CompactionState.REFUSED
        self._end(row, ATTEMPTED, lambda notes: replace(notes, message=message, refused=True), refused)

    def row(self, id: int) -> CompactionRow | None:
        """See :meth:`~.queue.CompactionQueue.row`."""
        found = self._store.find(id)
        return None if found is None else found.row()

    def rows(
        self, entity: Entity | None = None, state: CompactionState | None = None, pool: str | None = None
    ) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.rows`."""
        live_states = () if state is None else LETTERS.get(state, ())
        rows = [found.row() for found in self._store.rows(entity=entity, live_states=live_states)]
        return [
            row
            for row in rows
            if (entity is None or row.entity == entity)
            and (state is None or row.state == state)
            and (pool is None or row.pool == pool)
        ]

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.ready_to_clean`; rows that Hive's own Cleaner handles are not listed."""
        return in_cleaning_order(self.rows(state=CompactionState.READY_FOR_CLEANING), entities)

    def is_withheld(self, row: CompactionRow) -> bool:
        """See :meth:`~.queue.CompactionQueue.is_withheld`; to that Cleaner our rows are still worked on."""
        return row.waits_to_be_cleaned

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        """See :meth:`~.queue.CompactionQueue.cleaned`; all in one transaction of the database."""
        if highest_write_id is not None:
            forgettable(row, highest_write_id)
        now = self._store.find(row.id)
        if _was_cleaned(now):
            return
        if as_expected(row, now).notes.published is None:
            raise ownership_lost(row, now)
        aborted_too = self._may_forget_aborted(row.entity, highest_write_id)

        def clean(connection: Connection, stored: StoredRow) -> bool:
            if not self._store.move(connection, stored, SUCCEEDED, stored.notes):
                return False
            if highest_write_id is not None:
                self._bookkeeping.forget(connection, row.entity, highest_write_id, aborted_too=aborted_too)
            return True

        self._change(row, clean, _was_cleaned, by_anybody=True)

    def _may_forget_aborted(self, entity: Entity, highest_write_id: int | None) -> bool:
        """Whether records of aborted writes are certainly those of this partition; asks only where there are any."""
        if highest_write_id is None or not self.database.read(
            f"aborted writes of {entity}",
            lambda connection: self._bookkeeping.has_aborted(connection, entity, highest_write_id),
        ):
            return False
        return not has_twin(self._client, entity)

    def _claim(self, worker_id: str, is_wanted: Callable[[StoredRow], bool]) -> ClaimedCompaction | None:
        for candidate in filter(is_wanted, self._store.initiated()):
            claimed = self._take(candidate, worker_id)
            if claimed is not None:
                return ClaimedCompaction(claimed.info(), worker_id, claimed.notes.txn_id)
        return None

    def _take(self, candidate: StoredRow, worker_id: str) -> StoredRow | None:
        """Claim one row; None where somebody else was faster."""

        def take(connection: Connection) -> bool:
            changes = {"STATE": WORKING, "WORKER_ID": worker_id, "START": self._clock.now_ms(connection)}
            if candidate.notes.published is None:
                # Nothing that an earlier claim recorded holds for this one.
                notes = RowNotes(pool=candidate.notes.pool)
                changes.update({"META_INFO": notes.stored(), "HIGHEST_WRITE_ID": None, "HADOOP_JOB_ID": None})
            return self._store.update(connection, candidate, changes)

        lost_answer = None
        for _ in range(WRITE_ATTEMPTS):
            try:
                if not self.database.write(f"compaction {candidate.id}", take):
                    return None
            except MetastoreUnavailableError as error:
                lost_answer = error
            now = self._store.find(candidate.id)
            if now is not None and (now.state, now.worker_id) == (WORKING, worker_id):
                return now
            if now is None or now.state != INITIATED:
                return None
        if lost_answer is not None:
            raise lost_answer
        return None

    def _end(
        self, expected: ExpectedRow, letter: str, noted: Callable[[RowNotes], RowNotes], state: CompactionState
    ) -> None:
        """Move a row to history, for good."""

        def end(connection: Connection, row: StoredRow) -> bool:
            return self._store.move(connection, row, letter, noted(row.notes))

        self._change(expected, end, lambda now: now is not None and now.row().state is state, may_be_published=False)

    def _change(
        self,
        expected: ExpectedRow,
        change: Callable[[Connection, StoredRow], bool],
        is_done: Callable[[StoredRow | None], bool] | None = None,
        *,
        by_anybody: bool = False,
        may_be_published: bool = True,
    ) -> None:
        """Change a row if it is what the caller believes.

        :param change: changes the row on condition that it is what was looked at; whether it was.
        :param is_done: tells that a change, whose answer got lost, was made; None where making it twice is harmless.
        :param by_anybody: whether it does not matter who made it.
        :param may_be_published: whether a claim may be changed whose result is part of the table.
        """
        lost_answer = None
        for _ in range(WRITE_ATTEMPTS):
            now = self._store.find(expected.id)
            if is_done is not None and (by_anybody or lost_answer is not None) and is_done(now):
                return
            stored = as_expected(expected, now, may_be_published=may_be_published)
            try:
                if self._write(subject_of(expected), change, stored):
                    return
            except MetastoreUnavailableError as error:
                lost_answer = error
        raise lost_answer or ownership_lost(expected, self._store.find(expected.id))

    def _write(self, subject: str, change: Callable[[Connection, StoredRow], bool], row: StoredRow) -> bool:
        return self.database.write(subject, lambda connection: change(connection, row))


def _was_cleaned(row: StoredRow | None) -> bool:
    return was_cleaned(None if row is None else row.row())
