"""Taking back a committed compaction, as long as all that it replaced is kept: readers read that again.

One rename does it: with the result gone nothing hides the merged directories any more. They hold the same rows under
the same ids, so that whoever read the result may delete or update by what he read. A delta and a delete delta would
take two renames, and between them a dead undo would leave every reader with half of the result; where files go one by
one it is the same. A delete delta alone would be missed by nobody: Hive reads on where a file of deletes is gone
(``ColumnizedDeleteEventRegistry``, ``OrcRawRecordMerger``), so that rows came back in a query without a lock that had
listed it. So these are refused.

It is done under the EXCLUSIVE lock, in this order:

1. The request ends. No cleaner begins with it any more: each looks at its request after it made its discard.
2. Other discards are removed. Cleaners that looked at the request before have theirs, and delete nothing without them.
3. All is looked at again. Of what was replaced nothing may be missing; and what readers would read must be that. Nor
   may another request have come, for some are made by Hive to be cleaned at once.
4. The result goes by way of a discard, which a cleaner removes before it deletes anything. So an undo that fell asleep
   here takes nothing away after that.
5. The transaction gets a write id of the table, though it writes nothing. HiveServer2 (split strategy BI) and Impala
   keep listings for as long as the valid write id list is the same, and would go on looking for the result.

Whoever dies in between leaves a result that readers read on, or its sources; the next undo goes on. The metastore
still knows all aborted writes, for nobody marked the request as cleaned.

Hive's own Cleaner waits for no lock. It is kept from our requests (:meth:`.CompactionQueue.is_withheld`). But it may be
at work in any partition with aborted writes, and for requests that are not ours: then nothing is undone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import asdict, dataclass

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.acid.write_ids import compactor_list
from airflow_provider_acid.compaction.candidates import written_partitions
from airflow_provider_acid.compaction.clean.row_cleaner import check_may_delete
from airflow_provider_acid.compaction.exclusive_lock import wait_for_exclusive
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.publish.publisher import publisher_on, remove_discards
from airflow_provider_acid.compaction.publish.staging import staging_name, staging_tokens
from airflow_provider_acid.compaction.publish.undo_note import UndoNote, read_undo_note
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool
from airflow_provider_acid.compaction.recover.withdrawal import end_dead_lockers, removers_transaction
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, CompactionSettings
from airflow_provider_acid.compaction.snapshot import current_txns, list_with_base_formats
from airflow_provider_acid.exceptions import OwnershipLostError, RefusedError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

log = logging.getLogger(__name__)

_LEAVE = "leave the result as it is"

UNDONE = "undone"
"""How the message begins with which the request of a compaction ends that is taken back."""


@dataclass(frozen=True)
class Undone:
    """What an undo did, or would do.

    :param removed: the result's directory; empty where it was taken back before.
    :param restored: names of the directories and original files that readers read (again).
    """

    entity: Entity
    request_id: int
    removed: str
    restored: tuple[str, ...]

    def __str__(self) -> str:
        if not self.removed:
            return f"{self.entity}: request {self.request_id} was taken back before"
        return f"{self.entity}: {self.removed} of request {self.request_id}, for {', '.join(self.restored)}"

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        return {
            **asdict(self.entity),
            "request_id": self.request_id,
            "removed": self.removed,
            "restored": len(self.restored),
        }


@dataclass(frozen=True)
class _Found:
    """The compaction that would be taken back.

    :param result: its directory.
    :param is_there: whether that is still there.
    """

    row: CompactionRow
    note: UndoNote
    staging: str
    result: str
    is_there: bool

    def undone(self) -> Undone:
        restored = (*self.note.directories, *sorted(self.note.original_files))
        return Undone(self.row.entity, self.row.id, self.result, restored)


class Undo:
    """Takes back the newest compaction of a partition; belongs to one thread, like its client."""

    def __init__(self, client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings

    def look(self, entity: Entity) -> Undone:
        """What :meth:`undo` would do; changes nothing.

        :raises RefusedError: it would be refused.
        """
        facts, storage = self._open(entity)
        found = self._find(entity, storage)
        if isinstance(found, _Found):
            self._check(facts, storage, found)
            return found.undone()
        return found

    def undo(self, entity: Entity) -> Undone:
        """Take back the newest compaction; one that was taken back before is found done.

        :raises RefusedError: it is not possible, or the lock is not to be had; readers read the result as before.
        :raises OwnershipLostError: the lock was lost, or somebody else cleans; the same holds.
        """
        facts, storage = self._open(entity)
        found = self._find(entity, storage)
        if isinstance(found, Undone):
            return found
        self._check(facts, storage, found)
        end_dead_lockers(self._client, self._settings, entity, None)
        asker = str(nobodys_pool(entity))
        with closing(removers_transaction(self._client, self._settings, entity, asker).start()) as transaction:
            waits = wait_for_exclusive(transaction, self._settings.minor_lock_wait_seconds, LOCK_QUEUE_SECONDS)
            if waits is not None:
                raise _refused(entity, f"waits for {waits}", "try again when that has ended")
            # Nobody drops or moves it any more.
            facts, storage = self._open(entity)
            with publisher_on(storage).discard() as discard:
                return self._undo_under_lock(facts, storage, transaction, discard)

    def _undo_under_lock(
        self, facts: EntityFacts, storage: Storage, transaction: CompactionTransaction, discard: Discard
    ) -> Undone:
        found = self._find(facts.entity, storage)
        if isinstance(found, Undone):
            return found
        self._check(facts, storage, found)
        transaction.verify()
        if found.row.waits_to_be_cleaned:
            self._queue.refuse(found.row, f"{UNDONE}: {found.result} is taken back")
        remove_discards(storage, storage.list(), discard)
        self._check(facts, storage, found)
        if found.is_there:
            # What only asks to be cleaned waits for no lock.
            self._check_alone(found.row, self._queue.rows(entity=facts.entity))
            log.info("%s: taking back %s", facts.entity, found.result)
            discard.take([found.result], transaction.check)
            storage.flush()
            discard.empty()
        transaction.allocate_write_id()
        storage.delete([found.staging])
        # Lost only now, it has served.
        with suppress(OwnershipLostError):
            transaction.commit()
        return found.undone()

    def _open(self, entity: Entity) -> tuple[EntityFacts, Storage]:
        facts = load_facts(self._client, entity)
        check_may_delete(facts)
        exclusive = self._settings.exclusive_locations
        Neighbours(self._client, self._queue.database, exclusive).check(facts.table, facts.partition)
        storage = self._settings.storages.open(facts.location)
        if not storage.rules.renames:
            raise _refused(
                entity,
                "lies on an object store, where a result goes file by file, so that readers could see a part of it",
                "compact it again",
            )
        return facts, storage

    def _find(self, entity: Entity, storage: Storage) -> _Found | Undone:
        rows = self._queue.rows(entity=entity)
        row = _newest(entity, rows)
        self._check_alone(row, rows)
        if row.waits_to_be_cleaned and not self._queue.is_withheld(row):
            raise _refused(
                entity,
                f"Hive's own Cleaner may be at work for {row}",
                "name metastore_db_conn_id in the extra of the hive_acid connection before it is compacted",
            )
        listing = storage.list()
        for staging in map(staging_name, staging_tokens(listing)):
            note = read_undo_note(storage, staging)
            if note is not None and note.transaction == row.txn_id:
                result = self._result(row, note)
                return _Found(row, note, staging, result, result in listing.directories)
        return self._without_note(row, listing)

    def _check_alone(self, row: CompactionRow, rows: list[CompactionRow]) -> None:
        """Do nothing where no request but that one is there for which Hive may clean, or somebody compact.

        :raises RefusedError: one is.
        """
        for other in rows:
            if other.state.is_terminal or other.id == row.id:
                continue
            if not other.waits_to_be_cleaned or not self._queue.is_withheld(other):
                reason = f"{other} is there, too, and Hive may clean for it"
                raise _refused(row.entity, reason, "try again when it has ended")

    def _without_note(self, row: CompactionRow, listing: Listing) -> Undone:
        left = [name for name in listing.directories if _was_undone(row) and name in (row.error_message or "")]
        if _was_undone(row) and not left:
            return Undone(row.entity, row.id, "", ())
        raise _refused(
            row.entity,
            f"what {row} replaced is not on record: it was compacted without keep_replaced_hours, had nothing to "
            "merge, or the record was removed after an undo that did not end",
            "set keep_replaced_hours before a compaction that may have to be taken back",
        )

    def _result(self, row: CompactionRow, note: UndoNote) -> str:
        if len(note.targets) != 1:
            raise _refused(
                row.entity,
                f"{' and '.join(note.targets)} cannot be taken back by one rename; after a death between two, readers "
                "would see half of the result",
                "ask for a major compaction where one may have to be taken back",
            )
        (result,) = note.targets
        name = parse_directory_name(result)
        if isinstance(name, DeltaName) and name.is_delete:
            raise _refused(
                row.entity,
                f"{result} holds deletes alone, and a query without a lock that finds it gone reads on without it, so "
                "that deleted rows come back there",
                "ask for a major compaction where one may have to be taken back",
            )
        txn_id = note.transaction if self._queue.hive.publishes_by_commit else 0
        if name is None or name.visibility_txn_id != txn_id:
            raise _refused(row.entity, f"{result} is not what {row} made", "find out who changed its staging directory")
        return result

    def _check(self, facts: EntityFacts, storage: Storage, found: _Found) -> None:
        """Do nothing where readers without the result read exactly what it was made of.

        :raises RefusedError: they would not, or do not read the result now.
        """
        entity, note, result = facts.entity, found.note, found.result
        if not found.is_there:
            if _was_undone(found.row):
                return
            raise _refused(entity, f"{result} is not there any more", "find out who removed it")
        txns = current_txns(self._client)
        (table,) = self._client.valid_write_ids([facts.table.full_table_name], str(txns))
        self._check_aborted(entity, note, table.aborted)
        listing, formats = list_with_base_formats(storage)
        missing = note.missing(listing)
        if missing:
            raise _refused(entity, f"of what {found.row} replaced {_some(missing)} is gone", _LEAVE)
        write_ids, visibility = compactor_list(table), self._queue.hive.visibility(txns)
        now, then = (
            acid_directory(seen, write_ids, visibility, formats, insert_only=facts.table.is_insert_only)
            for seen in (listing, listing.without([result]))
        )
        if result not in _paths(now):
            raise _refused(entity, f"{result} is replaced by what came after it", _LEAVE)
        expected = {*_paths(now), *note.directories} - {result}
        originals = {file.path for file in then.originals}
        if _paths(then) != expected or not note.original_files <= originals:
            reads, replaced = _some(_paths(then) | originals), _some({*note.directories, *note.original_files})
            raise _refused(entity, f"without {result} readers would read {reads}; it replaced {replaced}", _LEAVE)

    def _check_aborted(self, entity: Entity, note: UndoNote, aborted: Collection[int]) -> None:
        forgotten = set(note.aborted).difference(aborted)
        if forgotten:
            reason = f"the metastore forgot that write ids {_some(forgotten)} were aborted, whose rows would come back"
            raise _refused(entity, reason, _LEAVE)
        if aborted and self._queue.hive.cleans_aborts_by_itself and self._may_be_cleaned(entity, aborted):
            raise _refused(
                entity,
                "aborted writes to it are on record, or aborted writes to the table of which none tells where they "
                "were, so that Hive's own Cleaner may be at work there, which deletes what the result replaced, too",
                "try again when they are cleaned",
            )

    def _may_be_cleaned(self, entity: Entity, aborted: Collection[int]) -> bool:
        """Whether Hive's Cleaner may clean, or have just cleaned, aborted writes there; it goes by these records."""
        if self._queue.database is None or entity.partition is None:
            return True
        recorded = WriteRecords(self._queue.database).aborted(entity.database, entity.table)
        placed = {write_id for _, write_id in recorded}
        names = {name for name, _ in recorded}
        return not placed.issuperset(aborted) or bool(written_partitions([entity.partition], names))


def _newest(entity: Entity, rows: list[CompactionRow]) -> CompactionRow:
    """The row of the newest compaction that was published.

    :raises RefusedError: there is none, it was cleaned, or a newer request is at work.
    """
    for row in reversed(rows):
        if row.waits_to_be_cleaned or _was_undone(row):
            return row
        if not row.state.is_terminal:
            raise _refused(
                entity, f"{row} is newer, and has not ended", "try again when it has; its result counts then"
            )
        if row.state is CompactionState.SUCCEEDED:
            raise _refused(entity, f"what {row} replaced was deleted", _LEAVE)
    raise _refused(entity, "has no compaction on record", "correct the name of the table or partition")


def _was_undone(row: CompactionRow) -> bool:
    return row.state is CompactionState.REFUSED and (row.error_message or "").startswith(UNDONE)


def _paths(directory: AcidDirectory) -> set[str]:
    return {part.path for part in directory.current}


def _some(things: Collection[object]) -> str:
    names = sorted(map(str, things))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _refused(entity: Entity, reason: str, remedy: str) -> RefusedError:
    return RefusedError(f"the undo of {entity}", reason, remedy)
