"""What two compactions made of one range of write ids: whether one holds all that the other holds.

Nothing is held in memory but a row of each: a compaction writes one file for each bucket, in the order of its rows'
keys, so that the two files of a bucket are gone through side by side. Values are read exactly (:mod:`exact_rows`).
Whatever is not as compactions write it proves nothing, and is refused.
"""

from __future__ import annotations

import hashlib
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from airflow_provider_acid.acid.layout import DeltaDirectory
from airflow_provider_acid.acid.listing import FileEntry
from airflow_provider_acid.acid.names import parse_data_file_name
from airflow_provider_acid.exceptions import CorruptFileError, RefusedError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.source_files import SourceReader, damage_named, open_source
from airflow_provider_acid.merge.keys.acid_keys import DAMAGED, DELETE, INSERT, is_bucket_property, writer_of
from airflow_provider_acid.merge.orc.schema import TIMESTAMPS, Kind
from airflow_provider_acid.merge.rows.arrow_rows import UTC_NAMES
from airflow_provider_acid.merge.rows.exact_rows import exact_reader
from airflow_provider_acid.plan.plan import SourceFile
from airflow_provider_acid.plan.twins import Result, incomparable, names_of

_BLOCK_BYTES = 1 << 20
_FLOATING = (Kind.FLOAT, Kind.DOUBLE)
_DAYS = (Kind.DATE, *TIMESTAMPS)


@dataclass(frozen=True)
class Compared:
    """How many rows, or delete events, two directories hold; of insert-only tables files.

    :param common: that both hold, equal in every value.
    :param only_one: that only the first holds.
    :param only_other: that only the second holds.
    """

    common: int
    only_one: int
    only_other: int


@dataclass(frozen=True)
class _Event:
    """A row, or a delete of one.

    :param key: by which its file is sorted; no two of a directory have the same.
    :param write_id: of the transaction that wrote it.
    :param content: all of it in a form in which what is equal is the same.
    """

    key: tuple[int, ...]
    write_id: int
    content: object


def compare_rows(storage: Storage, one: Result, other: Result, counts: Callable[[int], bool]) -> Compared:
    """Read two results of one range of write ids, rows and deletes.

    What is missing altogether counts as what holds nothing.

    :param storage: of the partition.
    :param counts: whether a write id is committed.
    :raises RefusedError: each lacks something that the other has, a row differs, one of them has a row twice or one
        of a transaction that does not count, or a file cannot be read exactly or is not as compactions write it.
    :raises StorageError: a file cannot be read now.
    """
    comparison = _Comparison(storage, one, other, counts)
    for is_delete in (False, True):
        comparison.compare(is_delete=is_delete)
    return Compared(comparison.common, *comparison.alone)


def compare_files(storage: Storage, one: Result, other: Result) -> Compared:
    """Read two results of an insert-only table, whose rows have no ids: only equal files of one name prove anything.

    :raises RefusedError: each has a file that the other lacks, or two of one name are not equal in every byte.
    :raises StorageError: a file cannot be read now.
    """
    for delta in (*one.deltas, *other.deltas):
        if delta.subdirectories or delta.name.is_delete:
            raise incomparable(one, other, f"cannot be compared, for no compaction writes {delta.path} like this")
    files, others = ({file.name: file for delta in result.deltas for file in delta.files} for result in (one, other))
    common = set(files) & set(others)
    if len(common) < min(len(files), len(others)):
        raise incomparable(one, other, "each hold a file that the other lacks, and rows without ids")
    for name in sorted(common):
        if _digest(storage, files[name]) != _digest(storage, others[name]):
            raise incomparable(one, other, f"differ in {name}, and hold rows without ids")
    return Compared(len(common), len(files) - len(common), len(others) - len(common))


class _Comparison:
    """See :func:`compare_rows`.

    :ivar alone: how many only the first holds, and only the second.
    """

    def __init__(self, storage: Storage, one: Result, other: Result, counts: Callable[[int], bool]) -> None:
        self._storage = storage
        self._results = (one, other)
        self._counts = counts
        self.common = 0
        self.alone = [0, 0]

    def compare(self, *, is_delete: bool) -> None:
        """Read the deltas, or the delete deltas."""
        deltas = [result.of_kind(is_delete=is_delete) for result in self._results]
        files = [self._files_by_bucket(delta) for delta in deltas]
        for bucket in sorted({*files[0], *files[1]}):
            with ExitStack() as opened:
                readers = [
                    opened.enter_context(open_source(self._storage, found[bucket])) if bucket in found else None
                    for found in files
                ]
                zone = self._common_zone([reader for reader in readers if reader is not None])
                some, others = (
                    _events(reader, delta, bucket, zone) for reader, delta in zip(readers, deltas, strict=True)
                )
                for mine, theirs in _side_by_side(some, others):
                    self._add(mine, theirs)

    def _add(self, mine: _Event | None, theirs: _Event | None) -> None:
        if mine is None or theirs is None:
            self._add_alone(mine or theirs, 0 if mine else 1)
        elif mine.content != theirs.content:
            raise self._differ(f"differ in {_shown(mine)}")
        else:
            self.common += 1

    def _add_alone(self, event: _Event | None, place: int) -> None:
        """What only one side holds makes that one the whole one, unless the other holds something for itself, too."""
        assert event is not None
        self.alone[place] += 1
        if all(self.alone):
            raise self._differ(f"each hold what the other lacks, {self._results[place]} {_shown(event)}")
        if not self._counts(event.write_id):
            # Compactions drop such rows. The metastore may forget that they do not count.
            raise self._differ(f"differ in {_shown(event)}, whose write id {event.write_id} is not committed")

    def _files_by_bucket(self, delta: DeltaDirectory | None) -> dict[int, SourceFile]:
        found: dict[int, SourceFile] = {}
        for file in () if delta is None else delta.files:
            name = parse_data_file_name(file.name)
            if name is None or delta is None or file.path != f"{delta.path}/{file.name}":
                raise self._differ(f"cannot be compared, for no compaction writes {file.path}")
            if name.bucket in found:
                raise self._differ(f"cannot be compared, for {file.path} is not the only one of its bucket")
            found[name.bucket] = SourceFile(file.path, file.size_bytes)
        return found

    def _common_zone(self, readers: Sequence[SourceReader]) -> zoneinfo.ZoneInfo:
        """The zone in which the files count timestamps, where what they hold can be compared value by value."""
        if len({str(reader.tail.schema) for reader in readers}) > 1:
            raise self._differ("have columns of different names or types")
        calendars = {reader.tail.calendar for reader in readers}
        if len(calendars) > 1 and any(reader.has_values(_DAYS) for reader in readers):
            raise self._differ("count days by different calendars")
        counting = [reader for reader in readers if reader.has_values(TIMESTAMPS)]
        zones = {"UTC" if zone in UTC_NAMES else zone for reader in counting for zone in reader.writer_time_zones()}
        if len(zones) > 1 or "" in zones:
            raise self._differ(f"count timestamps in the zones {sorted(zones)}")
        with damage_named(names_of(self._results)):
            return zoneinfo.ZoneInfo(next(iter(zones), "UTC"))

    def _differ(self, reason: str) -> RefusedError:
        return incomparable(*self._results, reason)


def _events(
    reader: SourceReader | None, directory: DeltaDirectory | None, bucket: int, zone: zoneinfo.ZoneInfo
) -> Iterator[_Event]:
    """What a file holds, in its order, which is checked; nothing where there is none.

    :raises CorruptFileError: it cannot be read exactly, or holds what does not belong into it.
    """
    if reader is None or directory is None:
        return
    # NaN is not equal to itself, and 0.0 is to -0.0: their texts tell.
    form: Callable[[object], object] = repr if _holds_floating(reader) else _as_it_is
    rows, found, before = exact_reader(reader, zone), 0, None
    with damage_named(reader.name):
        for stripe in range(len(reader.tail.stripes)):
            reader.check_stripe(stripe)
            for event in rows.read_stripe(stripe):
                checked = _checked(reader.name, directory, bucket, event, form)
                if before is not None and before.key >= checked.key:
                    raise _damaged(reader.name, f"holds {_shown(checked)} twice, or out of its order")
                yield checked
                before, found = checked, found + 1
    if found != reader.tail.rows:
        raise _damaged(reader.name, f"has {found} rows, its footer says {reader.tail.rows}")


def _checked(
    name: str, directory: DeltaDirectory, bucket: int, event: tuple[Any, ...], form: Callable[[object], object]
) -> _Event:
    operation, original, bucket_property, row_id, current, row = event
    is_delete = directory.name.is_delete
    key = (original, bucket_property, row_id, *((-current,) if is_delete else ()))
    found = _Event(key, current, form((operation, current, row)))
    if operation != (DELETE if is_delete else INSERT) or (row is None) != is_delete:
        raise _damaged(name, f"holds operation {operation} as {_shown(found)}")
    # Deletes lie where their reader looks for them, which need not be the file of their row's bucket.
    if not is_bucket_property(bucket_property) or (not is_delete and writer_of(bucket_property) != bucket):
        raise _damaged(name, f"holds {_shown(found)}, which belongs to another bucket")
    if not directory.name.min_write_id <= current <= directory.name.max_write_id:
        raise _damaged(name, f"holds {_shown(found)} of write id {current}, which is not of its directory's")
    return found


def _side_by_side(some: Iterator[_Event], others: Iterator[_Event]) -> Iterator[tuple[_Event | None, _Event | None]]:
    """Two sorted sides as one: those of one key together, None where the other side has nothing of that key."""
    mine, theirs = next(some, None), next(others, None)
    while mine is not None or theirs is not None:
        if theirs is None or (mine is not None and mine.key < theirs.key):
            yield mine, None
            mine = next(some, None)
        elif mine is None or theirs.key < mine.key:
            yield None, theirs
            theirs = next(others, None)
        else:
            yield mine, theirs
            mine, theirs = next(some, None), next(others, None)


def _digest(storage: Storage, file: FileEntry) -> bytes:
    digest = hashlib.sha256()
    with damage_named(join(storage.location, file.path)), storage.open_input(file.path) as opened:
        while block := opened.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.digest()


def _holds_floating(reader: SourceReader) -> bool:
    return any(node.kind in _FLOATING for node in reader.tail.schema.walk())


def _as_it_is(value: object) -> object:
    return value


def _shown(event: _Event) -> str:
    original, bucket_property, row_id, *_ = event.key
    return f"row {row_id} of write id {original}, bucket property {bucket_property}"


def _damaged(name: str, reason: str) -> CorruptFileError:
    return CorruptFileError(name, reason, DAMAGED)
