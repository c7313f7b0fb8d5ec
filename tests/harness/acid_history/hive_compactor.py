"""Hive 4's own worker and Cleaner at work on a history's partition, by Hive's protocol; they share no code with ours.

Both at their best: what Hive itself gets wrong, as deletes whose writer was aborted, is not for us to read right.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history.contents import Contents, contents
from tests.harness.acid_history.hive_files import (
    Event,
    acid_file,
    bucket_of,
    delete_event,
    delta_name,
    insert_event,
    make_directory,
)
from tests.harness.acid_history.metastore import ENTITY, NOW_MS, LockKind, State, TxnType
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_reader import NotEnoughHistoryError, Snapshot

_WORKER = "hive-server-1"
_METADATA = b'{"thisFileVersion":"0","dataFormat":"compacted"}'


@dataclass(frozen=True)
class _Running:
    """A compaction in work, and what it merges; once its request is marked that is published."""

    row: CompactionRow
    txn: int
    type: CompactionType
    contents: Contents
    is_marked: bool = False


class HiveCompactor:
    """At most one compaction of Hive's at a time; none on Hive 3, whose requests keep each other away.

    :param readers: the transactions of those who read.
    """

    def __init__(self, partition: Partition, readers: Callable[[], list[int]]) -> None:
        self._partition = partition
        self._readers = readers
        self._running: _Running | None = None
        self.has_compacted = False

    @property
    def is_running(self) -> bool:
        """Whether its worker has its lock."""
        return self._running is not None

    def start(self, type: CompactionType) -> str | None:
        """Its worker claims a request, which the server accepts where no other is at work; a snapshot is taken.

        Where that is a dead one of ours whose transaction has ended, Hive's Initiator has taken the claim back by then
        (``hive.compactor.worker.timeout``), but not between two looks.
        """
        partition, metastore = self._partition, self._partition.metastore
        rows = [row for row in metastore.rows.values() if row.state is CompactionState.WORKING]
        is_claimed = any(row.txn_id is None or metastore.state(row.txn_id) is State.OPEN for row in rows)
        is_claimed |= bool(rows) and partition.looks.are_disturbed
        if self._running or partition.kind.hive_version == 3 or is_claimed or metastore.is_closed:
            return None
        txn = metastore.open(TxnType.COMPACTION, _WORKER)
        metastore.lock(txn, LockKind.SHARED_READ)
        snapshot = _workers(metastore.reader_snapshot(), txn)
        found = contents(partition.folder, snapshot)
        if not _is_enough(found, type):
            metastore.end(txn, State.ABORTED)
            return None
        for row in rows:
            metastore.move_row(row.id, CompactionState.FAILED)
        highest = snapshot.high_water_mark
        row = metastore.add_row(
            CompactionRow(
                0,
                ENTITY,
                type.value,
                CompactionState.WORKING,
                _WORKER,
                None,
                NOW_MS,
                highest_write_id=highest,
                txn_id=txn,
            )
        )
        self._running = _Running(row, txn, type, found)
        return f"transaction {txn}: {', '.join(path.name for path in found.directories)} up to write id {highest}"

    def mark(self, type: CompactionType) -> str | None:
        """What it merged is renamed into place and marked, and not committed yet; one in work goes on with its type."""
        started = self.start(type) if self._running is None else ""
        running = self._running
        if running is None or running.is_marked:
            return None
        names = self._write(running)
        self._partition.metastore.mark_compacted(running.row.id)
        self._running = replace(running, is_marked=True)
        self.has_compacted = True
        return f"{started}; published {', '.join(names)}"

    def finish(self, state: State) -> str | None:
        """What it merged is published and committed, or it fails before and leaves nothing."""
        running, metastore = self._running, self._partition.metastore
        if running is None:
            return None
        said = f"transaction {running.txn}"
        if state is State.ABORTED and not running.is_marked:
            metastore.end(running.txn, state)
            metastore.move_row(running.row.id, CompactionState.FAILED)
            said = f"{said} failed"
        else:
            said = f"{said} {self.mark(running.type) or ''}"
            metastore.end(running.txn, State.COMMITTED)
        self._running = None
        return said

    def clean(self, *, waits_for_readers_only: bool) -> str | None:
        """Its Cleaner deletes what is obsolete for everybody, after the compaction with the lowest high-water mark.

        It looks at no lock. Of our own compactions' rows it is kept away (``tests/soak/test_holes.py``).

        :param waits_for_readers_only: other transactions hold nothing back, and count as committed, up to the highest
            one at the compaction's commit (``metastore.txn.use.minhistorywriteid``; seen on Hive 4.2.1,
            ``tests/integration/test_rivals_meanwhile.py``).
        """
        metastore = self._partition.metastore
        rows = [row for row in metastore.rows.values() if row.waits_to_be_cleaned and row.pool is None]
        rows = [row for row in rows if metastore.type(row.txn_id or 0) is TxnType.COMPACTION]
        row = min(rows, key=lambda row: (row.highest_write_id or 0, row.id), default=None)
        still_open = metastore.txns(State.OPEN)
        waited_for = self._readers() if waits_for_readers_only else still_open
        min_open = min(waited_for, default=metastore.txn_high_water_mark + 1)
        if row is None or row.next_txn_id is None or row.next_txn_id >= min_open:
            return None
        newest = row.next_txn_id if waits_for_readers_only else min_open - 1
        try:
            obsolete = contents(self._partition.folder, self._cleaners(newest, row.highest_write_id or 0)).obsolete
        except NotEnoughHistoryError:
            return f"request {row.id} waits for a newer one"
        for path in obsolete:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._partition.server.end_row(row.id, self._forgettable(row.highest_write_id or 0))
        return f"request {row.id}: deleted {', '.join(path.name for path in obsolete)}"

    def _cleaners(self, newest_txn: int, highest: int) -> Snapshot:
        """Write ids up to a compaction's, all of which had ended by then (``ValidCleanerWriteIdList``)."""
        metastore = self._partition.metastore
        return replace(
            metastore.reader_snapshot(),
            high_water_mark=highest,
            open_write_ids=frozenset(),
            invalid_transactions=frozenset(metastore.txns(State.ABORTED)),
            transaction_high_water_mark=newest_txn,
            whole_ranges_only=True,
        )

    def _forgettable(self, highest: int) -> int | None:
        """The compaction's high-water mark, where nothing that no compaction wrote may hold an aborted write id."""
        names = [path.name for path in self._partition.folder.iterdir() if "_v" not in path.name]
        kept = [name for name in names if name.startswith(("delta_", "delete_delta_"))]
        lowest = min((int(name.split("delta_")[1].split("_")[0]) for name in kept), default=highest + 1)
        return highest if lowest > highest else None

    def _write(self, running: _Running) -> list[str]:
        txn = running.txn
        inserts: list[Event] = [
            insert_event(row_id, self._filled(values))
            for row_id, values in running.contents.rows(of_deltas=running.type is CompactionType.MINOR)
        ]
        highest = running.contents.highest_write_id
        if running.type is CompactionType.MAJOR:
            name = f"base_{highest:07d}_v{txn:07d}"
            self._write_directory(name, inserts)
            (self._partition.folder / name / "_metadata_acid").write_bytes(_METADATA)
            return [name]
        first = running.contents.lowest_write_id
        deletes: list[Event] = [delete_event(row_id, by) for row_id, by in running.contents.deletes]
        outputs = {"delta": inserts, "delete_delta": deletes}
        names = {kind: f"{delta_name(kind, first, highest)}_v{txn:07d}" for kind, events in outputs.items() if events}
        for kind, name in names.items():
            self._write_directory(name, outputs[kind])
        return list(names.values())

    def _filled(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """With NULL for columns that were added later."""
        return (*values, *[None] * (len(self._partition.columns) - len(values)))

    def _write_directory(self, name: str, events: Collection[Event]) -> None:
        folder = self._partition.folder / name
        make_directory(folder)
        files: dict[int, list[Event]] = defaultdict(list)
        for event in events:
            files[bucket_of(event[1:4])].append(event)
        for bucket, some in files.items():
            (folder / f"bucket_{bucket:05d}").write_bytes(acid_file(some, self._partition.columns))


def _workers(seen: Snapshot, own_txn: int) -> Snapshot:
    """What a worker may merge: nothing from the lowest open write id on (``createValidCompactWriteIdList``)."""
    highest = min(seen.open_write_ids, default=seen.high_water_mark + 1) - 1
    return replace(
        seen,
        high_water_mark=min(highest, seen.high_water_mark),
        transaction_high_water_mark=own_txn - 1,
        whole_ranges_only=True,
    )


def _is_enough(found: Contents, type: CompactionType) -> bool:
    """Whether Hive's query compactor runs (``isEnoughToCompact``, and what a minor refuses).

    Of a single write id it would lose which of its statements came first.
    """
    if found.highest_write_id <= 0:
        return False
    deltas = found.deltas
    if type is CompactionType.MAJOR:
        return found.has_originals or len(found.directories) > 1
    kinds = {path.name.partition("_")[0] for path in deltas}
    is_pair = len(deltas) == 2 and len(kinds) == 2
    is_range = bool(deltas) and found.lowest_write_id < found.highest_write_id
    return len(deltas) > 1 and not is_pair and is_range and not found.has_originals and not found.has_raw_files
