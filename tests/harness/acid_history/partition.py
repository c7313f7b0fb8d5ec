"""The partition a history is about: its folder, its metastore, its truth, and the script of what happened."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path
from typing import cast

from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue
from tests.harness.acid_history.hive_files import bucket_property, raw_file
from tests.harness.acid_history.looks import Looks, WatchedStorages
from tests.harness.acid_history.metastore import LockKind, ModelMetastore, State
from tests.harness.acid_history.script import in_words
from tests.harness.acid_history.server import Hive3Queue, ModelClient, ModelServer, table_folder
from tests.harness.acid_history.steps import ORIGINAL_FILES, TableKind
from tests.harness.acid_history.truth import Truth, Values
from tests.harness.acid_reader import RowId

FIRST_WRITE_ID_AFTER_CONVERSION = 10_000_001
UNBUCKETED_WRITERS = 3
TXN_TIMEOUT_SECONDS = 300.0


class Partition:
    """What all parts of a history share.

    :param warehouse: exists and is empty; the partition, an unpartitioned table, gets its conventional place there.
    """

    def __init__(self, kind: TableKind, warehouse: Path) -> None:
        self.kind = kind
        self.folder = table_folder(warehouse)
        self.folder.mkdir(parents=True)
        self.columns = {"id": "int", "v": "string"}
        self.metastore = ModelMetastore(FIRST_WRITE_ID_AFTER_CONVERSION if any(kind.originals) else 1)
        self.looks = Looks()
        self.server = ModelServer(self.metastore, kind.hive_version, self._forget)
        self.client = ModelClient(self.server, self.looks, warehouse)
        self.queue = self._open_queue()
        self.settings = CompactionSettings(
            storages=WatchedStorages(looks=self.looks),
            cleaner_lock_timeout_action=(
                CleaningLockAction.DELETE if kind.cleans_beside_readers else CleaningLockAction.BY_VERSION
            ),
            cleaner_lock_wait_seconds=0,
            minor_lock_wait_seconds=0,
            transaction_timeout_seconds=TXN_TIMEOUT_SECONDS,
            readers_honour_visibility=False,
        )
        self.forgotten = 0
        """How many aborted write ids the metastore forgot."""
        self.truth = Truth()
        self.script: list[str] = [in_words(kind)]
        self.writers: list[int] = []
        """Open transactions of writers, whether they wrote already or not."""
        self.overwriter: int | None = None
        """The open transaction of an INSERT OVERWRITE, which locks everybody else out."""
        self.deleter: int | None = None
        """The open transaction that updates or deletes; Hive lets no two do that at a time."""
        self.wrote: set[int] = set()
        """Write ids that have directories here."""
        self.has_foreign_deletes = False
        self._ids = itertools.count(1)
        self._write_originals()

    @property
    def number_of_buckets(self) -> int:
        """How many bucket (writer) numbers there are."""
        return self.kind.buckets or UNBUCKETED_WRITERS

    def new_values(self) -> Values:
        """Values of a row that are like no other's."""
        number = next(self._ids)
        return (number, f"row {number}", *(number * 1000 + place for place in range(2, len(self.columns))))

    def rows_for(self, committed: Collection[int]) -> dict[RowId, dict[str, object]]:
        """What a snapshot must read, in the form of the independent reader."""
        return {
            row_id: {
                name: None if place >= len(values) else str(values[place]) for place, name in enumerate(self.columns)
            }
            for row_id, values in self.truth.rows(committed).items()
        }

    def lock(self, txn: int, kind: LockKind = LockKind.SHARED_WRITE) -> None:
        """Give a transaction a lock, unless it has one."""
        if all(lock.txn != txn for lock in self.metastore.locks):
            self.metastore.lock(txn, kind)

    def end(self, txn: int, state: State) -> None:
        """A writer's transaction ends."""
        self.metastore.end(txn, state)
        self.writers.remove(txn)
        if self.overwriter == txn:
            self.overwriter = None
        if self.deleter == txn:
            self.deleter = None

    def _open_queue(self) -> CompactionQueue:
        if self.kind.hive_version == 4:
            return ThriftCompactionQueue(self.client, HIVE_4)
        return cast("CompactionQueue", Hive3Queue(self.metastore, self.server))

    def _forget(self, highest_write_id: int) -> None:
        """The metastore drops what it knows of aborted transactions up to a write id."""
        known = set(self.metastore.txns(State.ABORTED))
        owners = [self.metastore.txn_of(write_id) for write_id in self.wrote if write_id <= highest_write_id]
        self.metastore.forget(known.intersection(owners))
        self.forgotten += len(known.intersection(owners))

    def _write_originals(self) -> None:
        numbers: dict[int, int] = {}
        files = dict(zip(ORIGINAL_FILES, self.kind.originals, strict=False))
        for name in sorted(files):
            bucket = int(name.rpartition("/")[2].partition("_")[0])
            rows = [self.new_values() for _ in range(files[name])]
            for values in rows:
                row_id = (0, bucket_property(bucket, 0), numbers.setdefault(bucket, 0))
                self.truth.insert(row_id, values)
                numbers[bucket] += 1
            if files[name]:
                file = self.folder / name
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(raw_file(rows, self.columns) if rows else b"")
