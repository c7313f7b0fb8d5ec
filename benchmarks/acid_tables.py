"""Tables to compact, made here in the layout that Hive leaves behind: insert deltas, and one delete delta on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import orc

from airflow_provider_acid.merge.files.sealed_output import acid_metadata
from airflow_provider_acid.merge.keys.acid_keys import Key
from airflow_provider_acid.merge.orc.tail import read_tail, reseal
from benchmarks.row_kinds import ORDERS, RowKind
from tests.harness.generated_table import (
    DELETE,
    INSERT,
    PROLEPTIC_CALENDAR,
    acid_events,
)

_ROWS_AT_ONCE = 100_000
_DELETED_EVERY = 100
"""In a stripe that deletes touch, one row of so many is deleted."""

_WRITERS = 2


@dataclass(frozen=True)
class Shape:
    """A table of one directory.

    :param rows: in all insert deltas together.
    :param files: files of each delta (Hive's buckets).
    :param touched: share of the stripes in which rows are deleted; 0 for no delete delta.
    :param stripe_bytes: the table's ``orc.stripe.size``.
    :param kind: what its rows are like.
    """

    rows: int
    deltas: int = 3
    files: int = 1
    touched: float = 0.0
    stripe_bytes: int = 1 << 26
    kind: RowKind = ORDERS

    @property
    def write_ids(self) -> int:
        """How many transactions wrote to it."""
        return self.deltas + bool(self.touched)

    @property
    def properties(self) -> dict[str, str]:
        """Its table properties, beside those of every ACID table."""
        return {"orc.stripe.size": str(self.stripe_bytes), "no_auto_compaction": "true"}


@dataclass(frozen=True)
class _Stripe:
    write_id: int
    first_row: int
    rows: int


def write_table(shape: Shape, folder: Path) -> None:
    """Write all directories of a table, with the write ids from 1 on."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(lambda bucket: _write_bucket(shape, folder, bucket), range(shape.files)))


def _write_bucket(shape: Shape, folder: Path, bucket: int) -> None:
    rows = shape.rows // shape.deltas // shape.files
    stripes: list[_Stripe] = []
    for write_id in range(1, shape.deltas + 1):
        file = _place(folder, "delta", write_id, bucket)
        _write_orc(file, _inserts(shape, write_id, bucket, rows), shape.stripe_bytes)
        first = 0
        for count in _seal(file, shape, INSERT, bucket, write_id):
            stripes.append(_Stripe(write_id, first, count))
            first += count
    chosen = _touched(shape, stripes, bucket)
    if chosen:
        file = _place(folder, "delete_delta", shape.write_ids, bucket)
        events = _deletes(shape, chosen, bucket)
        _write_orc(file, [events], shape.stripe_bytes)
        _seal(file, shape, DELETE, bucket, shape.write_ids, events)


def _touched(shape: Shape, stripes: Sequence[_Stripe], bucket: int) -> list[_Stripe]:
    """Those of a bucket in which rows are deleted: of the stripes of all files, taken in turns, one of so many."""
    if not shape.touched:
        return []
    every = max(round(1 / shape.touched), 1)
    return [stripe for place, stripe in enumerate(stripes) if (place * shape.files + bucket) % every == 0]


def _place(folder: Path, kind: str, write_id: int, bucket: int) -> Path:
    directory = folder / f"{kind}_{write_id:07d}_{write_id:07d}_0000"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "_orc_acid_version").write_bytes(b"2")
    return directory / f"bucket_{bucket:05d}"


def _property(bucket: int) -> int:
    return 1 << 29 | bucket << 16


def _inserts(shape: Shape, write_id: int, bucket: int, rows: int) -> Iterator[pa.Table]:
    for first in range(0, rows, _ROWS_AT_ONCE):
        numbers = np.arange(first, min(first + _ROWS_AT_ONCE, rows), dtype=np.int64)
        order = (write_id * shape.files + bucket) * rows + first
        values = shape.kind.make(order, len(numbers))
        yield acid_events(INSERT, np.full(len(numbers), write_id), numbers, write_id, values, _property(bucket))


def _deletes(shape: Shape, stripes: Sequence[_Stripe], bucket: int) -> pa.Table:
    numbers = [np.arange(stripe.first_row, stripe.first_row + stripe.rows, _DELETED_EVERY) for stripe in stripes]
    writers = [np.full(len(found), stripe.write_id) for stripe, found in zip(stripes, numbers, strict=True)]
    rows = pa.nulls(sum(map(len, numbers)), shape.kind.arrow_type)
    return acid_events(
        DELETE, np.concatenate(writers), np.concatenate(numbers), shape.write_ids, rows, _property(bucket)
    )


def _write_orc(file: Path, tables: Iterator[pa.Table] | Sequence[pa.Table], stripe_bytes: int) -> None:
    with orc.ORCWriter(str(file), compression="ZLIB", stripe_size=stripe_bytes) as writer:
        for table in tables:
            writer.write(table)


def _seal(
    file: Path, shape: Shape, operation: int, bucket: int, write_id: int, events: pa.Table | None = None
) -> tuple[int, ...]:
    """Write the footer keys that Hive's readers need; the rows of each stripe.

    :param events: where they are deletes; the rows of an insert delta are numbered from 0.
    """
    with file.open("r+b") as content:
        tail = read_tail(content, str(file))
        counts = tuple(stripe.rows for stripe in tail.stripes)
        ends = np.cumsum(counts) - 1
        keys: list[Key] = [(write_id, _property(bucket), int(end)) for end in ends]
        if events is not None:
            deleted = events.take(pa.array(ends)).to_pylist()
            keys = [(event["originalTransaction"], event["bucket"], event["rowId"]) for event in deleted]
        start = content.seek(-tail.tail_bytes, 2)
        end = content.read()
        content.seek(start)
        content.truncate()
        content.write(reseal(end, shape.kind.orc_schema, acid_metadata(keys, operation, tail.rows), PROLEPTIC_CALENDAR))
    return counts
