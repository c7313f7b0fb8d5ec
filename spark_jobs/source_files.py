"""The input files of a merge: opened, checked against the plan, and read stripe by stripe."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyorc

from airflow_provider_acid.acid.plan import SourceFile, SyntheticIds
from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.acid_keys import DAMAGED, INSERT
from airflow_provider_acid.spark_jobs.file_copy import check_size
from airflow_provider_acid.spark_jobs.file_prefix import FilePrefix
from airflow_provider_acid.spark_jobs.orc_schema import (
    ACID_COLUMNS,
    Kind,
    OrcType,
    is_acid,
)
from airflow_provider_acid.spark_jobs.orc_tail import ColumnRange, OrcTail, read_tail, read_writer_time_zones

KEY_FIELDS = list(ACID_COLUMNS[:5])


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Turn what pyarrow and pyorc say about damaged data into an error that names the file.

    :raises CorruptFileError: in their place.
    """
    try:
        yield
    # pyorc raises a RuntimeError for what ORC's C++ reader throws.
    except (pa.ArrowException, OSError, pyorc.ParseError, RuntimeError, UnicodeDecodeError) as error:
        raise CorruptFileError(name, f"cannot be read exactly ({error})", DAMAGED) from error


class SourceReader:
    """An open file of rows with ids.

    :param name: its URI, as errors say it.
    :param ids: what its rows' ids are made of, where it has no ACID columns.
    :param first_row_id: row number of its first row, where it has no ACID columns.
    """

    def __init__(self, name: str, file: BinaryIO, ids: SyntheticIds | None = None, first_row_id: int = 0) -> None:
        self.name = name
        self.file = file
        self.tail: OrcTail = read_tail(file, name)
        self._ids = ids
        self.first_row_id = first_row_id
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

    def writer_time_zones(self) -> frozenset[str]:
        """See :func:`~airflow_provider_acid.spark_jobs.orc_tail.read_writer_time_zones`."""
        return read_writer_time_zones(self.file, self.tail, self.name)

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

    def read_stripe(self, stripe: int, fields: Sequence[str] | None = None) -> pa.RecordBatch:
        """A stripe as Arrow, with the columns of an ACID file.

        :param fields: :data:`KEY_FIELDS`, or None for all columns.
        :raises CorruptFileError: the stripe cannot be read, or has not the rows its footer says.
        """
        rows = self.tail.stripes[stripe].rows
        if self._ids is None:
            names = None if fields is None else self.tail.schema.names[: len(fields)]
            return pa.RecordBatch.from_arrays(self._read(stripe, names).columns, names=list(fields or ACID_COLUMNS))
        ids = _id_columns(self._ids, self._first_row_of(stripe), rows)
        if fields is not None:
            return pa.RecordBatch.from_arrays(ids, names=KEY_FIELDS)
        batch = self._read(stripe, None)
        row = pa.StructArray.from_arrays(batch.columns, names=batch.schema.names)
        return pa.RecordBatch.from_arrays([*ids, row], names=list(ACID_COLUMNS))

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

    def _read(self, stripe: int, names: Sequence[str] | None) -> pa.RecordBatch:
        with damage_named(self.name):
            # Names are taken from the file: their case is the writer's.
            batch = self._arrow.read_stripe(stripe, columns=None if names is None else list(names))
        expected = self.tail.stripes[stripe].rows
        if batch.num_rows != expected:
            raise CorruptFileError(
                self.name, f"has {batch.num_rows} rows in stripe {stripe}, its footer says {expected}", DAMAGED
            )
        return batch


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
        yield SourceReader(name, part, source.synthetic, first_row_id) if part else None


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
    :class:`~airflow_provider_acid.acid.plan.SyntheticIds`.
    """
    before, next_row_id = None, 0
    for source in sources:
        if source.synthetic != before:
            before, next_row_id = source.synthetic, 0
        with open_source(storage, source, next_row_id) as reader:
            yield source, reader
            next_row_id += reader.tail.rows if reader else 0
