"""The figures of partitions as Arrow tables; a row per partition, its directories as a list in the last column.

A table without partitions has the partition name ``""``, so that rows can be joined by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.health.values import PartitionHealth

_DIRECTORY = pa.struct(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("min_write_id", pa.int64()),
        ("max_write_id", pa.int64()),
        ("size_bytes", pa.int64()),
        ("files", pa.int64()),
        ("state", pa.string()),
        ("compacted", pa.bool_()),
    ]
)

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("metastore", pa.string()),
    ("database", pa.string()),
    ("table", pa.string()),
    ("partition", pa.string()),
    ("state", pa.string()),
    ("reason", pa.string()),
    ("deltas", pa.int64()),
    ("delete_deltas", pa.int64()),
    ("base_bytes", pa.int64()),
    ("delta_bytes", pa.int64()),
    ("delta_size_ratio", pa.float64()),
    ("aborted_transactions", pa.int64()),
    ("aborted_directories", pa.int64()),
    ("obsolete_directories", pa.int64()),
    ("obsolete_bytes", pa.int64()),
    ("evaluated_ms", pa.int64()),
    ("directory_count", pa.int64()),
    ("directories", pa.list_(_DIRECTORY)),
]

SCHEMA = pa.schema(_COLUMNS)

FIGURES = [name for name in SCHEMA.names if name != "directories"]
"""The columns that lists of partitions need; directories are most of a file's bytes."""

ROW_GROUP = 1000
"""Partitions that an evaluation holds in memory, and the unit in which a reader finds one of them in a file."""

KEYS = ["metastore", "database", "table", "partition"]


def table_of(partitions: Sequence[PartitionHealth]) -> pa.Table:
    """Rows in the order of the partitions."""
    return pa.Table.from_pylist([_row(each) for each in partitions], schema=SCHEMA)


def key_of(metastore: str, entity: Entity) -> tuple[str, str, str, str]:
    """What the columns :data:`KEYS` hold for a partition."""
    return metastore, entity.database, entity.table, entity.partition or ""


def texts_in(rows: pa.Table, column: str) -> list[str]:
    """The values of a column of texts without nulls."""
    return [str(value) for value in rows[column].to_pylist()]


def has_key(key: Sequence[str]) -> pc.Expression:
    """Which rows are those of one partition.

    :param key: from :func:`key_of`.
    """
    return reduce(and_, (pc.field(name) == value for name, value in zip(KEYS, key, strict=True)))


def newest_rows(rows: pa.Table) -> pa.Table:
    """Of each partition the row that was evaluated last, and of such as are equally old the last.

    Who looks again after work on a partition may do so in the millisecond of an evaluation, whose rows come first.
    """
    places = pa.array(range(rows.num_rows), pa.int64())
    numbered = rows.select([*KEYS, "evaluated_ms"]).append_column("place", places)
    newest_first = numbered.sort_by([("evaluated_ms", "descending"), ("place", "descending")])
    firsts = newest_first.group_by(KEYS, use_threads=False).aggregate([("place", "first")])
    return rows.take(firsts["place_first"])


def _row(health: PartitionHealth) -> dict[str, object]:
    row = {name: getattr(health, name) for name in FIGURES if name not in KEYS}
    row |= dict(zip(KEYS, key_of(health.metastore, health.entity), strict=True))
    row["state"] = health.state.value
    row["directories"] = [{**asdict(each), "state": each.state.value} for each in health.directories]
    return row
