"""Which rows of a bucket stay: aborted ones and deleted ones go, and the keys must ascend strictly.

Everything here is a computation on Arrow arrays: 16 bytes per delete event, whatever their number. numpy is not used
because executors are only sure to have pyarrow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.spark_jobs.acid_keys import (
    DAMAGED,
    INSERT,
    Key,
    Visibility,
    check_ids,
    check_operation,
    count,
    key_at,
    one_array,
    pairs_of,
    value_of,
    writers_of,
)


@dataclass(frozen=True)
class DeletedKeys:
    """The keys of deleted rows of one bucket: ascending, each once.

    :param pairs: write id and statement in one number; see :func:`pairs_of`.
    """

    pairs: pa.Array[Any]
    row_ids: pa.Array[Any]

    def __len__(self) -> int:
        return len(self.pairs)

    def between(self, low: int, high: int) -> DeletedKeys:
        """The part whose pairs lie in ``low``..``high``."""
        start = bisect_left(self.pairs, low, key=value_of)
        end = bisect_right(self.pairs, high, key=value_of)
        return DeletedKeys(self.pairs.slice(start, end - start), self.row_ids.slice(start, end - start))


def deleted_keys(batches: Iterable[pa.RecordBatch], visibility: Visibility) -> DeletedKeys:
    """Collect the valid delete events of one bucket.

    :param batches: their ids; checked, and of this bucket's rows only.
    """
    pairs, row_ids = [], []
    for batch in batches:
        chosen = batch.filter(visibility.valid(batch.column("currentTransaction")))
        pairs.append(pairs_of(chosen))
        row_ids.append(chosen.column("rowId"))
    columns = [pa.chunked_array(pairs, pa.int64()), pa.chunked_array(row_ids, pa.int64())]
    return _sorted_once(pa.Table.from_arrays(columns, names=["pair", "row_id"]))


def _sorted_once(table: pa.Table) -> DeletedKeys:
    ordered = table.take(pc.sort_indices(table, sort_keys=[("pair", "ascending"), ("row_id", "ascending")]))
    columns = ordered.combine_chunks()
    pairs, row_ids = (one_array(columns.column(name)) for name in ("pair", "row_id"))
    if len(pairs) > 1:
        differs = pc.or_(pc.not_equal(pairs[1:], pairs[:-1]), pc.not_equal(row_ids[1:], row_ids[:-1]))
        first = pa.concat_arrays([pa.array([True]), differs])
        pairs, row_ids = pairs.filter(first), row_ids.filter(first)
    return DeletedKeys(pairs, row_ids)


@dataclass(frozen=True)
class Kept:
    """What the filter says about a piece of a file.

    :param mask: the rows that stay; None when all stay.
    """

    mask: pa.Array[Any] | None
    rows_aborted: int
    rows_deleted: int


class KeyFilter:
    """Looks at the ACID columns of a bucket's files, piece by piece in the order in which they are merged."""

    def __init__(self, bucket: int, visibility: Visibility, deleted: DeletedKeys) -> None:
        self._bucket = bucket
        self._visibility = visibility
        self._deleted = deleted
        self._last: Key | None = None
        self._last_name = ""

    def apply(self, name: str, batch: pa.RecordBatch) -> Kept:
        """Check a piece and say which of its rows stay.

        :param name: the file, for errors.
        :raises CorruptFileError: an event is no insert, of another bucket, or not behind the one before it.
        :raises UnsupportedTableError: an event of ACID version 1.
        """
        if batch.num_rows == 0:
            return Kept(None, 0, 0)
        self._check(name, batch)
        valid = self._visibility.valid(batch.column("currentTransaction"))
        deleted = pc.and_(valid, self._is_deleted(batch))
        rows_aborted, rows_deleted = count(pc.invert(valid)), count(deleted)
        mask = None if rows_aborted + rows_deleted == 0 else pc.and_not(valid, deleted)
        return Kept(mask, rows_aborted, rows_deleted)

    def _check(self, name: str, batch: pa.RecordBatch) -> None:
        check_operation(name, batch, INSERT)
        check_ids(name, batch)
        for writer in pc.unique(writers_of(batch.column("bucket"))).to_pylist():
            if writer != self._bucket:
                raise CorruptFileError(name, f"holds a row of bucket {writer}, not {self._bucket}", DAMAGED)
        if count(pc.not_equal(batch.column("originalTransaction"), batch.column("currentTransaction"))):
            raise UnsupportedTableError(
                name,
                "holds an insert whose two write ids differ, which ACID version 2 does not write",
                "compact the table once with the Hive that wrote it",
            )
        self._check_order(name, batch)

    def _check_order(self, name: str, batch: pa.RecordBatch) -> None:
        pairs, row_ids = pairs_of(batch), batch.column("rowId")
        ascends = pc.or_(
            pc.greater(pairs[1:], pairs[:-1]),
            pc.and_(pc.equal(pairs[1:], pairs[:-1]), pc.greater(row_ids[1:], row_ids[:-1])),
        )
        first = key_at(batch, 0)
        if self._last is not None and first <= self._last:
            raise _out_of_order(name, first, self._last, self._last_name)
        if count(ascends) != len(ascends):
            place = pc.index(ascends, False).as_py()
            raise _out_of_order(name, key_at(batch, place + 1), key_at(batch, place), name)
        self._last, self._last_name = key_at(batch, batch.num_rows - 1), name

    def _is_deleted(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        if len(self._deleted) == 0:
            return _nothing(batch.num_rows)
        return _match(pairs_of(batch), batch.column("rowId"), self._deleted)


def _match(pairs: pa.Array[Any], row_ids: pa.Array[Any], deleted: DeletedKeys) -> pa.Array[Any]:
    """Which keys are deleted; ``pairs`` ascend."""
    low, high = pairs[0].as_py(), pairs[-1].as_py()
    near = deleted.between(low, high)
    if len(near) == 0:
        return _nothing(len(pairs))
    row_id_bits = max(pc.max(row_ids).as_py(), pc.max(near.row_ids).as_py()).bit_length()
    if (high - low).bit_length() + row_id_bits > 62:
        return _match_halves(pairs, row_ids, near)
    value_set = _packed(near.pairs, near.row_ids, low, row_id_bits)
    return pc.is_in(_packed(pairs, row_ids, low, row_id_bits), value_set=value_set)


def _match_halves(pairs: pa.Array[Any], row_ids: pa.Array[Any], deleted: DeletedKeys) -> pa.Array[Any]:
    if pairs[0].as_py() == pairs[-1].as_py():
        return pc.is_in(row_ids, value_set=deleted.between(pairs[0].as_py(), pairs[0].as_py()).row_ids)
    middle = len(pairs) // 2
    halves = [
        _match(pairs.slice(0, middle), row_ids.slice(0, middle), deleted),
        _match(pairs.slice(middle), row_ids.slice(middle), deleted),
    ]
    return pa.concat_arrays(halves)


def _packed(pairs: pa.Array[Any], row_ids: pa.Array[Any], low: int, row_id_bits: int) -> pa.Array[Any]:
    distance = pc.subtract(pairs, pa.scalar(low, pa.int64()))
    return pc.add(pc.shift_left(distance, pa.scalar(row_id_bits, pa.int64())), row_ids)


def _out_of_order(name: str, key: Key, before: Key, before_name: str) -> CorruptFileError:
    where = "itself" if before_name == name else before_name
    return CorruptFileError(
        name,
        f"its row {key} (write id, bucket, row id) does not come after {before} of {where}",
        "find out what wrote a file whose keys do not ascend; nothing was changed",
    )


def _nothing(rows: int) -> pa.Array[Any]:
    return pa.repeat(pa.scalar(False), rows)
