"""The snapshot of one partition: a listing and the valid write ids in, base, deltas and leftovers out.

Rules: Hive's ``AcidUtils.getAcidState``, with these deliberate differences, each on the side of keeping data:

- a base whose own write id is the lowest open one is not used (Hive 4's ``<=`` would take an INSERT OVERWRITE that has
  not committed), and neither a compactor nor a cleaner uses a base above its high-water mark;
- bases are looked at in ascending order, so that the outcome does not depend on the order of the listing;
- without a transaction list (Hive 3), wholly aborted directories are reported as aborted to readers and cleaners.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.names import (
    COMPACTED,
    DATA_FORMATS,
    METADATA_FILE,
    MINIMUM_WRITE_ID,
    BaseName,
    DeltaName,
    has_hidden_part,
    is_flush_length,
    is_hidden,
    parse_data_file_name,
    parse_directory_name,
    parse_original_file_name,
)
from airflow_provider_acid.acid.write_ids import RangeResponse, ValidTxnList, ValidWriteIdList, WriteIdView
from airflow_provider_acid.exceptions import ConfigurationError, RefusedError, UnknownNameError, UnsupportedTableError


@dataclass(frozen=True)
class BaseDirectory:
    """A ``base_…`` directory.

    :param path: the directory's name as it is on storage (it may be padded differently from ``str(name)``).
    :param files: its files that are not hidden, at any depth, relative to the partition.
    :param subdirectories: directories below it that are not hidden, relative to the partition.
    :param compacted: whether a compaction wrote it; else INSERT OVERWRITE, TRUNCATE or DROP PARTITION did.
    """

    name: BaseName
    path: str
    files: tuple[FileEntry, ...]
    subdirectories: tuple[str, ...]
    compacted: bool

    @property
    def write_id(self) -> int:
        """The write id up to which it holds the partition's state."""
        return self.name.write_id

    @property
    def size_bytes(self) -> int:
        """Bytes of the files directly in it."""
        return _bytes_directly_in(self)


@dataclass(frozen=True)
class DeltaDirectory:
    """A ``delta_…`` or ``delete_delta_…`` directory; parameters as in :class:`BaseDirectory`."""

    name: DeltaName
    path: str
    files: tuple[FileEntry, ...]
    subdirectories: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the files directly in it."""
        return _bytes_directly_in(self)


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
    :param uncompacted_aborts: a directory mixes aborted and other write ids; the aborted ones must stay known.
    :param invisible: directories of compactions whose transaction is not committed in this snapshot, nor aborted.
    :param directories: every ACID directory of the partition, whatever its state, by path.
    """

    base: BaseDirectory | None = None
    deltas: tuple[DeltaDirectory, ...] = ()
    originals: tuple[FileEntry, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    aborted_write_ids: frozenset[int] = frozenset()
    uncompacted_aborts: bool = False
    invisible: tuple[str, ...] = ()
    directories: tuple[BaseDirectory | DeltaDirectory, ...] = field(default=(), repr=False)

    @property
    def current(self) -> tuple[BaseDirectory | DeltaDirectory, ...]:
        """The base, if any, and the current deltas."""
        return (*([self.base] if self.base else []), *self.deltas)

    @property
    def insert_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The current deltas that hold rows."""
        return tuple(delta for delta in self.deltas if not delta.name.is_delete)

    @property
    def delete_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The current deltas that hold delete events."""
        return tuple(delta for delta in self.deltas if delta.name.is_delete)

    @property
    def base_bytes(self) -> int:
        """Bytes of the base, or of the original files where there is none."""
        return self.base.size_bytes if self.base else sum(file.size_bytes for file in self.originals)

    @property
    def delta_bytes(self) -> int:
        """Bytes of all current deltas, of both kinds."""
        return sum(delta.size_bytes for delta in self.deltas)

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
            lambda name: not (is_flush_length(name) or parse_data_file_name(name) or parse_original_file_name(name))
        )

    @property
    def nested_directories(self) -> tuple[str, ...]:
        """Directories inside current directories (UNION ALL and list bucketing of insert-only tables make such)."""
        return tuple(name for directory in self.current for name in directory.subdirectories)

    def _current_files(self, chosen: Callable[[str], bool]) -> tuple[str, ...]:
        return tuple(
            file.path for directory in self.current for file in directory.files if chosen(file.path.rpartition("/")[2])
        )


def base_format_files(listing: Listing) -> tuple[str, ...]:
    """The ``_metadata_acid`` files a caller must read before it calls :func:`acid_directory`.

    :return: paths relative to the partition; the directory part of each is the key of ``base_formats``.
    """
    return tuple(
        file.path
        for file in listing.files
        if file.path.startswith("base_") and file.path.endswith("/" + METADATA_FILE) and file.path.count("/") == 1
    )


def acid_directory(
    listing: Listing,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList | None,
    base_formats: Mapping[str, str] = {},  # noqa: B006 - never changed
) -> AcidDirectory:
    """What the snapshot sees of a partition, as ``AcidUtils.getAcidState`` does.

    :param listing: everything below the partition's (or unpartitioned table's) directory.
    :param txns: decides which compactions are visible; None on Hive 3, which has no such thing.
    :param base_formats: data format that each base's ``_metadata_acid`` file names, by directory name; needed for
        exactly the files that :func:`base_format_files` returns, since a listing does not show content.
    :raises RefusedError: there is a compacted base, but none that this snapshot may use.
    :raises UnknownNameError: a directory or data format that no rule explains.
    :raises UnsupportedTableError: ACID directories inside a directory that is none, e.g. a partitioned table's root.
    :raises ConfigurationError: ``base_formats`` lacks a base.
    """
    _check_formats_read(listing, base_formats)
    children = _children(listing)
    bases, deltas, others = _sort_children(children, base_formats)
    _refuse_nested_tables(others, listing)
    state = _State(write_ids, txns)
    for base in sorted(bases, key=lambda base: (base.write_id, base.compacted, base.name.visibility_txn_id)):
        state.see_base(base)
    for delta in deltas:
        state.see_delta(delta)
    originals = _originals(listing, others)
    if state.base is not None:
        state.obsolete += [file.path for file in originals if "/" not in file.path]
        state.obsolete += others
        originals = ()
    current = state.current_deltas()
    if state.base is None and state.oldest_base is not None and state.oldest_base.compacted:
        raise _not_enough_history(state.oldest_base, write_ids)
    return AcidDirectory(
        base=state.base,
        deltas=current,
        originals=originals,
        obsolete=tuple(sorted(state.obsolete)),
        aborted=tuple(sorted(state.aborted)),
        aborted_write_ids=frozenset(state.aborted_write_ids),
        uncompacted_aborts=state.uncompacted_aborts,
        invisible=tuple(sorted(state.invisible)),
        directories=tuple(sorted((*bases, *deltas), key=lambda directory: directory.path)),
    )


class _State:
    """What ``getAcidState`` carries along while it looks at one directory after the other."""

    def __init__(self, write_ids: ValidWriteIdList, txns: ValidTxnList | None) -> None:
        self.write_ids = write_ids
        self.txns = txns
        self.base: BaseDirectory | None = None
        self.oldest_base: BaseDirectory | None = None
        self.working: list[DeltaDirectory] = []
        self.obsolete: list[str] = []
        self.aborted: list[str] = []
        self.aborted_write_ids: set[int] = set()
        self.uncompacted_aborts = False
        self.invisible: list[str] = []

    def see_base(self, base: BaseDirectory) -> None:
        """Bases come in ascending order, a compaction's after an overwrite's of the same write id."""
        if not self._is_visible(base):
            return
        if self.oldest_base is None:
            self.oldest_base = base
        if self._reports_aborts and not base.compacted and self.write_ids.is_write_id_aborted(base.write_id):
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
        span = delta.name.min_write_id, delta.name.max_write_id
        aborted = self.write_ids.is_range_aborted(*span)
        if self._reports_aborts and aborted is RangeResponse.ALL:
            self.aborted.append(delta.path)
            self.aborted_write_ids.update(range(span[0], span[1] + 1))
            return
        self.uncompacted_aborts |= aborted is not RangeResponse.NONE
        if self.write_ids.is_range_valid(*span) is not RangeResponse.NONE:
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

    @property
    def _reports_aborts(self) -> bool:
        # Hive 3's compactor takes aborted deltas as inputs and drops their rows one by one.
        return self.txns is not None or self.write_ids.view is not WriteIdView.COMPACTOR

    def _is_visible(self, directory: BaseDirectory | DeltaDirectory) -> bool:
        txn_id = directory.name.visibility_txn_id
        if self.txns is None:
            if txn_id:
                raise UnknownNameError(
                    f"directory {directory.path}",
                    "carries a visibility transaction, which no reader of Hive 3 understands",
                    "connect to it as a Hive 4 metastore, or find out what wrote it and move it out of the table",
                )
            return True
        if self.txns.is_txn_valid(txn_id):
            return True
        (self.aborted if self.txns.is_txn_aborted(txn_id) else self.invisible).append(directory.path)
        return False

    def _is_valid_base(self, base: BaseDirectory) -> bool:
        write_ids, write_id = self.write_ids, base.write_id
        if write_id == MINIMUM_WRITE_ID:
            return True
        below_every_open = write_ids.min_open is not None and write_id < write_ids.min_open
        if self.txns is not None and write_ids.view is WriteIdView.READER and below_every_open:
            return True
        return write_ids.is_valid_base(write_id) if base.compacted else write_ids.is_write_id_valid(write_id)

    def _replaces(self, base: BaseDirectory) -> bool:
        if self.base is None or self.base.write_id < base.write_id or base.compacted:
            return True
        self.obsolete.append(base.path)
        return False


def _children(listing: Listing) -> dict[str, Listing]:
    """What is visible in each directory right below the partition; empty directories included."""
    files: dict[str, list[FileEntry]] = defaultdict(list)
    directories: dict[str, list[str]] = defaultdict(list)
    for name in listing.directories:
        if not has_hidden_part(name):
            top, _, rest = name.partition("/")
            directories[top] += [name] if rest else []
    for file in listing.files:
        top, slash, rest = file.path.partition("/")
        if slash and not is_hidden(top):
            directories.setdefault(top, [])
            files[top] += [] if has_hidden_part(rest) else [file]
            directories[top] += [] if has_hidden_part(rest) else _parents(file.path)
    return {top: Listing(tuple(sorted(files[top])), tuple(sorted(set(nested)))) for top, nested in directories.items()}


def _parents(path: str) -> list[str]:
    """Directories between the top one and the file; an object store does not list them by themselves."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(2, len(parts))]


def _sort_children(
    children: Mapping[str, Listing], base_formats: Mapping[str, str]
) -> tuple[list[BaseDirectory], list[DeltaDirectory], list[str]]:
    bases: list[BaseDirectory] = []
    deltas: list[DeltaDirectory] = []
    others: list[str] = []
    for path, content in children.items():
        name = parse_directory_name(path)
        if isinstance(name, BaseName):
            compacted = name.visibility_txn_id > 0 or _data_format(path, base_formats) == COMPACTED
            bases.append(BaseDirectory(name, path, content.files, content.directories, compacted))
        elif isinstance(name, DeltaName):
            deltas.append(DeltaDirectory(name, path, content.files, content.directories))
        else:
            others.append(path)
    return bases, deltas, others


def _check_formats_read(listing: Listing, base_formats: Mapping[str, str]) -> None:
    for path in base_format_files(listing):
        if path.partition("/")[0] not in base_formats:
            raise ConfigurationError(
                f"base_formats lacks {path}",
                "which decides whether the base is a compaction's",
                "read every file that base_format_files names and pass its data format",
            )


def _data_format(path: str, base_formats: Mapping[str, str]) -> str | None:
    data_format = base_formats.get(path)
    if data_format is not None and data_format not in DATA_FORMATS:
        raise UnknownNameError(
            f"{path}/{METADATA_FILE}", f"names the data format {data_format!r}", "find out what wrote the base"
        )
    return data_format


def _refuse_nested_tables(others: Iterable[str], listing: Listing) -> None:
    tops = set(others)
    names = [*listing.directories, *(file.path.rpartition("/")[0] for file in listing.files)]
    for name in names:
        top, _, rest = name.partition("/")
        if top in tops and any(part.startswith(("base_", "delta_", "delete_delta_")) for part in rest.split("/")):
            raise UnsupportedTableError(
                f"directory {name}",
                f"is an ACID directory inside {top}, which is none",
                "name a partition of a partitioned table; otherwise move the directory out of the table",
            )


def _originals(listing: Listing, others: Iterable[str]) -> tuple[FileEntry, ...]:
    tops = set(others)
    found = (
        file
        for file in listing.files
        if not has_hidden_part(file.path) and ("/" not in file.path or file.path.partition("/")[0] in tops)
    )
    return tuple(sorted(found, key=lambda file: file.path))


def _hive_order(delta: DeltaDirectory) -> tuple[int, int, int, str]:
    name = delta.name
    return name.min_write_id, -name.max_write_id, name.statement_id, delta.path


def _same_range(one: DeltaDirectory, other: DeltaDirectory) -> bool:
    return _hive_order(one)[:3] == _hive_order(other)[:3]


def _not_enough_history(oldest: BaseDirectory, write_ids: ValidWriteIdList) -> RefusedError:
    return RefusedError(
        f"base {oldest.path} of table {write_ids.full_table_name}",
        f"is newer than what this snapshot may see (high-water mark {write_ids.high_water_mark}, lowest open write id "
        f"{write_ids.min_open}), and no older base exists",
        "try again when the open transactions have ended",
    )


def _bytes_directly_in(directory: BaseDirectory | DeltaDirectory) -> int:
    return sum(file.size_bytes for file in directory.files if file.path.count("/") == 1)
