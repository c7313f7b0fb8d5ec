"""The input files of a merge: opened, checked against the plan, and read stripe by stripe."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from airflow_provider_acid.acid.names import BaseName, DeltaName, parse_directory_name
from airflow_provider_acid.exceptions import AcidError, CorruptFileError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.file_copy import check_size
from airflow_provider_acid.merge.keys.acid_keys import DAMAGED, INSERT
from airflow_provider_acid.merge.keys.one_write import OneWrite, one_write_of
from airflow_provider_acid.merge.orc.number_runs import number_ranges
from airflow_provider_acid.merge.orc.schema import (
    ACID_COLUMNS,
    Kind,
    OrcType,
    is_acid,
)
from airflow_provider_acid.merge.orc.sections import Sections
from airflow_provider_acid.merge.orc.stripe_batches import decoded_bytes, number_bytes, rows_of_a_batch, stripe_batches
from airflow_provider_acid.merge.orc.stripe_footers import stripe_footer, zone_of
from airflow_provider_acid.merge.orc.tail import (
    ColumnRange,
    OrcTail,
    read_tail,
    read_tail_section,
)
from airflow_provider_acid.plan.plan import SourceFile, SyntheticIds

_REASON_CHARACTERS = 1000

KEY_FIELDS = list(ACID_COLUMNS[:5])

_ROW_ID = 3
"""``rowId`` among :data:`ACID_COLUMNS`."""

_KEY_COLUMNS = range(1, 6)
"""Ids of those columns in a file; 0 is the root's."""

WRITE_ID_COLUMN = 4
"""``currentTransaction`` among :data:`ACID_COLUMNS`."""


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Turn what pyarrow and pyorc say about damaged data into an error that names the file.

    :raises CorruptFileError: in their place.
    """
    try:
        yield
    except AcidError:
        raise
    # They raise errors of a dozen classes: pyorc a RuntimeError for what ORC's C++ reader throws, Arrow a MemoryError.
    except Exception as error:
        reason = str(error)[:_REASON_CHARACTERS] or type(error).__name__
        raise CorruptFileError(name, f"cannot be read exactly ({reason})", DAMAGED) from error


class SourceReader:
    """An open file of rows with ids.

    :param name: its URI, as errors say it.
    :param open_again: opens the file that ``file`` is, or is the beginning of, to read it in another thread.
    :param ids: what its rows' ids are made of, where it has no ACID columns.
    :param first_row_id: row number of its first row, where it has no ACID columns.
    :param write_ids: lowest and highest that its events may have, by its directory's name; None where none says so.
    """

    def __init__(
        self,
        name: str,
        file: BinaryIO,
        open_again: Callable[[], BinaryIO],
        ids: SyntheticIds | None = None,
        first_row_id: int = 0,
        write_ids: tuple[int, int] | None = None,
    ) -> None:
        self.name = name
        self.file = file
        self._open_again = open_again
        self.tail: OrcTail = read_tail(file, name)
        self._ids = ids
        self._zones: dict[int, str] = {}
        self.first_row_id = first_row_id
        self._write_ids = write_ids
        _check_columns(name, self.tail.schema, ids)
        with damage_named(name):
            self._arrow = orc.ORCFile(pa.PythonFile(cast(io.IOBase, file), mode="r"))

    @property
    def has_ids(self) -> bool:
        """Whether the file has ACID columns."""
        return self._ids is None

    @property
    def row_type(self) -> OrcType:
        """The type of the table's columns, as they were when the file was written."""
        return self.tail.schema if self._ids else self.tail.schema.children[5]

    def values_by_column(self) -> tuple[int, ...] | None:
        """Values that are not NULL, by statistics, of each of the table's columns; None where there are none."""
        nodes = sum(1 for _ in self.tail.schema.walk())
        if len(self.tail.statistics) != nodes:
            return None
        counts, column = [], nodes - sum(1 for _ in self.row_type.walk()) + 1
        for child in self.row_type.children:
            counts.append(self.tail.statistics[column].values)
            column += sum(1 for _ in child.walk())
        return tuple(counts)

    def values_in_stripe(self, stripe: int, column: int) -> int | None:
        """Values that are not NULL in a column of a stripe, by statistics; None where those do not say it.

        :param column: its id in the file.
        """
        stripes = self._sections.metadata.stripeStats
        columns = stripes[stripe].colStats if stripe < len(stripes) else ()
        if len(columns) != self.tail.columns or not columns[column].HasField("numberOfValues"):
            return None
        return int(columns[column].numberOfValues)

    def writer_time_zones(self) -> frozenset[str]:
        """The time zones in which the file's stripes count their timestamps; ``''`` where a stripe names none.

        :raises CorruptFileError: a stripe's footer cannot be read.
        """
        return frozenset(map(self.check_stripe, range(len(self.tail.stripes))))

    def check_stripe(self, stripe: int) -> str:
        """Check a stripe's footer, before any library reads it; the stripe's time zone.

        :raises CorruptFileError: it is damaged, or says what cannot be true.
        """
        if stripe not in self._zones:
            self._zones[stripe] = zone_of(self._footer(stripe))
        return self._zones[stripe]

    def _footer(self, stripe: int) -> Any:
        return stripe_footer(self.file, self.tail, self.tail.stripes[stripe], self.name)

    def one_write(self, stripe: int) -> OneWrite | None:
        """What the keys of all rows of a stripe have in common, where their runs say it and no row needs decoding.

        :raises CorruptFileError: the stripe's footer is damaged, or its write id does not belong into its directory.
        """
        place = self.tail.stripes[stripe]
        found = None
        if self._ids is None:
            found = number_ranges(self.file, self.tail, place, self._footer(stripe), _KEY_COLUMNS)
        if found is None or not found[_ROW_ID].ascends:
            return None
        heads = [numbers.only for column, numbers in enumerate(found) if column != _ROW_ID]
        write = one_write_of(heads, found[_ROW_ID].first, found[_ROW_ID].last)
        if write is not None:
            self._check_write_ids(write.write_id, write.write_id)
        return write

    def ranges(self, kinds: Sequence[Kind]) -> Iterator[ColumnRange]:
        """The statistics of every column of these kinds that holds a value."""
        nodes = list(self.tail.schema.walk())
        for column, node in enumerate(nodes):
            if node.kind in kinds:
                known = column < len(self.tail.statistics)
                found = self.tail.statistics[column] if known else ColumnRange(self.tail.rows, None, None)
                if found.values:
                    yield found

    def has_values(self, kinds: Sequence[Kind]) -> bool:
        """Whether any column of these kinds holds a value."""
        return any(True for _ in self.ranges(kinds))

    def read_batches(self, stripe: int, fields: Sequence[str] | None = None) -> Generator[pa.RecordBatch]:
        """A stripe's rows as Arrow in their order, with the columns of an ACID file; in one batch or several.

        :param fields: :data:`KEY_FIELDS`, or None for all columns.
        :raises CorruptFileError: the stripe cannot be read, has not the rows its footer says, or has events of write
            ids that do not belong into its directory: such an event would be judged by another transaction's fate.
        """
        if self._ids is None:
            for batch in self._read(stripe, None if fields is None else len(fields)):
                if batch.num_rows:
                    limits: Any = pc.min_max(batch.column(WRITE_ID_COLUMN)).as_py()
                    self._check_write_ids(limits["min"], limits["max"])
                yield pa.RecordBatch.from_arrays(batch.columns, names=list(fields or ACID_COLUMNS))
            return
        first = self._first_row_of(stripe)
        if fields is not None:
            rows = self.tail.stripes[stripe].rows
            batch_rows = rows_of_a_batch(rows, number_bytes(rows, len(fields)))
            for start in range(0, rows, batch_rows):
                ids = _id_columns(self._ids, first + start, min(rows - start, batch_rows))
                yield pa.RecordBatch.from_arrays(ids, names=KEY_FIELDS)
            return
        for batch in self._read(stripe, None):
            row = pa.StructArray.from_arrays(batch.columns, names=list(self.tail.schema.names))
            ids = _id_columns(self._ids, first, batch.num_rows)
            yield pa.RecordBatch.from_arrays([*ids, row], names=list(ACID_COLUMNS))
            first += batch.num_rows

    def _check_write_ids(self, first: int | None, last: int | None) -> None:
        # NULL, which has no limits, is refused with the keys.
        if self._write_ids is None or first is None or last is None:
            return
        lowest, highest = self._write_ids
        if not lowest <= first <= last <= highest:
            raise CorruptFileError(
                self.name,
                f"has events of the write ids {first} to {last}, its directory's name says {lowest} to {highest}",
                DAMAGED,
            )

    def events(self, stripe: int, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Rows of a stripe as pyorc reads them, in the form of an ACID file's."""
        ids = self._ids
        if ids is None:
            yield from rows
            return
        for row_id, row in enumerate(rows, self._first_row_of(stripe)):
            yield INSERT, ids.write_id, ids.bucket_property, row_id, ids.write_id, row

    def _first_row_of(self, stripe: int) -> int:
        return self.first_row_id + sum(before.rows for before in self.tail.stripes[:stripe])

    @cached_property
    def _sections(self) -> Sections:
        return Sections.of(read_tail_section(self.file, self.file.seek(0, io.SEEK_END)))

    def _read(self, stripe: int, numbers: int | None) -> Generator[pa.RecordBatch]:
        """The first columns, if those are numbers, or all."""
        self.check_stripe(stripe)
        expected, found = self.tail.stripes[stripe].rows, 0
        size = decoded_bytes(self._sections, stripe) if numbers is None else number_bytes(expected, numbers)
        batch_rows = rows_of_a_batch(expected, size)
        names = self.tail.schema.names[:numbers]
        if batch_rows < expected:
            batches = self._parts(stripe, len(names), batch_rows)
        else:
            batches = self._whole(stripe, None if numbers is None else names)
        with closing(batches):
            while (batch := self._next(batches)) is not None:
                found += batch.num_rows
                yield batch
        if found != expected:
            raise CorruptFileError(
                self.name, f"has {found} rows in stripe {stripe}, its footer says {expected}", DAMAGED
            )

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        with damage_named(self.name):
            return next(batches, None)

    def _whole(self, stripe: int, names: Sequence[str] | None) -> Generator[pa.RecordBatch]:
        # Names are taken from the file: their case is the writer's.
        yield self._arrow.read_stripe(stripe, columns=None if names is None else list(names))

    def _parts(self, stripe: int, columns: int, batch_rows: int) -> Generator[pa.RecordBatch]:
        with (
            self._open_again() as file,
            closing(stripe_batches(file, self._sections, stripe, columns, batch_rows)) as read,
        ):
            yield from read


def _check_columns(name: str, schema: OrcType, ids: SyntheticIds | None) -> None:
    if ids is None and not is_acid(schema):
        raise UnsupportedTableError(
            name,
            "is named like an ACID file, but has not the six columns of one",
            "find out what wrote it; compact this partition with Hive if Hive can read it",
        )
    if ids is not None and is_acid(schema):
        raise UnsupportedTableError(
            name,
            "has the six columns of an ACID file where only files without them belong",
            "find out what wrote it: Hive would take the row ids in it for columns of the table",
        )


def _id_columns(ids: SyntheticIds, first_row_id: int, rows: int) -> list[pa.Array[Any]]:
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows)
    row_ids = pc.cumulative_sum(ones, start=pa.scalar(first_row_id - 1, pa.int64()))
    write_ids = pa.repeat(pa.scalar(ids.write_id, pa.int64()), rows)
    bucket_properties = pa.repeat(pa.scalar(ids.bucket_property, pa.int32()), rows)
    return [pa.repeat(pa.scalar(INSERT, pa.int32()), rows), write_ids, bucket_properties, row_ids, write_ids]


@contextmanager
def open_source(storage: Storage, source: SourceFile, first_row_id: int = 0) -> Iterator[SourceReader | None]:
    """Open a source; None for a file that holds no rows, because it has no bytes or none that are committed.

    :param first_row_id: row number of its first row, where it has no ACID columns.
    :raises CorruptFileError: it is damaged, or is not the file that was planned.
    :raises UnsupportedTableError: it has ACID columns where it should not, or has none where it should.
    """
    name = join(storage.location, source.path)
    with storage.open_input(source.path) as file:
        size = file.seek(0, 2)
        check_size(name, size, source.size_bytes)
        part = _committed(name, file, size, source.committed_bytes)
        again = partial(storage.open_input, source.path)
        write_ids = _write_ids(source.path)
        yield SourceReader(name, part, again, source.synthetic, first_row_id, write_ids) if part else None


def _write_ids(path: str) -> tuple[int, int] | None:
    """Lowest and highest write id of the directory that a file lies in; a base may hold rows of converted files (0)."""
    directory = parse_directory_name(path.partition("/")[0])
    match directory:
        case BaseName():
            return 0, max(directory.write_id, 0)
        case DeltaName():
            return directory.min_write_id, directory.max_write_id
    return None


def _committed(name: str, file: BinaryIO, size: int, committed_bytes: int | None) -> BinaryIO | None:
    """The part of a file that belongs to the table; None where that is nothing."""
    if committed_bytes is None:
        return file if size else None
    if not 0 <= committed_bytes <= size:
        raise CorruptFileError(
            name,
            f"has {size} bytes, its side file {name}_flush_length says that {committed_bytes} of them are committed",
            "restore the file from a backup, or ask whoever streamed into it; nothing was changed",
        )
    return cast(BinaryIO, FilePrefix(file, committed_bytes)) if committed_bytes else None


def open_in_order(storage: Storage, sources: Sequence[SourceFile]) -> Generator[tuple[SourceFile, SourceReader | None]]:
    """Open one source after the other; each is closed when the next is asked for.

    Rows without ids are numbered through files that follow each other with the same
    :class:`~airflow_provider_acid.plan.plan.SyntheticIds`.
    """
    before, next_row_id = None, 0
    for source in sources:
        if source.synthetic != before:
            before, next_row_id = source.synthetic, 0
        with open_source(storage, source, next_row_id) as reader:
            yield source, reader
            next_row_id += reader.tail.rows if reader else 0


class FilePrefix(io.RawIOBase):
    """A reader of the first ``length_bytes`` of a seekable file."""

    def __init__(self, file: BinaryIO, length_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._length_bytes = length_bytes
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move within the prefix."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length_bytes}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, fewer only at the end of the prefix or the file."""
        left = max(self._length_bytes - self._position, 0)
        self._file.seek(self._position)
        data = self._file.read(left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
