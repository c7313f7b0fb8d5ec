"""Rows of one statement of one transaction: of their keys all but the row ids are the same.

Mostly a whole stripe's are. Then little of them has to be looked at, and nothing row by row but the row ids' order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.merge.keys.acid_keys import (
    INSERT,
    MAX_WRITE_ID,
    KeyRange,
    count,
    is_bucket_property,
    value_of,
    writer_of,
)

_HEADS = ("operation", "originalTransaction", "bucket", "currentTransaction")


@dataclass(frozen=True)
class OneWrite:
    """Inserts whose keys ascend and break no rule, whatever comes before them.

    :param first_row_id: of the first row.
    :param last_row_id: of the last row.
    """

    write_id: int
    bucket_property: int
    first_row_id: int
    last_row_id: int

    @property
    def writer(self) -> int:
        """The writer id, which is the bucket number."""
        return writer_of(self.bucket_property)

    @property
    def keys(self) -> KeyRange:
        """The first and the last key."""
        head = self.write_id, self.bucket_property
        return KeyRange((*head, self.first_row_id), (*head, self.last_row_id))


def one_write(batch: pa.RecordBatch) -> OneWrite | None:
    """What the rows have in common; None where that is not all, or anything is wrong with them.

    :param batch: the five columns before the rows; one row at least.
    """
    heads = [_only_value(batch.column(name)) for name in _HEADS]
    row_ids = batch.column("rowId")
    return one_write_of(heads, value_of(row_ids[0]), value_of(row_ids[-1])) if _ascend_from_0(row_ids) else None


def one_write_of(heads: Sequence[int | None], first_row_id: int, last_row_id: int) -> OneWrite | None:
    """The same of rows of which row by row no more is to be known.

    :param heads: of each other column the value of all rows; None where there are several.
    :param first_row_id: the least; none is negative, and each is larger than the one before it.
    :param last_row_id: the largest.
    """
    operation, write_id, bucket_property, current = heads
    if operation != INSERT or write_id is None or bucket_property is None or current != write_id:
        return None
    is_right = 0 <= write_id < MAX_WRITE_ID and is_bucket_property(bucket_property)
    return OneWrite(write_id, bucket_property, first_row_id, last_row_id) if is_right else None


def _only_value(column: pa.Array[Any]) -> int | None:
    """The value of all rows; None where there are several, or a NULL."""
    if column.null_count:
        return None
    limits = pc.min_max(column)
    low, high = value_of(limits["min"]), value_of(limits["max"])
    return low if low == high else None


def _ascend_from_0(row_ids: pa.Array[Any]) -> bool:
    """Whether each is larger than the one before it, and none is negative or NULL."""
    if row_ids.null_count or value_of(row_ids[0]) < 0:
        return False
    return count(pc.greater(row_ids[1:], row_ids[:-1])) == len(row_ids) - 1
