"""The compaction queue of a Hive 4 metastore, over Thrift alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4 import by_sql
from airflow_provider_acid.metastore.queue import ClaimedCompaction, Enqueued, NotEnqueued
from airflow_provider_acid.metastore.queue_rules import (
    ExpectedRow,
    already_scheduled,
    check_recordable,
    forgettable,
    in_cleaning_order,
    ownership_lost,
    recorded_txn_id,
    subject_of,
    was_cleaned,
)
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.compactions import CompactAnswer
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

log = logging.getLogger(__name__)

WORKER_VERSION = "airflow-provider-acid"


class ThriftCompactionQueue:
    """See :class:`~.queue.CompactionQueue`.

    An answer that got lost is settled by looking at the row; where looking does not settle it, the error stands.

    :param hive: the kind of the client's metastore; one whose queue speaks Thrift.
    :param database: that metastore's database, for what no call of the server does; None where it is not at hand.
    """

    def __init__(self, client: AcidMetastoreClient, hive: Hive, database: MetastoreDatabase | None = None) -> None:
        self._client = client
        self.hive = hive
        self.database = database

    def enqueue(
        self, entity: Entity, type: CompactionType, pool: str, properties: Mapping[str, str] | None = None
    ) -> Enqueued | NotEnqueued:
        """See :meth:`~.queue.CompactionQueue.enqueue`."""
        try:
            answer = self._ask_for(entity, type, pool, properties)
        except MetastoreUnavailableError:
            made = self.rows(entity=entity, pool=pool)
            if not made:
                raise
            return Enqueued(made[-1].id)
        if answer.accepted:
            return Enqueued(answer.id)
        live = [row for row in self.rows(entity=entity) if not row.state.is_terminal]
        return NotEnqueued(answer.message or already_scheduled(answer.id, answer.state), live[0] if live else None)

    def _ask_for(
        self, entity: Entity, type: CompactionType, pool: str, properties: Mapping[str, str] | None
    ) -> CompactAnswer:
        return self._client.compact(entity, type, pool=pool, properties=properties)

    def claim(self, pool: str, worker_id: str) -> ClaimedCompaction | None:
        """See :meth:`~.queue.CompactionQueue.claim`."""
        try:
            info = self._client.find_next_compaction(worker_id, pool, WORKER_VERSION)
        except MetastoreUnavailableError:
            mine = [row for row in self.rows(pool=pool) if _is_worked_on_by(row, worker_id)]
            if not mine:
                raise
            info = CompactionInfo.of_row(mine[0])
        if info is not None and info.pool != pool:
            raise MetastoreError(
                f"compaction {info.id} of {info.entity}",
                f"was handed out for pool {pool} but belongs to pool {info.pool}",
                "report this; the row stays claimed until the metastore's worker time-out",
            )
        return None if info is None else ClaimedCompaction(info, worker_id)

    def line(self, rows: Iterable[CompactionRow]) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.line`."""
        if self.database is not None:
            return []
        waiting = [row for row in rows if row.state is CompactionState.INITIATED]
        if all(row.pool is None for row in waiting):
            return waiting
        overdue_ms = self._client.server_now_ms() - 1000 * self._client.pool_timeout_seconds()
        return [row for row in waiting if row.pool is None or (row.enqueue_ms or 0) < overdue_ms]

    def claim_foreign(self, row: CompactionRow, worker_id: str) -> ClaimedCompaction | CompactionRow | None:
        """See :meth:`~.queue.CompactionQueue.claim_foreign`.

        In the database by its id. The server hands out what stands first, whatever is wanted: without the database,
        where somebody else took that one since it was looked at, what was handed out instead is made again.
        """
        if self.database is not None:
            return self._claim_by_id(self.database, row, worker_id)
        line = self.line(self.rows(state=CompactionState.INITIATED))
        if row.id not in {waiting.id for waiting in line}:
            return None
        if line[0].id != row.id:
            return line[0]
        info = self._next_in_line(worker_id)
        if info is None or info.id == row.id:
            return None if info is None else ClaimedCompaction(info, worker_id)
        return self._make_again(ClaimedCompaction(info, worker_id))

    def _claim_by_id(self, database: MetastoreDatabase, row: CompactionRow, worker_id: str) -> ClaimedCompaction | None:
        lost_answer = None
        try:
            by_sql.claim(database, row.id, row.pool if self.hive.has_pools else None, worker_id, WORKER_VERSION)
        except MetastoreUnavailableError as error:
            lost_answer = error
        now = self.row(row.id)
        if now is not None and _is_worked_on_by(now, worker_id):
            properties = by_sql.properties(database, row.id)
            return ClaimedCompaction(replace(CompactionInfo.of_row(now), properties=properties), worker_id)
        if lost_answer is not None:
            raise lost_answer
        return None

    def _next_in_line(self, worker_id: str) -> CompactionInfo | None:
        try:
            return self._client.find_next_compaction(worker_id, None, WORKER_VERSION)
        except MetastoreUnavailableError:
            mine = [row for row in self.rows() if _is_worked_on_by(row, worker_id)]
            if len(mine) != 1:
                raise
            return CompactionInfo.of_row(mine[0])

    def _make_again(self, claim: ClaimedCompaction) -> CompactionRow | None:
        """End a claim that is not wanted, and ask for the same under a new id: two do not stand side by side."""
        initiator_id = next((row.initiator_id for row in self._client.compactions(id=claim.id)), None)
        self.refuse(claim, "was handed out in place of another request, and is asked for again under a new id")
        try:
            again = self._ask_again(claim.info, initiator_id)
        except MetastoreError as error:
            raise self._lost(claim, error.reason) from error
        live = self.row(again.id) if again.accepted else self._live(claim.entity)
        if live is None:
            raise self._lost(claim, again.message or again.state)
        log.warning(
            "compaction request %s of %s (%s) was handed out in place of another, and made again as request %s",
            claim.id,
            claim.entity,
            claim.info.type,
            live.id,
        )
        return live

    def _ask_again(self, info: CompactionInfo, initiator_id: str | None) -> CompactAnswer:
        try:
            return self._client.compact_again(info, initiator_id)
        except MetastoreUnavailableError:
            # If it got through, the answer to this one says that there is one already.
            return self._client.compact_again(info, initiator_id)

    def _live(self, entity: Entity) -> CompactionRow | None:
        return next((row for row in self.rows(entity=entity) if not row.state.is_terminal), None)

    def _lost(self, claim: ClaimedCompaction, reason: str) -> MetastoreError:
        return MetastoreError(
            f"compaction request {claim.id} of {claim.entity} ({claim.info.type})",
            f"was handed out in place of another one and ended, and could not be made again: {reason}",
            "ask for it once more, as whoever made it did (ALTER TABLE ... COMPACT)",
        )

    def record(self, claim: ClaimedCompaction, highest_write_id: int, txn_id: int, run_as: str) -> ClaimedCompaction:
        """See :meth:`~.queue.CompactionQueue.record`.

        Hive's own Cleaner is kept from the row where the database is at hand, long before it can see it.

        :raises ConfigurationError: that database does not hold the row, so that it is another metastore's.
        """
        check_recordable(claim, highest_write_id)
        recorded = replace(
            claim, info=replace(claim.info, highest_write_id=highest_write_id, run_as=run_as), txn_id=txn_id
        )
        self._change(
            claim,
            lambda: self._client.update_compactor_state(recorded.info, txn_id),
            lambda row: row is not None and (row.txn_id, row.highest_write_id) == (txn_id, highest_write_id),
        )
        if self.database is not None and not by_sql.withhold(self.database, claim.id, txn_id):
            self._check(recorded)
            raise ConfigurationError(
                self.database.subject,
                f"does not hold compaction {claim.id} with transaction {txn_id}, which the metastore has recorded",
                "name the metastore's own database by metastore_db_conn_id",
            )
        return recorded

    def fence(self, claim: ClaimedCompaction) -> None:
        """See :meth:`~.queue.CompactionQueue.fence`.

        Hive's Cleaner may count every transaction up to the highest one at its row's commit, those too that are open
        (``metastore.txn.use.minhistorywriteid``; seen on 4.2.1). It would take what is published for committed, and
        delete what that was made of.
        """
        txn_id = recorded_txn_id(claim)
        rows = self.rows(entity=claim.entity)
        _check(claim, next((row for row in rows if row.id == claim.id), None))
        late = next((row for row in rows if _may_count(row, txn_id)), None)
        if late is not None:
            raise OwnershipLostError(
                subject_of(claim),
                f"request {late.id} ({late.type}) was not committed before transaction {txn_id} was opened, and its "
                "cleaning may take this one's result for part of the table before it is",
                "start the compaction again; it will see the new state",
            )

    def set_job_id(self, claim: ClaimedCompaction, job_id: str) -> None:
        """See :meth:`~.queue.CompactionQueue.set_job_id`."""
        self._client.set_hadoop_job_id(claim.id, job_id)

    def complete(self, claim: ClaimedCompaction) -> None:
        """See :meth:`~.queue.CompactionQueue.complete`.

        Where a living attempt and one that takes it for dead do it, one finds it done.
        """
        txn_id = recorded_txn_id(claim)

        def is_done(row: CompactionRow | None) -> bool:
            is_ready = row is not None and row.state is CompactionState.READY_FOR_CLEANING and row.txn_id == txn_id
            return is_ready or (row is not None and row.state is CompactionState.SUCCEEDED)

        try:
            self._change(claim, lambda: self._client.mark_compacted(claim.info), is_done)
        except OwnershipLostError:
            if not is_done(self.row(claim.id)):
                raise

    def keep(self, row: ExpectedRow) -> None:
        """See :meth:`~.queue.CompactionQueue.keep`; Hive 4 offers no call for it, nor does it take back cleanings."""
        self._check(row)

    def give_back(self, row: CompactionRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.give_back`."""
        self.fail(row, message)

    def fail(self, row: ExpectedRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.fail`."""
        self._change(
            row,
            lambda: self._client.mark_failed(_info(row), message),
            lambda now: now is not None and now.state is CompactionState.FAILED,
        )

    def refuse(self, row: ExpectedRow, message: str) -> None:
        """See :meth:`~.queue.CompactionQueue.refuse`."""
        self._change(
            row,
            lambda: self._client.mark_refused(_info(row), message),
            lambda now: now is not None and now.state is CompactionState.REFUSED,
        )

    def row(self, id: int) -> CompactionRow | None:
        """See :meth:`~.queue.CompactionQueue.row`."""
        rows = _compactions(self._client.compactions(id=id))
        return rows[0] if rows else None

    def rows(
        self, entity: Entity | None = None, state: CompactionState | None = None, pool: str | None = None
    ) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.rows`."""
        return _compactions(self._client.compactions(entity=entity, state=state, pool=pool))

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        """See :meth:`~.queue.CompactionQueue.ready_to_clean`."""
        return in_cleaning_order(self.rows(state=CompactionState.READY_FOR_CLEANING), entities)

    def is_withheld(self, row: CompactionRow) -> bool:
        """See :meth:`~.queue.CompactionQueue.is_withheld`; False where the database is not at hand."""
        return self.database is not None and by_sql.is_withheld(self.database, row.id)

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        """See :meth:`~.queue.CompactionQueue.cleaned`."""
        highest = forgettable(row, highest_write_id)
        info = replace(CompactionInfo.of_row(row), highest_write_id=highest)
        try:
            self._change(row, lambda: self._client.mark_cleaned(info), was_cleaned)
        except OwnershipLostError:
            # Between two looks Hive's own Cleaner may have cleaned it.
            if not was_cleaned(self.row(row.id)):
                raise
        except MetastoreUnavailableError:
            raise
        except MetastoreError:
            # Hive 4.0.1 on PostgreSQL cannot do it for an unpartitioned table.
            if row.entity.partition is not None or not self._finish_cleaning(row, highest):
                raise

    def _finish_cleaning(self, row: CompactionRow, highest_write_id: int) -> bool:
        """Do in the database what the server failed to do; whether the row is cleaned now."""
        if self.database is None:
            return False
        try:
            by_sql.mark_cleaned(self.database, row, highest_write_id)
        except MetastoreUnavailableError:
            if not was_cleaned(self.row(row.id)):
                raise
        return was_cleaned(self.row(row.id))

    def _change(
        self,
        expected: ExpectedRow,
        send: Callable[[], None],
        is_done: Callable[[CompactionRow | None], bool],
    ) -> None:
        """Change a row if it is what the caller believes.

        :param is_done: tells from the row, looked up after an error, that the change was made.
        """
        self._check(expected)
        try:
            send()
        except MetastoreUnavailableError:
            if not is_done(self.row(expected.id)):
                raise
        except MetastoreError:
            # Of two who end one row at the same moment, the database lets one do it.
            if is_done(self.row(expected.id)):
                return
            self._check(expected)
            raise

    def _check(self, expected: ExpectedRow) -> None:
        _check(expected, self.row(expected.id))


def _compactions(rows: Iterable[CompactionRow]) -> list[CompactionRow]:
    """Rows without those of Hive 4's own removals, which nobody here may take for compactions."""
    return [row for row in rows if not row.is_removal]


def _check(expected: ExpectedRow, now: CompactionRow | None) -> None:
    if now is None or not _is_as_expected(now, expected):
        raise ownership_lost(expected, now.state if now else None, now.worker_id if now else None)


def _may_count(row: CompactionRow, txn_id: int) -> bool:
    """Whether the cleaning of a row may count a transaction that is not committed yet."""
    if row.state is not CompactionState.READY_FOR_CLEANING or row.notes_no_commit:
        return False
    return row.next_txn_id is None or row.next_txn_id >= txn_id


def _is_worked_on_by(row: CompactionRow, worker_id: str) -> bool:
    return row.state is CompactionState.WORKING and row.worker_id == worker_id


def _is_as_expected(now: CompactionRow, expected: ExpectedRow) -> bool:
    if isinstance(expected, ClaimedCompaction):
        return now.entity == expected.entity and _is_worked_on_by(now, expected.worker_id)
    facts = (expected.state, expected.worker_id, expected.txn_id, expected.entity, expected.commit_ms)
    return not now.state.is_terminal and facts == (now.state, now.worker_id, now.txn_id, now.entity, now.commit_ms)


def _info(row: ExpectedRow) -> CompactionInfo:
    return row.info if isinstance(row, ClaimedCompaction) else CompactionInfo.of_row(row)
