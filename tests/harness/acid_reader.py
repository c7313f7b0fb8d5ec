"""A second, slow and simple reader of Hive ACID ORC tables, to judge what the compactor made of them.

It shares no code with ``airflow_provider_acid``: own directory parsing, own snapshot rules, rows one by one through
pyorc. Rows in a base are not filtered by write id, as the compactor must not have let a wrong one in.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyorc

from tests.harness.hive_text import CONVERTERS, hive_text

RowId = tuple[int, int, int]
"""Write id, bucket property, row number: Hive's ROW__ID."""

BASE_OF_ORIGINALS = -(2**63)
_CACHED_BYTES = 65_536
_ACID_PREFIXES = ("base_", "delta_", "delete_delta_")
_ORIGINAL_FILE = re.compile(r"(\d+)_\d+(_copy_\d+)?")
_BUCKET_FILE = re.compile(r"bucket_(\d+)(_\d+)?")


class NotEnoughHistoryError(Exception):
    """The oldest base is a compaction's and holds more than the snapshot may see: Hive's ACID_NOT_ENOUGH_HISTORY."""


@dataclass(frozen=True)
class Snapshot:
    """Which write ids and transactions a reader trusts.

    :param high_water_mark: larger write ids are not seen.
    :param open_write_ids: write ids not committed yet.
    :param aborted_write_ids: write ids never to be seen.
    :param invalid_transactions: open and aborted transactions, for names that end in ``_v`` and a transaction id.
    :param transaction_high_water_mark: later transactions are not seen; None where there is no such limit.
    :param check_visibility: False reads as Trino does, which ignores those endings.
    :param deletes_of_own_bucket_only: look for a row's deletes only in files of its own file's bucket number, as Hive 4
        and Trino do; Hive 3 looks into all delete files of an unbucketed table.
    :param whole_ranges_only: leave out deltas that reach above the high-water mark, as worker and Cleaner do.
    :param deletes_of_later_statements_only: where a delete delta ends with the write id a delta begins with, let it
        delete rows of smaller statement ids only, as Hive 4 does (``isQualifiedDeleteDeltaForSplit``).
    """

    high_water_mark: int
    open_write_ids: Collection[int] = frozenset()
    aborted_write_ids: Collection[int] = frozenset()
    invalid_transactions: Collection[int] = frozenset()
    transaction_high_water_mark: int | None = None
    check_visibility: bool = True
    deletes_of_own_bucket_only: bool = False
    deletes_of_later_statements_only: bool = False
    whole_ranges_only: bool = False

    def sees(self, write_id: int) -> bool:
        """Whether rows of a write id count."""
        return (
            write_id <= self.high_water_mark
            and write_id not in self.open_write_ids
            and write_id not in self.aborted_write_ids
        )

    def sees_any(self, first: int, last: int) -> bool:
        """Whether rows of any write id in a range count."""
        return any(self.sees(write_id) for write_id in range(first, last + 1))

    def sees_delta(self, first: int, last: int) -> bool:
        """Whether a delta of that range counts."""
        return self.sees_any(first, last) and not (self.whole_ranges_only and last > self.high_water_mark)

    def sees_transaction(self, transaction: int) -> bool:
        """Whether a directory of a compaction in this transaction (0: none) is there."""
        if not self.check_visibility or transaction == 0:
            return True
        known = self.transaction_high_water_mark is None or transaction <= self.transaction_high_water_mark
        return known and transaction not in self.invalid_transactions

    def everything_is_decided_up_to(self, write_id: int) -> bool:
        """Whether a compacted base of that name is older than every open write id."""
        return write_id <= self.high_water_mark and all(write_id < open_id for open_id in self.open_write_ids)


@dataclass(frozen=True)
class Row:
    """One row: its id, its file relative to the table's folder, its values as Hive prints them."""

    row_id: RowId
    file: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Directory:
    """A base, delta or delete delta by its name; -1: no statement, 0: no compaction's transaction."""

    path: Path
    kind: str
    first: int
    last: int
    statement: int
    transaction: int


@dataclass(frozen=True)
class _Found:
    """A row and the directory whose name decides which delete deltas count for it; None: an original file."""

    row_id: RowId
    file: Path
    directory: Directory | None
    fields: tuple[object, ...]


def read_table(
    location: Path, columns: Mapping[str, str], snapshot: Snapshot, *, partition_keys: Collection[str] = ()
) -> list[Row]:
    """All rows of a full-ACID ORC table, by file and row id.

    :param location: the table's folder.
    :param columns: name to Hive type, without partition keys.
    :param partition_keys: as many folder levels lie above the data.
    :raises AssertionError: two rows of a partition have the same id, or a name is not understood.
    :raises NotEnoughHistoryError: the only bases there are hold more than the snapshot may see.
    """
    rows: list[Row] = []
    for folder in sorted(location.glob("/".join(["*"] * len(partition_keys))) if partition_keys else [location]):
        found = list(_read_partition(folder, location, columns, snapshot))
        assert len({row.row_id for row in found}) == len(found), f"{folder}: a row id occurs twice"
        rows += found
    return sorted(rows, key=lambda row: (row.file, row.row_id))


def as_hive_prints(row: Row) -> dict[str, object]:
    """A row in the form of the fixtures' ``rows/*.json``."""
    write_id, bucket, number = row.row_id
    return {"row__id": {"writeid": write_id, "bucketid": bucket, "rowid": number}, "file": row.file, **row.values}


def live_directories(folder: Path, snapshot: Snapshot) -> list[Path]:
    """The base, deltas and delete deltas of a partition that a reader opens, by name."""
    return sorted(directory.path for directory in live_parts(folder, snapshot))


def live_files(folder: Path, snapshot: Snapshot) -> list[Path]:
    """The data files of a partition that a reader opens, by path."""
    live = live_parts(folder, snapshot)
    has_base = any(directory.kind == "base" for directory in live)
    files = [] if has_base else original_files(folder)
    for directory in live:
        files += data_files(directory.path) + raw_files(directory.path)
    return sorted(files)


def _read_partition(folder: Path, location: Path, columns: Mapping[str, str], snapshot: Snapshot) -> Iterator[Row]:
    live = live_parts(folder, snapshot)
    deletes = Deletes((directory for directory in live if directory.kind == "delete_delta"), snapshot)
    in_path = _partition_values(folder, location)
    for found in inserted(folder, live, snapshot):
        if not deletes.hit(found):
            values = dict(_values(found.fields, columns))
            yield Row(found.row_id, str(found.file.relative_to(location)), {**values, **in_path})


class Deletes:
    """The delete events a snapshot sees."""

    def __init__(self, delete_deltas: Iterable[Directory], snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._events: dict[RowId, list[tuple[Directory, int]]] = defaultdict(list)
        for directory in delete_deltas:
            for file in data_files(directory.path):
                for row_id, current_write_id, fields in acid_rows(file):
                    assert fields is None, f"{file}: a row among the delete events"
                    if snapshot.sees(current_write_id):
                        self._events[row_id].append((directory, _bucket_of(file)))

    def hit(self, found: _Found) -> bool:
        """Whether a row is deleted."""
        return any(self._counts(directory, bucket, found) for directory, bucket in self._events.get(found.row_id, ()))

    def _counts(self, delete_delta: Directory, bucket: int, found: _Found) -> bool:
        if self._snapshot.deletes_of_own_bucket_only and bucket != _bucket_of(found.file):
            return False
        delta = found.directory
        if self._snapshot.deletes_of_later_statements_only and delta is not None and delta.kind == "delta":
            if delete_delta.last == delta.first:
                return max(delete_delta.statement, 0) > max(delta.statement, 0)
            return delete_delta.last > delta.first
        return True


def inserted(folder: Path, live: list[Directory], snapshot: Snapshot) -> Iterator[_Found]:
    """All rows of the directories that a snapshot reads, deleted or not."""
    if not any(directory.kind == "base" for directory in live):
        for file, row_id, fields in _original_rows(original_files(folder), 0, 0):
            yield _Found(row_id, file, None, fields)
    for directory in live:
        if directory.kind == "delete_delta":
            continue
        for file, row_id, fields in _original_rows(raw_files(directory.path), directory.last, directory.statement):
            if snapshot.sees(row_id[0]):
                yield _Found(row_id, file, directory, fields)
        for file in data_files(directory.path):
            for row_id, _, row_fields in acid_rows(file):
                if directory.kind == "base" or snapshot.sees(row_id[0]):
                    assert row_fields is not None, f"{file}: a delete event among the rows"
                    yield _Found(row_id, file, directory, row_fields)


def live_parts(folder: Path, snapshot: Snapshot) -> list[Directory]:
    """The newest base a reader may use, and the deltas above it that no wider delta replaces."""
    seen = [directory for directory in acid_directories(folder) if snapshot.sees_transaction(directory.transaction)]
    bases = [directory for directory in seen if directory.kind == "base" and is_usable_base(directory, snapshot)]
    base = max(bases, key=lambda directory: (directory.last, directory.transaction), default=None)
    if base is None:
        oldest = min((one for one in seen if one.kind == "base"), key=lambda one: one.last, default=None)
        if oldest is not None and _is_compacted(oldest):
            raise NotEnoughHistoryError(f"{oldest.path}, for {snapshot}")
    floor = base.last if base is not None else 0
    deltas = [
        directory
        for directory in seen
        if directory.kind != "base" and snapshot.sees_delta(max(directory.first, floor + 1), directory.last)
    ]
    return ([base] if base is not None else []) + [
        delta for delta in deltas if not any(_replaces(other, delta) for other in deltas)
    ]


def _replaces(wide: Directory, narrow: Directory) -> bool:
    """Of either kind: a compacted insert delta also stands for the delete deltas of its range."""
    if (wide.first, wide.last) == (narrow.first, narrow.last):
        return wide.statement < 0 <= narrow.statement
    return wide.first <= narrow.first and narrow.last <= wide.last


def is_usable_base(base: Directory, snapshot: Snapshot) -> bool:
    """Whether a reader may begin with a base."""
    if base.last == BASE_OF_ORIGINALS:
        return True
    return snapshot.everything_is_decided_up_to(base.last) if _is_compacted(base) else snapshot.sees(base.last)


def _is_compacted(base: Directory) -> bool:
    return base.transaction > 0 or (base.path / "_metadata_acid").exists()


def acid_directories(folder: Path) -> Iterator[Directory]:
    """What lies right in a partition under ACID names."""
    pattern = re.compile(r"(base|delta|delete_delta)_(-?\d+)(?:_(\d+))?(?:_(\d+))?(?:_v(\d+))?")
    for child in sorted(folder.iterdir()):
        if not child.name.startswith(_ACID_PREFIXES):
            continue
        parts = pattern.fullmatch(child.name)
        assert parts is not None, f"{child}: not a name Hive gives"
        kind, first, last, statement, transaction = parts.groups()
        yield Directory(
            path=child,
            kind=kind,
            first=int(first) if kind != "base" else 0,
            last=int(first) if kind == "base" else int(last),
            statement=int(statement) if statement is not None else -1,
            transaction=int(transaction or 0),
        )


def data_files(directory: Path) -> list[Path]:
    """Files with ACID columns."""
    return sorted(child for child in directory.iterdir() if _BUCKET_FILE.fullmatch(child.name))


def raw_files(directory: Path) -> list[Path]:
    """Files of LOAD DATA in a delta or a base."""
    return [child for child in directory.iterdir() if _ORIGINAL_FILE.fullmatch(child.name)]


def original_files(folder: Path) -> list[Path]:
    """Files from before the table became transactional: beside the ACID directories, also in other directories."""
    found: list[Path] = []
    for child in folder.iterdir():
        if child.name.startswith(("_", ".", *_ACID_PREFIXES)):
            continue
        if child.is_dir():
            found += original_files(child)
        else:
            assert _ORIGINAL_FILE.fullmatch(child.name), f"{child}: not a name Hive gives"
            found.append(child)
    return found


def _bucket_of(file: Path) -> int:
    name = _BUCKET_FILE.fullmatch(file.name) or _ORIGINAL_FILE.fullmatch(file.name)
    assert name is not None, f"{file}: not a name Hive gives"
    return int(name[1])


def acid_rows(file: Path) -> Iterator[tuple[RowId, int, tuple[object, ...] | None]]:
    """Each row's id, current write id and values; of a delete event None."""
    for _, write_id, bucket, number, current_write_id, fields in _orc_rows(file):
        yield (write_id, bucket, number), current_write_id, None if fields is None else tuple(fields.values())


def _original_rows(
    files: Iterable[Path], write_id: int, statement: int
) -> Iterator[tuple[Path, RowId, tuple[object, ...]]]:
    """Rows of files without ACID columns: numbered through all files of a bucket, in order of their paths' text."""
    next_number: dict[int, int] = defaultdict(int)
    for file in sorted(files, key=str):
        bucket = _bucket_of(file)
        bucket_property = 1 << 29 | bucket << 16 | max(statement, 0)
        for fields in _orc_rows(file):
            yield file, (write_id, bucket_property, next_number[bucket]), fields
            next_number[bucket] += 1


def _orc_rows(file: Path) -> Iterable[tuple[Any, ...]]:
    """Top-level columns of every row; nested structs are dicts. A file of 0 bytes has none."""
    content = file.read_bytes()
    side_file = file.with_name(f"{file.name}_flush_length")
    if side_file.exists():
        content = content[: int.from_bytes(side_file.read_bytes()[-8:], "big")]
    # Small files are read again and again, by one snapshot after the other.
    return _parsed_once(content) if len(content) < _CACHED_BYTES else _parsed(content)


@lru_cache(maxsize=1024)
def _parsed_once(content: bytes) -> tuple[tuple[Any, ...], ...]:
    return tuple(_parsed(content))


def _parsed(content: bytes) -> Iterator[tuple[Any, ...]]:
    if not content:
        return
    for row in pyorc.Reader(io.BytesIO(content), struct_repr=pyorc.StructRepr.DICT, converters=CONVERTERS):
        yield tuple(row.values())


def _values(fields: tuple[object, ...], columns: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """By position, as Hive maps them; columns that were added after the file was written are NULL."""
    for place, (name, kind) in enumerate(columns.items()):
        value = fields[place] if place < len(fields) else None
        yield (f"{name}_hex" if kind == "binary" else name), hive_text(value, kind)


def _partition_values(folder: Path, location: Path) -> dict[str, object]:
    levels = (level.split("=", 1) for level in folder.relative_to(location).parts)
    return {name: unquote(value) for name, value in levels}
