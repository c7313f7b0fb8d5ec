"""Which rows of a bucket stay: aborted ones and deleted ones go, and the keys must ascend strictly.

Everything here is a computation on Arrow arrays. numpy is not used because executors are only sure to have pyarrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.merge.keys.acid_keys import (
    DAMAGED,
    INSERT,
    Key,
    KeyRange,
    Visibility,
    check_ids,
    check_operation,
    count,
    key_at,
    key_range,
    pair_of,
    pairs_of,
    writers_of,
)
from airflow_provider_acid.merge.keys.deleted_keys import DeletedKeys
from airflow_provider_acid.merge.keys.one_write import OneWrite, one_write


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
        write = one_write(batch)
        if write is not None and write.writer == self._bucket:
            self.pass_over(name, write.keys)
            return self._kept_of(write, batch.column("rowId"))
        self._check(name, batch)
        valid = self._visibility.valid(batch.column("currentTransaction"))
        deleted = pc.and_(valid, self._deleted.holds(pairs_of(batch), batch.column("rowId")))
        rows_aborted, rows_deleted = count(pc.invert(valid)), count(deleted)
        mask = None if rows_aborted + rows_deleted == 0 else pc.and_not(valid, deleted)
        return Kept(mask, rows_aborted, rows_deleted)

    def keeps_all(self, name: str, write: OneWrite) -> bool:
        """Whether all rows of one write stay, which says all of them that :meth:`apply` would; if not, apply that.

        :param name: the file, for errors.
        :raises CorruptFileError: they do not come after the rows before them.
        """
        (first, last), pair = (write.first_row_id, write.last_row_id), pair_of(write.keys.first)
        is_kept = (
            write.writer == self._bucket
            and self._visibility.counts(write.write_id)
            and not self._deleted.has_any(pair, first, last)
        )
        if is_kept:
            self.pass_over(name, write.keys)
        return is_kept

    def pass_over(self, name: str, keys: KeyRange) -> None:
        """Go on behind rows that need no look, because they had one.

        :param name: the file, for errors.
        :raises CorruptFileError: they do not come after the rows before them.
        """
        if self._last is not None and keys.first <= self._last:
            raise _out_of_order(name, keys.first, self._last, self._last_name)
        self._last, self._last_name = keys.last, name

    def _kept_of(self, write: OneWrite, row_ids: pa.Array[Any]) -> Kept:
        if not self._visibility.counts(write.write_id):
            return Kept(pa.repeat(pa.scalar(False), len(row_ids)), len(row_ids), 0)
        deleted = self._deleted.holds_of(pair_of(write.keys.first), row_ids)
        if deleted is None:
            return Kept(None, 0, 0)
        rows_deleted = count(deleted)
        return Kept(pc.invert(deleted) if rows_deleted else None, 0, rows_deleted)

    def _check(self, name: str, batch: pa.RecordBatch) -> None:
        check_operation(name, batch, INSERT)
        check_ids(name, batch)
        for writer in pc.unique(writers_of(batch.column("bucket"))).to_pylist():
            if writer != self._bucket:
                raise CorruptFileError(name, f"holds a row of bucket {writer}, not {self._bucket}", DAMAGED)
        if not batch.column("originalTransaction").equals(batch.column("currentTransaction")):
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
        self.pass_over(name, key_range(batch))
        if count(ascends) != len(ascends):
            place = pc.index(ascends, False).as_py()
            raise _out_of_order(name, key_at(batch, place + 1), key_at(batch, place), name)


def _out_of_order(name: str, key: Key, before: Key, before_name: str) -> CorruptFileError:
    where = "itself" if before_name == name else before_name
    return CorruptFileError(
        name,
        f"its row {key} (write id, bucket, row id) does not come after {before} of {where}",
        "find out what wrote a file whose keys do not ascend; nothing was changed",
    )
