"""The five columns before every row of an ACID file, as Arrow arrays: what they may hold, and their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError

INSERT, UPDATE, DELETE = 0, 1, 2

DAMAGED = "restore the file from a backup, or ask whoever wrote it; nothing was changed"

_STATEMENT_BITS = 12
_STATEMENT_MASK = (1 << _STATEMENT_BITS) - 1
_WRITER_SHIFT = 16
_WRITER_MASK = 0xFFF
_RESERVED_MASK = 0x1000F000
_VERSION_SHIFT = 29
# Write id and statement share 63 bits.
MAX_WRITE_ID = 1 << (62 - _STATEMENT_BITS)
"""No write id is as high."""

Key = tuple[int, int, int]
"""originalTransaction, bucket, rowId."""


@dataclass(frozen=True)
class KeyRange:
    """Keys that ascend: the first and the last of them."""

    first: Key
    last: Key


@dataclass(frozen=True)
class Visibility:
    """Which write ids' events count.

    :param high_water_mark: events with a higher write id are dropped.
    :param aborted: events with one of these write ids are dropped.
    """

    high_water_mark: int
    aborted: pa.Array[Any]

    @classmethod
    def of(cls, high_water_mark: int, aborted_write_ids: Iterable[int]) -> Visibility:
        """Prepare the set of aborted write ids."""
        return cls(high_water_mark, pa.array(list(aborted_write_ids), pa.int64()))

    def valid(self, write_ids: pa.Array[Any]) -> pa.Array[Any]:
        """A mask of the events that count."""
        below = pc.less_equal(write_ids, pa.scalar(self.high_water_mark, pa.int64()))
        return pc.and_(below, pc.invert(pc.is_in(write_ids, value_set=self.aborted)))

    def counts(self, write_id: int) -> bool:
        """Whether events of this write id count."""
        valid: bool = self.valid(pa.array([write_id], pa.int64()))[0].as_py()
        return valid


def key_at(batch: pa.RecordBatch, row: int) -> Key:
    """The key of one row."""
    owid, bucket, row_id = (batch.column(name)[row].as_py() for name in ("originalTransaction", "bucket", "rowId"))
    return owid, bucket, row_id


def key_range(batch: pa.RecordBatch) -> KeyRange:
    """The first and the last key of rows in their order; one row at least."""
    return KeyRange(key_at(batch, 0), key_at(batch, batch.num_rows - 1))


def key_range_with(before: KeyRange | None, batch: pa.RecordBatch) -> KeyRange | None:
    """That of some rows and those before them; None of no rows."""
    if batch.num_rows == 0:
        return before
    keys = key_range(batch)
    return KeyRange(before.first, keys.last) if before else keys


def pairs_of(batch: pa.RecordBatch) -> pa.Array[Any]:
    """Write id and statement id as one number; among rows of one writer it orders as (write id, bucket property)."""
    statements = pc.bit_wise_and(pc.cast(batch.column("bucket"), pa.int64()), pa.scalar(_STATEMENT_MASK, pa.int64()))
    shifted = pc.shift_left(batch.column("originalTransaction"), pa.scalar(_STATEMENT_BITS, pa.int64()))
    return pc.bit_wise_or(shifted, statements)


def pair_of(key: Key) -> int:
    """What :func:`pairs_of` makes of a key."""
    write_id, bucket_property, _ = key
    return write_id << _STATEMENT_BITS | bucket_property & _STATEMENT_MASK


def bucket_properties(pairs: pa.Array[Any], writer: int) -> pa.Array[Any]:
    """What :func:`pairs_of` made the statement from, for rows of one writer."""
    statements = pc.cast(pc.bit_wise_and(pairs, pa.scalar(_STATEMENT_MASK, pa.int64())), pa.int32())
    return pc.bit_wise_or(statements, pa.scalar(1 << _VERSION_SHIFT | writer << _WRITER_SHIFT, pa.int32()))


def write_ids_of(pairs: pa.Array[Any]) -> pa.Array[Any]:
    """The write ids that :func:`pairs_of` was given."""
    return pc.shift_right(pairs, pa.scalar(_STATEMENT_BITS, pa.int64()))


def writer_of(bucket_property: int) -> int:
    """The writer id, which is the bucket number."""
    return bucket_property >> _WRITER_SHIFT & _WRITER_MASK


def is_bucket_property(value: int) -> bool:
    """Whether a number has the form of Hive 3's bucket properties."""
    return value >> _VERSION_SHIFT == 1 and not value & _RESERVED_MASK


def writers_of(properties: pa.Array[Any]) -> pa.Array[Any]:
    """The writer id, which is the bucket number, of every bucket property."""
    shifted = pc.shift_right(properties, pa.scalar(_WRITER_SHIFT, pa.int32()))
    return pc.bit_wise_and(shifted, pa.scalar(_WRITER_MASK, pa.int32()))


def check_operation(name: str, batch: pa.RecordBatch, expected: int) -> None:
    """Check what the events are.

    :param name: the file, for errors.
    :raises CorruptFileError: an event has another operation.
    :raises UnsupportedTableError: an event of ACID version 1.
    """
    for operation in pc.unique(batch.column("operation")).to_pylist():
        if operation == UPDATE:
            raise UnsupportedTableError(
                name, "holds update events of ACID version 1", "compact the table once with the Hive that wrote it"
            )
        if operation != expected:
            wanted = "deletes" if expected == DELETE else "inserts"
            raise CorruptFileError(name, f"holds operation {operation} among {wanted}", DAMAGED)


def check_ids(name: str, batch: pa.RecordBatch) -> None:
    """Check that ids are there and in their ranges.

    :param name: the file, for errors.
    :raises CorruptFileError: an id is missing or negative.
    :raises UnsupportedTableError: a bucket property is not of Hive 3's form.
    """
    for column in ("originalTransaction", "bucket", "rowId", "currentTransaction"):
        if batch.column(column).null_count:
            raise CorruptFileError(name, f"holds a row without {column}", DAMAGED)
    for scalar in pc.unique(batch.column("bucket")):
        value = value_of(scalar)
        if not is_bucket_property(value):
            raise UnsupportedTableError(
                name,
                f"holds the bucket property {value}, which is not of Hive 3's form",
                "compact the table once with the Hive that wrote it",
            )
    if batch.num_rows:
        low, high = (pc.min_max(batch.column("originalTransaction"))[end].as_py() for end in ("min", "max"))
        lowest_row_id = pc.min(batch.column("rowId")).as_py()
        if low < 0 or high >= MAX_WRITE_ID or lowest_row_id < 0:
            raise CorruptFileError(name, f"holds write ids {low} to {high}, row ids from {lowest_row_id}", DAMAGED)


def value_of(scalar: pa.Scalar[Any]) -> int:
    """A number as Python's."""
    value: int = scalar.as_py()
    return value


def count(mask: pa.Array[Any]) -> int:
    """How many are true."""
    true: int = pc.sum(mask).as_py() or 0
    return true
