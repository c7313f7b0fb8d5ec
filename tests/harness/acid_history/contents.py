"""What a snapshot sees of a partition, for who compacts or cleans it by Hive's rules; on the second reader's code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.harness.acid_reader import (
    Deletes,
    Directory,
    RowId,
    Snapshot,
    acid_directories,
    acid_rows,
    data_files,
    inserted,
    is_usable_base,
    live_parts,
    original_files,
    raw_files,
)


@dataclass(frozen=True)
class Contents:
    """What a snapshot sees of a partition, for who compacts or cleans it.

    :param directories: base, deltas and delete deltas that are read.
    :param obsolete: what is not read any more, or belongs to what was aborted; also files from before the table was
        transactional.
    :param lowest_write_id: of the deltas; 0 where there is none.
    :param highest_write_id: up to which a compaction of these directories may be named: nothing else of the range is
        to be read.
    """

    directories: tuple[Path, ...]
    deltas: tuple[Path, ...]
    obsolete: tuple[Path, ...]
    lowest_write_id: int
    highest_write_id: int
    has_originals: bool
    has_raw_files: bool
    found: tuple[tuple[RowId, tuple[object, ...], bool, bool], ...]
    """Each row's id, its values, whether it lies in a delta, and whether it is deleted."""
    deletes: frozenset[tuple[RowId, int]]
    """Which row, by which write id."""

    def rows(self, *, of_deltas: bool) -> list[tuple[RowId, tuple[object, ...]]]:
        """Rows and their values, those of deltas as they were inserted, or those of all that are not deleted."""
        return [
            (row_id, values)
            for row_id, values, is_in_delta, is_deleted in self.found
            if (is_in_delta if of_deltas else not is_deleted)
        ]


def contents(folder: Path, snapshot: Snapshot) -> Contents:
    """Look at a partition and read it."""
    live = live_parts(folder, snapshot)
    base = next((directory for directory in live if directory.kind == "base"), None)
    deltas = [directory for directory in live if directory.kind != "base"]
    delete_deltas = [directory for directory in deltas if directory.kind == "delete_delta"]
    deletes = Deletes(delete_deltas, replace(snapshot, deletes_of_later_statements_only=True))
    files = [file for directory in delete_deltas for file in data_files(directory.path)]
    events = ((row_id, by) for file in files for row_id, by, _ in acid_rows(file))
    originals = original_files(folder)
    return Contents(
        directories=tuple(directory.path for directory in live),
        deltas=tuple(directory.path for directory in deltas),
        obsolete=tuple(_obsolete(folder, live, snapshot)) + (tuple(originals) if base else ()),
        lowest_write_id=min((directory.first for directory in deltas), default=0),
        highest_write_id=_covered(folder, live, snapshot.high_water_mark),
        has_originals=bool(originals) and base is None,
        has_raw_files=any(raw_files(directory.path) for directory in deltas),
        found=tuple(
            (found.row_id, found.fields, found.directory is not None and found.directory in deltas, deletes.hit(found))
            for found in inserted(folder, live, snapshot)
        ),
        deletes=frozenset(event for event in events if snapshot.sees(event[1])),
    )


def _covered(folder: Path, live: list[Directory], high_water_mark: int) -> int:
    """The high-water mark, where no open stream has a delta that begins below it."""
    deltas = (directory for directory in acid_directories(folder) if directory.kind != "base")
    if any(delta.first <= high_water_mark < delta.last for delta in deltas):
        return max((directory.last for directory in live), default=0)
    return high_water_mark


def _obsolete(folder: Path, live: list[Directory], snapshot: Snapshot) -> Iterator[Path]:
    """Hive's rules: what an aborted compaction or nothing but aborted write ids wrote, and what others replaced."""
    base = max((directory.last for directory in live if directory.kind == "base"), default=None)
    for directory in acid_directories(folder):
        if directory in live:
            continue
        is_own = directory.transaction <= (snapshot.transaction_high_water_mark or 0)
        write_ids = range(directory.last if directory.kind == "base" else directory.first, directory.last + 1)
        is_aborted = all(write_id in snapshot.aborted_write_ids for write_id in write_ids)
        if not snapshot.sees_transaction(directory.transaction):
            is_obsolete = is_own
        elif directory.kind == "base":
            usable = is_usable_base(directory, snapshot)
            is_obsolete = is_aborted or (base is not None and directory.last <= base and usable)
        else:
            is_obsolete = snapshot.sees_delta(directory.first, directory.last) or is_aborted
        if is_obsolete:
            yield directory.path
