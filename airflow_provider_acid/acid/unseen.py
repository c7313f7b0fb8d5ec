"""Directories that this snapshot does not read, but that some reader reads, now or later.

Trino takes no notice of a compaction's transaction: it reads what a compaction left that is not committed or was
aborted, with Hive's rules for ranges. An output of ours must neither double such a directory nor be doubled by it.
"""

from __future__ import annotations

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.names import BaseName, DeltaName

Deltas = tuple[DeltaDirectory, ...]


def deltas_above(directory: AcidDirectory) -> Deltas:
    """Deltas that reach above the snapshot's high-water mark, so that they are left out whole."""
    if len(directory.directories) == len(directory.current):
        return ()
    known = {*(part.path for part in directory.current), *directory.obsolete, *directory.aborted, *directory.invisible}
    return tuple(delta for delta in _deltas(directory) if delta.path not in known)


def uncommitted_deltas(directory: AcidDirectory) -> Deltas:
    """Deltas of compactions whose transaction is not committed."""
    return tuple(delta for delta in _deltas(directory) if _is_uncommitted(directory, delta))


def uncommitted_bases(directory: AcidDirectory) -> tuple[BaseDirectory, ...]:
    """Bases of compactions whose transaction is not committed."""
    bases = (part for part in directory.directories if isinstance(part, BaseDirectory))
    return tuple(base for base in bases if _is_uncommitted(directory, base))


def is_cut_by(base: BaseName, first: int, last: int) -> bool:
    """Whether a base ends inside a compacted delta's range, which is then read whole above it."""
    return first <= base.write_id < last


def is_doubled_beside(delta: DeltaName, first: int, last: int) -> bool:
    """Whether a delta is read beside a compacted one of this range, which holds the same rows.

    Of two ranges of which one holds the other, the wider is read; of two equal ones, or of two that overlap, both.
    """
    low, high = delta.min_write_id, delta.max_write_id
    overlaps = low <= last and first <= high
    return overlaps and ((low, high) == (first, last) or not (first <= low and high <= last))


def covering_write_id(directory: AcidDirectory, highest: int) -> int:
    """The write id of a base that holds all rows up to ``highest``, such that no uncommitted delta is read beside it.

    A compaction names its output after the high-water mark of its time, so nothing but aborted write ids, or those of
    other partitions, lies between the highest write id of the rows and that of the name.
    """
    for delta in sorted(uncommitted_deltas(directory), key=lambda delta: delta.name.min_write_id):
        if delta.name.min_write_id <= highest:
            highest = max(highest, delta.name.max_write_id)
    return highest


def _is_uncommitted(directory: AcidDirectory, part: BaseDirectory | DeltaDirectory) -> bool:
    is_unread = part.path in directory.aborted or part.path in directory.invisible
    return bool(part.name.visibility_txn_id) and is_unread


def _deltas(directory: AcidDirectory) -> Deltas:
    return tuple(part for part in directory.directories if isinstance(part, DeltaDirectory))
