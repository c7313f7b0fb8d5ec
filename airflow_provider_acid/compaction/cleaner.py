"""Hive's Cleaner: wait until nobody can still need the merged directories, delete them, tell the metastore.

The rule is stricter than Hive's: a row is cleaned when every transaction up to and including the highest one that
existed at the compaction's commit has ended. Files go first, the metastore's bookkeeping after, never the other way:
once the metastore forgets an aborted write id, that write id counts as committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.layout import partition_layout
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.obsolete import deletable, highest_safe_write_id, leftovers
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, cleaner_list
from airflow_provider_acid.compaction.facts import EntityFacts, find_property, load_facts
from airflow_provider_acid.compaction.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import read_base_formats
from airflow_provider_acid.compaction.staging import staging_name
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    ObjectNotFoundError,
    UnsupportedTableError,
)
from airflow_provider_acid.filesystem import Storage, storage_for
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow

log = logging.getLogger(__name__)

OPENING_SECONDS = 1.0
"""How long a transaction may have an id without being listed as open (``metastore.txn.opentxn.timeout``)."""


class CleaningState(str, Enum):
    """How far the cleaning of one compaction is."""

    READY = "ready"
    WAITING = "waiting"
    CLEANED = "cleaned"
    KEPT = "kept"
    FAILED = "failed"


@dataclass(frozen=True)
class Cleaning:
    """What was found or done about one 'ready for cleaning' row.

    :param message: one sentence: what it waits for, or what was done.
    :param deleted: deleted directories and files, relative to the partition.
    """

    entity: Entity
    request_id: int
    state: CleaningState
    message: str
    deleted: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        return {
            **asdict(self.entity),
            "request_id": self.request_id,
            "state": self.state.value,
            "message": self.message,
            "deleted": len(self.deleted),
        }


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
        self._recovery = Recovery(client, queue, settings)
        self._on_step = on_step
        self._sleep = sleep
        self._not_markable: set[Entity] = set()

    def look(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Whether these entities can be cleaned, and if not, what each waits for. Changes nothing.

        Judged by the newest compaction of each: an older one that :meth:`clean` could not complete goes with it.
        """
        rows = {row.entity: row for row in self._rows(entities)}.values()
        if not rows:
            return ()
        min_open = self._min_open_txn()
        return tuple(self._judge(row, min_open) for row in rows)

    def clean(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Clean what can be cleaned, older compactions first; rows that cannot yet are returned as waiting."""
        self._recovery.settle_uncommitted(entities)
        self._not_markable.clear()
        rows = self._rows(entities)
        if not rows:
            return ()
        # A transaction that is just being opened has an id but is not listed yet: look twice.
        first = self._min_open_txn()
        self._sleep(OPENING_SECONDS)
        min_open = min(first, self._min_open_txn())
        done = [self._clean_if_ready(row, min_open) for row in rows]
        # What stood in the way of an older compaction's row may have gone with the directories of a newer one.
        freed = {item.entity for item in done if item.state is CleaningState.CLEANED}
        for place, (row, item) in enumerate(zip(rows, done, strict=True)):
            if item.state in (CleaningState.KEPT, CleaningState.FAILED) and item.entity in freed:
                again = self._clean_if_ready(row, min_open)
                done[place] = replace(again, deleted=item.deleted + again.deleted)
        return tuple(done)

    def _clean_if_ready(self, row: CompactionRow, min_open: int) -> Cleaning:
        verdict = self._judge(row, min_open)
        return self._clean_guarded(row, min_open) if verdict.state is CleaningState.READY else verdict

    def _rows(self, entities: Collection[Entity]) -> list[CompactionRow]:
        return self._queue.ready_to_clean(entities)

    def _min_open_txn(self) -> int:
        now = self._client.open_transactions()
        return min(now.open, default=now.high_water_mark + 1)

    def _judge(self, row: CompactionRow, min_open: int) -> Cleaning:
        waiting = self._waits_for(row, min_open)
        if waiting is not None:
            return Cleaning(row.entity, row.id, CleaningState.WAITING, waiting)
        return Cleaning(row.entity, row.id, CleaningState.READY, "no reader can still need the merged directories")

    def _waits_for(self, row: CompactionRow, min_open: int) -> str | None:
        if row.next_txn_id is None or row.commit_ms is None:
            return f"waits for the commit of its compaction transaction {row.txn_id}"
        if row.next_txn_id >= min_open:
            return self._describe_blocker(min_open)
        if self._settings.retention_seconds > 0:
            age_seconds = (self._client.server_now_ms() - row.commit_ms) / 1000
            if age_seconds < self._settings.retention_seconds:
                return f"is kept for {self._settings.retention_seconds - age_seconds:.0f} s more (retention)"
        return None

    def _describe_blocker(self, txn_id: int) -> str:
        txn = next((txn for txn in self._client.transactions() if txn.id == txn_id), None)
        if txn is None:
            return f"waits for transaction {txn_id}"
        owner = f"waits for transaction {txn.id} of {txn.user}@{txn.host}"
        if txn.started_ms is None:
            return owner
        return f"{owner}, open for {(self._client.server_now_ms() - txn.started_ms) / 1000:.0f} s"

    def _clean_guarded(self, row: CompactionRow, min_open: int) -> Cleaning:
        try:
            return self._clean(row, min_open)
        except AcidError as error:
            return Cleaning(row.entity, row.id, CleaningState.FAILED, str(error))

    def _clean(self, row: CompactionRow, min_open: int) -> Cleaning:
        try:
            facts = load_facts(self._client, row.entity)
        except ObjectNotFoundError:
            return self._mark_cleaned(row, row.highest_write_id, ())
        _check_may_delete(facts)
        storage = storage_for(facts.location)
        waits = self._recovery.withdraw_aborted(row.entity)
        if waits is not None:
            message = f"waits for {waits}: what an aborted compaction published is still there"
            return Cleaning(row.entity, row.id, CleaningState.WAITING, message)
        view = self._view(row, facts, min_open)
        before = _Look.at(storage)
        if view.is_overtaken(before):
            return self._mark_cleaned(row, view.highest_write_id, ())
        doomed = view.doomed(before)
        self._on_step(Step.CLEANING_DECIDED, row.entity)
        storage.delete((*doomed, *_own_staging(row)))
        self._on_step(Step.FILES_DELETED, row.entity)
        after = _Look.at(storage)
        left = view.left(after)
        if left:
            message = f"{len(doomed)} deleted; {', '.join(left)} wait for a transaction that is still open"
            return Cleaning(row.entity, row.id, CleaningState.WAITING, message, doomed)
        return self._mark_cleaned(row, view.highest_safe_write_id(after), doomed)

    def _mark_cleaned(self, row: CompactionRow, highest: int | None, deleted: tuple[str, ...]) -> Cleaning:
        """Tell the metastore; where that cannot be done the data is right, and only the row stays."""
        done = f"{len(deleted)} deleted"
        if not highest:
            message = f"{done}; the row stays, since an aborted write id still lies in a remaining directory"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        if row.entity in self._not_markable:
            message = f"{done}; the row stays, as an older one does that the metastore could not mark cleaned"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        try:
            self._queue.cleaned(row, highest)
        except (MetastoreUnavailableError, MetastoreVersionError):
            raise
        except MetastoreError as error:
            # Hive 4.0 on PostgreSQL cannot do it for unpartitioned tables; asking for every row would not help.
            self._not_markable.add(row.entity)
            message = f"{done}; the row stays, since the metastore could not mark it cleaned: {_first_words(error)}"
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message, deleted)
        self._on_step(Step.MARKED_CLEANED, row.entity)
        return Cleaning(row.entity, row.id, CleaningState.CLEANED, done, deleted)

    def _view(self, row: CompactionRow, facts: EntityFacts, min_open: int) -> _CleanersView:
        if not row.highest_write_id:
            raise MetastoreError(
                f"compaction request {row.id} of {row.entity}",
                "is ready for cleaning, but no highest write id was recorded",
                "compare COMPACTION_QUEUE in the metastore's database before anything is deleted",
            )
        aborted = tuple(txn for txn in self._client.open_transactions().aborted if txn < min_open)
        txns = ValidTxnList(min_open - 1, (), aborted)
        table = self._client.valid_write_ids([facts.entity.full_table_name], str(txns))[0]
        return _CleanersView(txns, table, row.highest_write_id)


@dataclass(frozen=True)
class _Look:
    """What a partition holds at one moment."""

    listing: Listing
    base_formats: Mapping[str, str]

    @classmethod
    def at(cls, storage: Storage) -> _Look:
        listing = storage.list()
        return cls(listing, read_base_formats(storage, listing))


@dataclass(frozen=True)
class _CleanersView:
    """A partition as Hive's Cleaner sees it: transactions below the oldest open one, write ids up to the row's."""

    txns: ValidTxnList
    table: TableWriteIds
    highest_write_id: int

    def is_overtaken(self, look: _Look) -> bool:
        """Whether the cleaning of a newer compaction left nothing of the write ids up to this row's.

        Its base alone would be refused as newer than what this view may see.
        """
        layout = partition_layout(look.listing, look.base_formats)
        lowest = (
            *(base.write_id for base in layout.bases),
            *(delta.name.min_write_id for delta in layout.deltas),
        )
        has_originals = bool(layout.original_files or layout.original_directories)
        return not has_originals and all(write_id > self.highest_write_id for write_id in lowest)

    def doomed(self, look: _Look) -> tuple[str, ...]:
        """What is to be deleted."""
        write_ids = cleaner_list(self.table, self.highest_write_id)
        return deletable(look.listing, write_ids, self.txns, look.base_formats)

    def left(self, look: _Look) -> tuple[str, ...]:
        """What is obsolete for everybody but readers that are still open."""
        return leftovers(look.listing, self.table.full_table_name, self.highest_write_id, look.base_formats)

    def highest_safe_write_id(self, look: _Look) -> int | None:
        """The highest write id the metastore may forget about, by a look after the deletion."""
        write_ids = cleaner_list(self.table, self.highest_write_id)
        after = acid_directory(look.listing, write_ids, self.txns, look.base_formats)
        return highest_safe_write_id(after, self.table.aborted, self.highest_write_id)


def _first_words(error: MetastoreError) -> str:
    """The server's message without the dump of its objects."""
    return error.reason.partition("(")[0].strip()


def _own_staging(row: CompactionRow) -> tuple[str, ...]:
    """The staging directory of a compaction that died after its commit, when all that was left was tidying up."""
    pool = RequestPool.parse(row.pool)
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
