"""The snapshot of one partition: a listing and the valid write ids in, base, deltas and leftovers out.

Rules: Hive's ``AcidUtils.getAcidState``, with these deliberate differences, each on the side of keeping data:

- a base whose own write id is the lowest open one is not used (Hive 4's ``<=`` would take an INSERT OVERWRITE that has
  not committed), and neither a compactor nor a cleaner uses a base above its high-water mark;
- bases are looked at in ascending order, so that the outcome does not depend on the order of the listing;
- without a transaction list (Hive 3), wholly aborted directories are reported as aborted to readers and cleaners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_provider_acid.acid.layout import BaseDirectory, DeltaDirectory, base_format_files, partition_layout
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.names import (
    is_flush_length,
    parse_data_file_name,
    parse_original_file_name,
)
from airflow_provider_acid.acid.write_ids import RangeResponse, ValidTxnList, ValidWriteIdList, WriteIdView
from airflow_provider_acid.exceptions import NotEnoughHistoryError, UnknownNameError

__all__ = ["AcidDirectory", "BaseDirectory", "DeltaDirectory", "acid_directory", "base_format_files"]


@dataclass(frozen=True)
class AcidDirectory:
    """One partition as one snapshot sees it. All paths are relative to the partition.

    :param base: the base to read; None where there is none.
    :param deltas: the current deltas and delete deltas, in Hive's order.
    :param originals: files from before the table became transactional, in the order that numbers their rows; only
        where there is no base.
    :param obsolete: directories and original files that the current ones replace.
    :param aborted: directories that hold nothing but the work of aborted transactions.
    :param aborted_write_ids: the write ids of those.
    :param partly_aborted: directories that mix aborted and other write ids.
    :param invisible: directories of compactions whose transaction is not committed in this snapshot, nor aborted.
    :param directories: every ACID directory of the partition, whatever its state, by path.
    """

    base: BaseDirectory | None = None
    deltas: tuple[DeltaDirectory, ...] = ()
    originals: tuple[FileEntry, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    aborted_write_ids: frozenset[int] = frozenset()
    partly_aborted: tuple[str, ...] = ()
    invisible: tuple[str, ...] = ()
    directories: tuple[BaseDirectory | DeltaDirectory, ...] = field(default=(), repr=False)

    @property
    def current(self) -> tuple[BaseDirectory | DeltaDirectory, ...]:
        """The base, if any, and the current deltas."""
        return (self.base, *self.deltas) if self.base else self.deltas

    @property
    def insert_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The current deltas that hold rows."""
        return tuple([delta for delta in self.deltas if not delta.name.is_delete])

    @property
    def delete_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The current deltas that hold delete events."""
        return tuple([delta for delta in self.deltas if delta.name.is_delete])

    @property
    def base_bytes(self) -> int:
        """Bytes of the base, or of the original files where there is none."""
        return self.base.size_bytes if self.base else sum(file.size_bytes for file in self.originals)

    @property
    def delta_bytes(self) -> int:
        """Bytes of all current deltas, of both kinds."""
        return sum([delta.size_bytes for delta in self.deltas])

    @property
    def raw_files(self) -> tuple[str, ...]:
        """Files without ACID columns inside current directories, as LOAD DATA leaves them; judged by name."""
        return self._current_files(lambda name: parse_original_file_name(name) is not None)

    @property
    def flush_length_files(self) -> tuple[str, ...]:
        """Side files of streaming writers inside current directories."""
        return self._current_files(is_flush_length)

    @property
    def unknown_files(self) -> tuple[str, ...]:
        """Files inside current directories whose names no rule explains."""
        return self._current_files(
            lambda name: not (parse_data_file_name(name) or parse_original_file_name(name) or is_flush_length(name))
        )

    @property
    def nested_directories(self) -> tuple[str, ...]:
        """Directories inside current directories (UNION ALL and list bucketing of insert-only tables make such)."""
        return tuple([name for directory in self.current for name in directory.subdirectories])

    def _current_files(self, chosen: Callable[[str], bool]) -> tuple[str, ...]:
        return tuple([file.path for directory in self.current for file in directory.files if chosen(file.name)])


def acid_directory(
    listing: Listing,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList | None,
    base_formats: Mapping[str, str] = {},  # noqa: B006 - never changed
    *,
    insert_only: bool = False,
) -> AcidDirectory:
    """What the snapshot sees of a partition, as ``AcidUtils.getAcidState`` does.

    :param listing: everything below the partition's (or unpartitioned table's) directory.
    :param txns: decides which compactions are visible; None on Hive 3, which has no such thing.
    :param base_formats: data format that each base's ``_metadata_acid`` file names, by directory name; needed for
        exactly the files that :func:`base_format_files` returns, since a listing does not show content.
    :param insert_only: whether rows have no ids, so that a compactor cannot drop the aborted ones of an aborted
        directory and must leave it out whole.
    :raises NotEnoughHistoryError: there is a compacted base, but none that this snapshot may use.
    :raises UnknownNameError: a directory or data format that no rule explains.
    :raises UnsupportedTableError: ACID directories inside a directory that is none, e.g. a partitioned table's root.
    :raises ConfigurationError: ``base_formats`` lacks a base.
    """
    layout = partition_layout(listing, base_formats)
    state = _State(write_ids, txns, insert_only)
    for base in sorted(layout.bases, key=lambda base: (base.write_id, base.compacted, base.name.visibility_txn_id)):
        state.see_base(base)
    for delta in layout.deltas:
        state.see_delta(delta)
    if state.base is not None:
        state.obsolete += [file.path for file in layout.original_files if "/" not in file.path]
        state.obsolete += layout.original_directories
    current = state.current_deltas()
    if state.base is None and state.oldest_base is not None and state.oldest_base.compacted:
        raise _not_enough_history(state.oldest_base, write_ids)
    return AcidDirectory(
        base=state.base,
        deltas=current,
        originals=() if state.base else layout.original_files,
        obsolete=tuple(sorted(state.obsolete)),
        aborted=tuple(sorted(state.aborted)),
        aborted_write_ids=frozenset(state.aborted_write_ids),
        partly_aborted=tuple(sorted(state.partly_aborted)),
        invisible=tuple(sorted(state.invisible)),
        directories=(*layout.bases, *layout.deltas),
    )


class _State:
    """What ``getAcidState`` carries along while it looks at one directory after the other."""

    def __init__(self, write_ids: ValidWriteIdList, txns: ValidTxnList | None, insert_only: bool) -> None:
        self.write_ids = write_ids
        self.txns = txns
        # Hive 3's compactor takes aborted deltas as inputs and drops their rows one by one, where rows have ids.
        self.reports_aborts = insert_only or txns is not None or write_ids.view is not WriteIdView.COMPACTOR
        self.base: BaseDirectory | None = None
        self.oldest_base: BaseDirectory | None = None
        self.working: list[DeltaDirectory] = []
        self.obsolete: list[str] = []
        self.aborted: list[str] = []
        self.aborted_write_ids: set[int] = set()
        self.partly_aborted: list[str] = []
        self.invisible: list[str] = []

    def see_base(self, base: BaseDirectory) -> None:
        """Bases come in ascending order, a compaction's after an overwrite's of the same write id."""
        if not self._is_visible(base):
            return
        if self.oldest_base is None:
            self.oldest_base = base
        if self.reports_aborts and not base.compacted and self.write_ids.is_write_id_aborted(base.write_id):
            self.aborted.append(base.path)
            self.aborted_write_ids.add(base.write_id)
        elif self._is_valid_base(base) and self._replaces(base):
            if self.base is not None:
                self.obsolete.append(self.base.path)
            self.base = base

    def see_delta(self, delta: DeltaDirectory) -> None:
        """Keep a delta as a candidate, or note that it is aborted or invisible."""
        if not self._is_visible(delta):
            return
        lowest, highest = delta.name.min_write_id, delta.name.max_write_id
        aborted = self.write_ids.is_range_aborted(lowest, highest)
        if self.reports_aborts and aborted is RangeResponse.ALL:
            self.aborted.append(delta.path)
            self.aborted_write_ids.update(range(lowest, highest + 1))
            return
        if aborted is not RangeResponse.NONE:
            self.partly_aborted.append(delta.path)
        if self.write_ids.is_range_valid(lowest, highest) is not RangeResponse.NONE:
            self.working.append(delta)

    def current_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The best of the candidates; those that a wider one covers become obsolete."""
        covered = self.base.write_id if self.base else 0
        statement = -1
        current: list[DeltaDirectory] = []
        for delta in sorted(self.working, key=_hive_order):
            name = delta.name
            if name.max_write_id > covered:
                if self.write_ids.is_range_valid(covered + 1, name.max_write_id) is not RangeResponse.NONE:
                    current.append(delta)
                    covered, statement = name.max_write_id, name.statement_id
            elif (name.max_write_id == covered and statement >= 0) or (current and _same_range(current[-1], delta)):
                current.append(delta)
            else:
                self.obsolete.append(delta.path)
        return tuple(current)

    def _is_visible(self, directory: BaseDirectory | DeltaDirectory) -> bool:
        txn_id = directory.name.visibility_txn_id
        if not txn_id:
            return True
        if self.txns is None:
            raise UnknownNameError(
                f"directory {directory.path}",
                "carries a visibility transaction, which no reader of Hive 3 understands",
                "connect to it as a Hive 4 metastore, or find out what wrote it and move it out of the table",
            )
        if self.txns.is_txn_valid(txn_id):
            return True
        (self.aborted if self.txns.is_txn_aborted(txn_id) else self.invisible).append(directory.path)
        return False

    def _is_valid_base(self, base: BaseDirectory) -> bool:
        write_ids, write_id = self.write_ids, base.write_id
        below_every_open = write_ids.min_open is not None and write_id < write_ids.min_open
        if self.txns is not None and write_ids.view is WriteIdView.READER and below_every_open:
            return True
        return write_ids.is_valid_base(write_id) if base.compacted else write_ids.is_write_id_valid(write_id)

    def _replaces(self, base: BaseDirectory) -> bool:
        if self.base is None or self.base.write_id < base.write_id or base.compacted:
            return True
        self.obsolete.append(base.path)
        return False


def _hive_order(delta: DeltaDirectory) -> tuple[int, int, int, str]:
    name = delta.name
    return name.min_write_id, -name.max_write_id, name.statement_id, delta.path


def _same_range(one: DeltaDirectory, other: DeltaDirectory) -> bool:
    return _hive_order(one)[:3] == _hive_order(other)[:3]


def _not_enough_history(oldest: BaseDirectory, write_ids: ValidWriteIdList) -> NotEnoughHistoryError:
    return NotEnoughHistoryError(
        f"base {oldest.path} of table {write_ids.full_table_name}",
        f"is newer than what this snapshot may see (high-water mark {write_ids.high_water_mark}, lowest open write id "
        f"{write_ids.min_open}), and no older base exists",
        "try again when the open transactions have ended",
    )
