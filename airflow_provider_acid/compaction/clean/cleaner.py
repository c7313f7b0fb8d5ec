"""Hive's Cleaner: wait until nobody can still need the merged directories, delete them, tell the metastore.

The rule is stricter than Hive's: a row is cleaned when every transaction up to and including the highest one that
existed at the compaction's commit (on Hive 3.1, after its rename) has ended, and on Hive 3.1 every lock of that time
is gone; :mod:`cleaning_wait` judges that, :mod:`cleaning_view` what is deleted. Files go first, the metastore's
bookkeeping after, never the other way: once the metastore forgets an aborted write id, it counts as committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, cleaner_txns
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.clean.deletion import Deleter
from airflow_provider_acid.compaction.clean.view import (
    CleanersView,
    PartitionLook,
    ViewByReplaced,
    ViewByTransactions,
)
from airflow_provider_acid.compaction.clean.wait import OPENING_SECONDS, Readers
from airflow_provider_acid.compaction.facts import EntityFacts, FactsOfMany, find_property
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.publish.publisher import publisher_on, remove_discards
from airflow_provider_acid.compaction.publish.replaced import read_replaced
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.recover.attempts import pool_of_worker
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.compaction.snapshot import current_txns
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    NotEnoughHistoryError,
    ObjectNotFoundError,
    OwnershipLostError,
    UnexpectedError,
    UnsupportedTableError,
)
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import KEEP_SECONDS, CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow

log = logging.getLogger(__name__)

LOOKED_UP_TOGETHER = 100
"""Of so many rows the tables and partitions are asked for together; the last is cleaned seconds after that."""


class Cleaner:
    """Looks at and cleans rows of the compaction queue; belongs to one thread, like its client."""

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        *,
        on_step: StepListener = ignore_steps,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._neighbours = Neighbours(client, queue.database, settings.exclusive_locations)
        self._recovery = Recovery(client, queue, settings)
        self._on_step = on_step
        self._sleep = sleep
        self._not_markable: set[Entity] = set()
        self._locked_out: dict[Entity, str] = {}
        self._deleter = Deleter(client, settings, on_step, insists=self._insists_on_lock)

    def look(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Whether these entities can be cleaned, and if not, what each waits for.

        Changes nothing, but tells the metastore of a claim that waits that it is not forgotten. Judged by the newest
        compaction of each: an older one that :meth:`clean` could not complete goes with it.
        """
        rows = {row.entity: row for row in self._rows(entities)}.values()
        if not rows:
            return ()
        readers = self._readers()
        return tuple(self._judge(row, readers) for row in rows)

    def clean(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Clean what can be cleaned, older compactions first; rows that cannot yet are returned as waiting."""
        unsettled = tuple(
            Cleaning(outcome.entity, outcome.request_id or 0, CleaningState.FAILED, outcome.message)
            for outcome in self._recovery.settle_uncommitted(entities)
            if outcome.state is OutcomeState.FAILED
        )
        self._not_markable.clear()
        self._locked_out.clear()
        rows = self._rows(entities)
        if not rows:
            return unsettled
        # A transaction that is just being opened has an id but is not listed yet: look twice.
        readers = self._readers()
        self._sleep(OPENING_SECONDS)
        readers.look_again()
        done: list[Cleaning] = []
        for start in range(0, len(rows), LOOKED_UP_TOGETHER):
            together = rows[start : start + LOOKED_UP_TOGETHER]
            known = FactsOfMany(self._client, {row.entity for row in together})
            done += [self._clean_if_ready(row, readers, known) for row in together]
        # What stood in the way of an older compaction's row may have gone with the directories of a newer one.
        freed = {item.entity for item in done if item.state is CleaningState.CLEANED}
        for place, (row, item) in enumerate(zip(rows, done, strict=True)):
            if item.state is not CleaningState.CLEANED and item.entity in freed:
                again = self._clean_if_ready(row, readers, FactsOfMany(self._client, [row.entity]))
                done[place] = replace(again, deleted=item.deleted + again.deleted)
        return (*done, *unsettled)

    def _clean_if_ready(self, row: CompactionRow, readers: Readers, known: FactsOfMany) -> Cleaning:
        verdict = self._judge(row, readers)
        return self._clean_guarded(row, readers, known) if verdict.state is CleaningState.READY else verdict

    def _rows(self, entities: Collection[Entity]) -> list[CompactionRow]:
        return self._queue.ready_to_clean(entities)

    def _readers(self) -> Readers:
        return Readers(
            self._client,
            self._settings.cleaner_retention_seconds,
            locks_count=self._queue.hive.has_readers_without_transactions,
            queue_seconds=self._settings.cleaner_lock_wait_seconds if self._insists_on_lock else None,
        )

    @property
    def _insists_on_lock(self) -> bool:
        action = self._settings.cleaner_lock_timeout_action
        if action is CleaningLockAction.BY_VERSION:
            return self._queue.hive.hides_deletions_from_readers
        return action is CleaningLockAction.WAIT

    def _judge(self, row: CompactionRow, readers: Readers) -> Cleaning:
        try:
            with Supervised(row.entity):
                return self._judged(row, readers)
        except UnexpectedError as error:
            return Cleaning(row.entity, row.id, CleaningState.FAILED, str(error))

    def _judged(self, row: CompactionRow, readers: Readers) -> Cleaning:
        waiting = readers.waits_for(row)
        if waiting is not None:
            self._keep(row, readers)
            return Cleaning(row.entity, row.id, CleaningState.WAITING, waiting)
        return Cleaning(row.entity, row.id, CleaningState.READY, "no reader can still need the merged directories")

    def _keep(self, row: CompactionRow, readers: Readers) -> None:
        """Where a row that waits is still a claim for everybody else, keep it from being taken back as forgotten."""
        if not self._queue.hive.is_claimed_until_cleaned:
            return
        if row.start_ms is not None and readers.now_ms - row.start_ms < KEEP_SECONDS * 1000:
            return
        try:
            with Supervised(row.entity):
                self._queue.keep(row)
        except MetastoreUnavailableError:
            raise
        except AcidError as error:
            # As a rule somebody else cleaned it, or it was taken back; the next look tells.
            log.warning("%s", error)

    def _clean_guarded(self, row: CompactionRow, readers: Readers, known: FactsOfMany) -> Cleaning:
        try:
            with Supervised(row.entity):
                cleaning = self._clean(row, readers, known)
        except AcidError as error:
            return Cleaning(row.entity, row.id, CleaningState.FAILED, str(error))
        if cleaning.state is CleaningState.WAITING:
            self._keep(row, readers)
        return cleaning

    def _clean(self, row: CompactionRow, readers: Readers, known: FactsOfMany) -> Cleaning:
        try:
            facts = known.of(row.entity)
        except ObjectNotFoundError:
            return self._mark_cleaned(row, None if self._queue.hive.can_forget_nothing else row.highest_write_id, ())
        _check_may_delete(facts)
        self._neighbours.check(facts.table, facts.partition)
        storage = self._settings.storages.open(facts.location)
        with publisher_on(storage).discard() as discard:
            # From here on, what is looked at is the table that this request was made for, or the discard is gone.
            now = self._queue.row(row.id)
            if now is None or now.state.is_terminal:
                return _nothing_left(row)
            if now.entity != row.entity:
                reason = f"is looked at again, for it was renamed to {now.entity}"
                return Cleaning(row.entity, row.id, CleaningState.WAITING, reason)
            if self._queue.hive.lists_what_is_replaced:
                return self._clean_replaced(row, storage, discard)
            return self._clean_committed(row, storage, readers, discard)

    def _has_ended(self, row: CompactionRow) -> bool:
        now = self._queue.row(row.id)
        return now is None or now.state.is_terminal

    def _clean_committed(self, row: CompactionRow, storage: Storage, readers: Readers, discard: Discard) -> Cleaning:
        """On Hive 4: delete what this compaction made obsolete for everybody, and what is aborted."""
        waits = self._recovery.withdraw_aborted(row.entity, storage)
        if waits is not None:
            message = f"waits for {waits}: what an aborted compaction published is still there"
            return Cleaning(row.entity, row.id, CleaningState.WAITING, message)
        txns = cleaner_txns(readers.min_open_txn, _own_txn(row), readers.aborted_txns)
        view = ViewByTransactions(txns, self._write_ids(row, txns), _highest_write_id(row))
        cleaning = self._delete(row, storage, view, discard)
        self._remove_staging(row, storage)
        return cleaning

    def _clean_replaced(self, row: CompactionRow, storage: Storage, discard: Discard) -> Cleaning:
        """On Hive 3: delete by the compaction's own list, which goes last, so that a repeated cleaning finds it."""
        lists = (read_replaced(storage, staging) for staging in _own_staging(row))
        replaced = next((names for names in lists if names is not None), None)
        if replaced is None:
            remark = "; what the compaction replaced is not on record, so that it stays until the next one"
            cleaning = self._mark_cleaned(row, None, (), remark)
        else:
            table = self._write_ids(row, current_txns(self._client))
            cleaning = self._delete(row, storage, ViewByReplaced(replaced, table, _highest_write_id(row)), discard)
        if cleaning.state is CleaningState.CLEANED:
            self._remove_staging(row, storage)
        return cleaning

    def _delete(self, row: CompactionRow, storage: Storage, view: CleanersView, discard: Discard) -> Cleaning:
        before = PartitionLook.at(storage)
        remove_discards(storage, before.listing, discard)
        if before.is_overtaken(view.highest_write_id):
            return self._mark_cleaned(row, view.highest_write_id, ())
        deleted: tuple[str, ...] = ()
        try:
            obsolete = view.obsolete(before)
            left = view.left(before.without(obsolete))
            if not left:
                self._on_step(Step.CLEANING_DECIDED, row.entity)
                waits = self._delete_obsolete(row.entity, obsolete, discard)
                if waits is not None:
                    return Cleaning(row.entity, row.id, CleaningState.WAITING, f"waits for {waits}")
                deleted = obsolete
                after = PartitionLook.at(storage)
                left = view.left(after)
            if left:
                return _waits_for_newer(row, f"it replaced {', '.join(left)}", deleted)
            highest = view.highest_safe_write_id(after)
        except OwnershipLostError as error:
            return Cleaning(row.entity, row.id, CleaningState.WAITING, f"is looked at again, for {error.reason}")
        except NotEnoughHistoryError as error:
            return self._overtaken(row, error, deleted)
        return self._mark_cleaned(row, highest, deleted)

    def _delete_obsolete(self, entity: Entity, obsolete: Sequence[str], discard: Discard) -> str | None:
        """What is waited for: in one run once for a partition's lock, whatever number of requests it has."""
        if obsolete and entity in self._locked_out:
            return self._locked_out[entity]
        waits = self._deleter.delete(entity, obsolete, discard)
        if waits is not None:
            self._locked_out[entity] = waits
        return waits

    def _overtaken(self, row: CompactionRow, error: NotEnoughHistoryError, deleted: tuple[str, ...]) -> Cleaning:
        """A newer compaction's base is there, before or after the deletion; its readers may still be there, too."""
        if not self._queue.hive.is_claimed_until_cleaned:
            return _waits_for_newer(row, error.reason, deleted)
        # There a newer compaction comes only after somebody else has cleaned this one.
        if self._has_ended(row):
            return _nothing_left(row)
        raise error

    def _mark_cleaned(
        self, row: CompactionRow, highest: int | None, deleted: tuple[str, ...], remark: str = ""
    ) -> Cleaning:
        """Tell the metastore; where that cannot be done the data is right, and only the row stays."""
        done = f"{len(deleted)} deleted{remark}"
        if not highest and not self._queue.hive.can_forget_nothing:
            message = f"{done}; the row stays, since an aborted write id still lies in a remaining directory"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        if row.entity in self._not_markable:
            message = f"{done}; the row stays, as an older one does that the metastore could not mark cleaned"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        try:
            self._queue.cleaned(row, highest or None)
        except (MetastoreUnavailableError, MetastoreVersionError):
            raise
        except MetastoreError as error:
            # Hive 4.0 on PostgreSQL cannot do it for unpartitioned tables; asking for every row would not help.
            self._not_markable.add(row.entity)
            message = f"{done}; the row stays, since the metastore could not mark it cleaned: {_first_words(error)}"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        self._on_step(Step.MARKED_CLEANED, row.entity)
        return Cleaning(row.entity, row.id, CleaningState.CLEANED, done, deleted)

    def _remove_staging(self, row: CompactionRow, storage: Storage) -> None:
        try:
            with Supervised(row.entity):
                storage.delete(_own_staging(row))
        except AcidError as error:
            log.warning("%s: cleaned, but the compaction's staging directory stays: %s", row.entity, error)

    def _write_ids(self, row: CompactionRow, txns: ValidTxnList) -> TableWriteIds:
        return self._client.valid_write_ids([row.entity.full_table_name], str(txns))[0]


def _waits_for_newer(row: CompactionRow, reason: str, deleted: tuple[str, ...]) -> Cleaning:
    message = f"waits for a newer compaction to be cleaned: {reason}"
    return Cleaning(row.entity, row.id, CleaningState.WAITING, message, deleted)


def _nothing_left(row: CompactionRow) -> Cleaning:
    return Cleaning(row.entity, row.id, CleaningState.CLEANED, "nothing left to clean: its request has ended")


def _highest_write_id(row: CompactionRow) -> int:
    if not row.highest_write_id:
        raise MetastoreError(
            f"compaction request {row.id} of {row.entity}",
            "is ready for cleaning, but no highest write id was recorded",
            "compare COMPACTION_QUEUE in the metastore's database before anything is deleted",
        )
    return row.highest_write_id


def _own_txn(row: CompactionRow) -> int:
    """The compaction's transaction; where the server does not tell it, the highest there was at its commit."""
    newest = row.txn_id or row.next_txn_id
    assert newest is not None, f"{row} is not committed"
    return newest


def _first_words(error: MetastoreError) -> str:
    """The server's message without the dump of its objects."""
    return error.reason.partition("(")[0].strip()


def _own_staging(row: CompactionRow) -> tuple[str, ...]:
    """The compaction's staging directory, where its name is known.

    On Hive 4 it is that of one that died after its commit, when all that was left was tidying up.
    """
    pool = RequestPool.parse(row.pool) or pool_of_worker(row.worker_id)
    return () if pool is None else (staging_name(pool.token),)


def _check_may_delete(facts: EntityFacts) -> None:
    if (facts.property("no_cleanup") or "").lower() == "true":
        raise UnsupportedTableError(
            str(facts.entity), "has no_cleanup=true", "remove the property to have obsolete directories deleted"
        )
    if find_property(facts.database.parameters, "repl.source.for"):
        raise UnsupportedTableError(
            str(facts.entity),
            "its database is a replication source; files would have to go to the change manager first",
            "leave this database to Hive's own Cleaner",
        )
