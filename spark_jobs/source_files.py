"""The input files of a merge: opened, checked against the plan, and read stripe by stripe."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.orc as orc
import pyorc

from airflow_provider_acid.acid.plan import SourceFile
from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.orc_schema import (
    ACID_COLUMNS,
    Kind,
    OrcType,
    can_become,
    is_acid,
)
from airflow_provider_acid.spark_jobs.orc_tail import ColumnRange, OrcTail, read_tail, read_writer_time_zones

KEY_FIELDS = list(ACID_COLUMNS[:5])

ROW_FIELD = ACID_COLUMNS[5]

_DAMAGED = "restore the file from a backup, or ask whoever wrote it; nothing was changed"


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Turn what pyarrow and pyorc say about damaged data into an error that names the file.

    :raises CorruptFileError: in their place.
    """
    try:
        yield
    # pyorc raises a RuntimeError for what ORC's C++ reader throws.
    except (pa.ArrowException, OSError, pyorc.ParseError, RuntimeError, UnicodeDecodeError) as error:
        raise CorruptFileError(name, f"cannot be read exactly ({error})", _DAMAGED) from error


class SourceReader:
    """An open ACID file.

    :param name: its URI, as errors say it.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.file = file
        self.tail: OrcTail = read_tail(file, name)
        if not is_acid(self.tail.schema):
            raise UnsupportedTableError(
                name,
                "has not the six columns of an ACID file (original files and LOAD DATA come in a later release)",
                "compact this partition with Hive",
            )
        with damage_named(name):
            self._arrow = orc.ORCFile(pa.PythonFile(cast(io.IOBase, file), mode="r"))

    @property
    def row_type(self) -> OrcType:
        """The type of the table's columns, as they were when the file was written."""
        return self.tail.schema.children[5]

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
        """A stripe as Arrow; all columns, or these of the root.

        :raises CorruptFileError: the stripe cannot be read, or has not the rows its footer says.
        """
        with damage_named(self.name):
            # Names are taken from the file: their case is the writer's.
            names = self.tail.schema.names
            wanted = None if fields is None else [names[ACID_COLUMNS.index(field)] for field in fields]
            batch = self._arrow.read_stripe(stripe, columns=wanted)
        expected = self.tail.stripes[stripe].rows
        if batch.num_rows != expected:
            raise CorruptFileError(
                self.name, f"has {batch.num_rows} rows in stripe {stripe}, its footer says {expected}", _DAMAGED
            )
        return pa.RecordBatch.from_arrays(batch.columns, names=list(fields or ACID_COLUMNS))


@contextmanager
def open_source(storage: Storage, source: SourceFile) -> Iterator[SourceReader | None]:
    """Open a source; None for a file of 0 bytes, which holds no rows.

    :raises CorruptFileError: it is damaged, or is not the file that was planned.
    :raises UnsupportedTableError: it is no ACID file.
    """
    name = join(storage.location, source.path)
    if source.synthetic is not None or source.committed_bytes is not None:
        raise UnsupportedTableError(name, "is of a kind that is not merged yet", "use Hive's own compactor")
    with storage.open_input(source.path) as file:
        size = file.seek(0, 2)
        if size != source.size_bytes:
            raise CorruptFileError(
                name,
                f"has {size} bytes, it had {source.size_bytes} when the compaction was planned",
                "find out what changes files of a transactional table; then compact again",
            )
        yield SourceReader(name, file) if size else None


def check_types(name: str, row_type: OrcType, target: OrcType) -> None:
    """Check that a file's columns can be brought to the table's, by position.

    :raises UnsupportedTableError: a column cannot, or the file has more columns than the table.
    """
    if len(row_type.children) > len(target.children):
        raise UnsupportedTableError(
            name,
            f"has {len(row_type.children)} columns, the table has {len(target.children)}",
            "compact this partition with Hive",
        )
    for column, was, becomes in zip(target.names, row_type.children, target.children, strict=False):
        if not can_become(was, becomes):
            raise UnsupportedTableError(
                name,
                f"has column {column} as {was}, the table has {becomes}, and this release cannot convert that exactly",
                "compact this partition with Hive",
            )


def delete_events(storage: Storage, sources: Sequence[SourceFile]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """File name and ACID columns of every stripe of the delete files."""
    for source in sources:
        with open_source(storage, source) as reader:
            if reader is not None:
                for stripe in range(len(reader.tail.stripes)):
                    yield reader.name, reader.read_stripe(stripe, KEY_FIELDS)
