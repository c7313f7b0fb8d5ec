"""Cleaning 'ready for cleaning' rows that nobody has to be waited for any more.

What is deleted, :mod:`view` says; how, :mod:`deletion`. Files go first, the metastore's bookkeeping after, never the
other way: once the metastore forgets an aborted write id, it counts as committed.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.clean.deletion import Deleter, Deletion
from airflow_provider_acid.compaction.clean.view import (
    CleanersView,
    PartitionLook,
    ViewByReplaced,
    ViewByTransactions,
)
from airflow_provider_acid.compaction.clean.wait import Horizon
from airflow_provider_acid.compaction.clean.write_ids import WriteIdsOfMany, highest_write_id
from airflow_provider_acid.compaction.facts import EntityFacts, FactsOfMany, find_property
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.publish.publisher import publisher_on, remove_discards
from airflow_provider_acid.compaction.publish.replaced import read_replaced
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import current_txns
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    NotEnoughHistoryError,
    ObjectNotFoundError,
    OwnershipLostError,
    UnsupportedTableError,
)
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow

log = logging.getLogger(__name__)


_Steps = Generator[Deletion, str | None, Cleaning]
"""One row's cleaning, which asks for a deletion, and is told what that waits for, or None where all is gone."""


@dataclass(frozen=True)
class Known:
    """What was asked of the metastore for several rows together."""

    facts: FactsOfMany
    write_ids: WriteIdsOfMany


class RowCleaner:
    """Cleans one row after the other, in one run; belongs to one thread, like its client.

    All rows of a partition are given to the same one, older ones first.

    :param locations: where nobody else lies, or the error of looking; of what is not in it nothing is deleted.
    :param insists_on_lock: see :class:`~.deletion.Deleter`.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        locations: Mapping[Entity, str | AcidError],
        on_step: StepListener,
        *,
        insists_on_lock: bool,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._locations = locations
        self._recovery = Recovery(client, queue, settings)
        self._on_step = on_step
        self.marked: list[tuple[CompactionRow, int]] = []
        """Rows that were marked cleaned, and up to which write id; what is recorded elsewhere of them may go, too."""
        self._not_markable: set[Entity] = set()
        self._locked_out: dict[Entity, str] = {}
        self._deleter = Deleter(client, settings, insists=insists_on_lock)

    def clean(self, rows: Sequence[CompactionRow], horizon: Horizon) -> list[Cleaning]:
        """Clean rows, whose tables and partitions are asked for together; one of each, errors too."""
        known = Known(FactsOfMany(self._client, {row.entity for row in rows}), WriteIdsOfMany(self._client, horizon))
        if not self._queue.hive.publishes_by_commit:
            return [self._clean_alone(row, known) for row in rows]
        return [cleaning for some in _rounds(rows) for cleaning in self._clean_together(some, known)]

    def _clean_together(self, rows: Sequence[CompactionRow], known: Known) -> list[Cleaning]:
        """Clean rows of several partitions under common locks, then alone those whose locks have to be waited for."""
        done: list[Cleaning] = []
        wanted: list[tuple[CompactionRow, _Steps, Deletion]] = []
        alone: list[CompactionRow] = []
        with ExitStack() as begun:
            for row in rows:
                steps = begun.enter_context(closing(self._clean_row(row, known)))
                found = self._go_on(row, steps)
                if isinstance(found, Deletion):
                    wanted.append((row, steps, found))
                else:
                    done.append(found)
            deleted = self._deleter.delete_together([deletion for _, _, deletion in wanted])
            for row, steps, deletion in wanted:
                if deletion.entity in deleted:
                    done.append(self._end(row, steps, deleted[deletion.entity]))
                else:
                    alone.append(row)
        for row in alone:
            # It may wait for its lock: what it is, is asked for anew right before.
            done.append(self._clean_alone(row, replace(known, facts=FactsOfMany(self._client, [row.entity]))))
        return done

    def _clean_alone(self, row: CompactionRow, known: Known) -> Cleaning:
        with closing(self._clean_row(row, known)) as steps:
            found = self._go_on(row, steps)
            return self._end(row, steps, self._waited_for(found)) if isinstance(found, Deletion) else found

    def _waited_for(self, wanted: Deletion) -> str | AcidError | None:
        """What is waited for: in one run once for a partition's lock, whatever number of requests it has."""
        if wanted.entity in self._locked_out:
            return self._locked_out[wanted.entity]
        try:
            with Supervised(wanted.entity):
                waits = self._deleter.delete(wanted)
        except AcidError as error:
            return error
        if waits is not None:
            self._locked_out[wanted.entity] = waits
        return waits

    def _end(self, row: CompactionRow, steps: _Steps, answer: str | AcidError | None) -> Cleaning:
        ended = self._go_on(row, steps, answer)
        assert isinstance(ended, Cleaning), "a row is deleted for once"
        return ended

    def _go_on(self, row: CompactionRow, steps: _Steps, answer: str | AcidError | None = None) -> Deletion | Cleaning:
        """Until something is to be deleted, or to the end.

        :param answer: about the deletion; None at the begin, too.
        """
        try:
            with Supervised(row.entity):
                try:
                    return steps.throw(answer) if isinstance(answer, AcidError) else steps.send(answer)
                except StopIteration as end:
                    ended: Cleaning = end.value
                    return ended
        except AcidError as error:
            return Cleaning(row.entity, row.id, CleaningState.FAILED, str(error))

    def _clean_row(self, row: CompactionRow, known: Known) -> _Steps:
        try:
            facts = known.facts.of(row.entity)
        except ObjectNotFoundError:
            return self._mark_cleaned(row, None if self._queue.hive.can_forget_nothing else row.highest_write_id, ())
        check_may_delete(facts)
        looked_at = self._locations.get(row.entity)
        if isinstance(looked_at, AcidError):
            raise looked_at
        if looked_at != facts.location:
            reason = f"is looked at again, for it was moved to {facts.location}"
            return Cleaning(row.entity, row.id, CleaningState.WAITING, reason)
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
                return (yield from self._clean_replaced(row, storage, discard))
            return (yield from self._clean_committed(row, storage, known.write_ids, discard))

    def _has_ended(self, row: CompactionRow) -> bool:
        now = self._queue.row(row.id)
        return now is None or now.state.is_terminal

    def _clean_committed(
        self, row: CompactionRow, storage: Storage, write_ids: WriteIdsOfMany, discard: Discard
    ) -> _Steps:
        """On Hive 4: delete what this compaction made obsolete for everybody, and what is aborted."""
        view = ViewByTransactions(write_ids.txns(row), write_ids.of(row), highest_write_id(row))
        # It serves both: whether an aborted compaction left something, and, where none did, what is obsolete.
        before = PartitionLook.at(storage)
        if self._recovery.may_hold_uncommitted(before.listing):
            waits = self._recovery.withdraw_aborted(row.entity, storage)
            if waits is not None:
                message = f"waits for {waits}: what an aborted compaction published is still there"
                return Cleaning(row.entity, row.id, CleaningState.WAITING, message)
            before = PartitionLook.at(storage)
        cleaning = yield from self._delete(row, storage, view, before, discard)
        # None comes after a compaction's commit.
        if any(name in before.listing.directories for name in _own_staging(row)):
            self._remove_staging(row, storage)
        return cleaning

    def _clean_replaced(self, row: CompactionRow, storage: Storage, discard: Discard) -> _Steps:
        """On Hive 3: delete by the compaction's own list, which goes last, so that a repeated cleaning finds it."""
        lists = (read_replaced(storage, staging) for staging in _own_staging(row))
        replaced = next((names for names in lists if names is not None), None)
        if replaced is None:
            remark = "; what the compaction replaced is not on record, so that it stays until the next one"
            cleaning = self._mark_cleaned(row, None, (), remark)
        else:
            (table,) = self._client.valid_write_ids([row.entity.full_table_name], str(current_txns(self._client)))
            view = ViewByReplaced(replaced, table, highest_write_id(row))
            cleaning = yield from self._delete(row, storage, view, PartitionLook.at(storage), discard)
        if cleaning.state is CleaningState.CLEANED:
            self._remove_staging(row, storage)
        return cleaning

    def _delete(
        self, row: CompactionRow, storage: Storage, view: CleanersView, before: PartitionLook, discard: Discard
    ) -> _Steps:
        """Delete what a view has for obsolete, and forget what the metastore kept of it.

        :param before: taken after the view, and since the discard is there.
        """
        remove_discards(storage, before.listing, discard)
        if before.is_overtaken(view.highest_write_id):
            storage.flush()
            return self._mark_cleaned(row, view.highest_write_id, ())
        deleted: tuple[str, ...] = ()
        try:
            obsolete = view.obsolete(before)
            left = view.left(before.without(obsolete))
            if not left:
                self._on_step(Step.CLEANING_DECIDED, row.entity)
                waits = (yield Deletion(row.entity, obsolete, discard)) if obsolete else None
                if waits is not None:
                    return Cleaning(row.entity, row.id, CleaningState.WAITING, f"waits for {waits}")
                self._on_step(Step.FILES_DELETED, row.entity)
                # Also what somebody else took away who died before this.
                storage.flush()
                discard.empty()
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
        if highest:
            self.marked.append((row, highest))
        return Cleaning(row.entity, row.id, CleaningState.CLEANED, done, deleted)

    def _remove_staging(self, row: CompactionRow, storage: Storage) -> None:
        try:
            with Supervised(row.entity):
                storage.delete(_own_staging(row))
        except AcidError as error:
            log.warning("%s: cleaned, but the compaction's staging directory stays: %s", row.entity, error)


def _rounds(rows: Sequence[CompactionRow]) -> Iterator[list[CompactionRow]]:
    """One row of each partition at a time, older ones first."""
    left = list(rows)
    while left:
        of_each = {row.entity: row for row in reversed(left)}
        yield list(reversed(of_each.values()))
        left = [row for row in left if of_each[row.entity] is not row]


def _waits_for_newer(row: CompactionRow, reason: str, deleted: tuple[str, ...]) -> Cleaning:
    message = f"waits for a newer compaction to be cleaned: {reason}"
    return Cleaning(row.entity, row.id, CleaningState.WAITING, message, deleted)


def _nothing_left(row: CompactionRow) -> Cleaning:
    return Cleaning(row.entity, row.id, CleaningState.CLEANED, "nothing left to clean: its request has ended")


def _first_words(error: MetastoreError) -> str:
    """The server's message without the dump of its objects."""
    return error.reason.partition("(")[0].strip()


def _own_staging(row: CompactionRow) -> tuple[str, ...]:
    """The compaction's staging directory, where its name is known.

    On Hive 4 it is that of one that died after its commit, when all that was left was tidying up.
    """
    pool = RequestPool.parse(row.pool) or RequestPool.of_worker(row.worker_id)
    return () if pool is None else (staging_name(pool.token),)


def check_may_delete(facts: EntityFacts) -> None:
    """Do nothing where a table's files may be deleted.

    :raises UnsupportedTableError: they have to stay.
    """
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
