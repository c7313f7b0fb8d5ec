"""Every engine's reading of a partition, compared with the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.harness.acid_history.partition import Partition
from tests.harness.acid_reader import NotEnoughHistoryError, Snapshot, live_files, read_table


@dataclass(frozen=True)
class OpenSnapshot:
    """Somebody who reads.

    :param txn: its transaction; 0 for one that starts right now.
    :param is_hive: it is an engine that looks at compactions' transactions: Trino's queries have locks.
    :param committed: the write ids it must see, which is the truth behind the snapshot.
    :param files: what it opens when it lists the partition right away, as it reads them later.
    """

    txn: int
    snapshot: Snapshot
    committed: frozenset[int]
    files: tuple[Path, ...]
    is_hive: bool = False


class Readings:
    """Compares what is read with what is true."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._done: set[object] = set()
        self.compared = 0

    def now(self, txn: int = 0, *, is_hive: bool = False) -> OpenSnapshot:
        """A snapshot of this moment."""
        metastore = self._partition.metastore
        snapshot = metastore.reader_snapshot()
        files = tuple(live_files(self._partition.folder, snapshot)) if txn else ()
        return OpenSnapshot(txn, snapshot, metastore.committed_write_ids(), files, is_hive)

    def check(self, reader: OpenSnapshot, *, hive_only: bool = False) -> None:
        """All engines read the truth.

        :param hive_only: leave out the engines that do not check a compaction's transaction.
        :raises AssertionError: one of them does not.
        """
        gone = [str(file.relative_to(self._partition.folder)) for file in reader.files if not file.exists()]
        assert not gone, f"the query of transaction {reader.txn} still reads {gone}"
        expected = self._partition.rows_for(reader.committed)
        files = self._files()
        for engine, snapshot in self._engines(reader.snapshot, hive_only or reader.is_hive):
            look = (engine, snapshot, files, len(self._partition.columns))
            if look in self._done:
                continue
            self._done.add(look)
            self.compared += 1
            try:
                rows = read_table(self._partition.folder, self._partition.columns, snapshot)
            except NotEnoughHistoryError:
                # An error, not wrong rows: as with Hive's own compactor, for a reader whose snapshot is older than the
                # only base, where nothing hides that base from it.
                assert reader.txn, f"{engine}: not enough history for a query of this moment"
                assert not self._hides_later_compactions(snapshot), f"{engine}: not enough history"
                continue
            found = {row.row_id: dict(row.values) for row in rows}
            who = f"{engine}, {'a query of transaction ' + str(reader.txn) if reader.txn else 'a query of this moment'}"
            missing = sorted(expected.keys() - found.keys())
            alien = sorted(found.keys() - expected.keys())
            assert (missing, alien) == ([], []), f"{who}: rows {missing} are missing, rows {alien} should not be there"
            wrong = {row_id: found[row_id] for row_id in found if found[row_id] != expected[row_id]}
            assert not wrong, f"{who}: wrong values {wrong}"

    def _files(self) -> frozenset[tuple[str, int, int]]:
        """Tells whether anything has changed since the last look."""
        found = ((entry, entry.stat()) for entry in self._partition.folder.rglob("*"))
        return frozenset((str(path), stat.st_ino, stat.st_mtime_ns) for path, stat in found)

    def _hides_later_compactions(self, snapshot: Snapshot) -> bool:
        return self._partition.kind.hive_version == 4 and snapshot.check_visibility

    def _engines(self, snapshot: Snapshot, hive_only: bool) -> Iterator[tuple[str, Snapshot]]:
        by_bucket = not self._partition.has_foreign_deletes
        if self._partition.kind.hive_version == 4:
            yield "Hive 4", replace(snapshot, deletes_of_own_bucket_only=True, deletes_of_later_statements_only=True)
        else:
            yield "Hive 3", replace(snapshot, deletes_of_own_bucket_only=self._partition.kind.buckets > 0)
        if not hive_only:
            # Hive 3's deletes in foreign bucket files are lost on Trino before any compaction.
            yield "Trino", replace(snapshot, check_visibility=False, deletes_of_own_bucket_only=by_bucket)
