"""What a partition holds: directories, bytes, rows and a checksum of its rows, found without the compactor's code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from tests.harness.acid_reader import Snapshot, as_hive_prints, live_directories, read_table
from tests.harness.current_rows import row_text, snapshot_of
from tests.harness.quickstart.demo_tables import DATABASE, DemoTable
from tests.harness.thrift_admin import ThriftAdmin

_KEYS = ["originalTransaction", "bucket", "rowId"]
_CHECKSUM_BITS = 64
Figures = tuple[int | None, int]
"""Rows and checksum."""


class WrongRowsError(Exception):
    """A table does not hold the rows it has to hold."""


@dataclass(frozen=True)
class PartitionState:
    """A partition at one moment.

    :param directories: bases, deltas and delete deltas that lie in it, whether readers open them or not.
    :param size_bytes: of all files in them.
    :param rows: what a reader sees; None where the reader of this demonstration cannot read the table.
    :param checksum: over ROW__ID and all columns of those rows, in any order.
    """

    table: str
    partition: str | None
    directories: int
    size_bytes: int
    rows: int | None
    checksum: int


def table_state(admin: ThriftAdmin, table: DemoTable) -> list[PartitionState]:
    """Looks at every partition of a table.

    :raises WrongRowsError: the rows are not those that Hive reads.
    """
    snapshot = _snapshot(admin, table.name)
    try:
        figures = _figures(table, snapshot)
    except AssertionError as error:
        raise WrongRowsError(f"{table.name}: {error}") from error
    return [
        PartitionState(table.name, name, *_directories_and_bytes(folder), *figures[name])
        for name, folder in table.folders.items()
    ]


def _figures(table: DemoTable, snapshot: Snapshot) -> Mapping[str | None, Figures]:
    if not table.has_row_ids:
        return {name: (None, 0) for name in table.folders}
    if table.expected_rows is None:
        return {name: fast_figures(folder, snapshot) for name, folder in table.folders.items()}
    return _exact_figures(table, snapshot)


def _snapshot(admin: ThriftAdmin, name: str) -> Snapshot:
    transactions = admin.transactions()
    return snapshot_of(admin.write_ids(DATABASE, name), transactions)


def _directories_and_bytes(folder: Path) -> tuple[int, int]:
    directories = [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(("_", "."))]
    directories = [child for child in directories if "=" not in child.name]
    files = [file for directory in directories for file in directory.rglob("*") if not file.name.startswith(".")]
    return len(directories), sum(file.stat().st_size for file in files if file.is_file())


def _exact_figures(table: DemoTable, snapshot: Snapshot) -> Mapping[str | None, Figures]:
    """Row by row, compared with what Hive itself read."""
    rows = read_table(table.location, table.columns, snapshot, partition_keys=table.partition_keys)
    texts: dict[str | None, list[str]] = defaultdict(list)
    for row in rows:
        partition = "/".join(Path(row.file).parts[: len(table.partition_keys)]) or None
        texts[partition].append(row_text(as_hive_prints(row)))
    read = sorted(text for partition in texts.values() for text in partition)
    if read != sorted(map(row_text, table.expected_rows or ())):
        raise WrongRowsError(f"{table.name}: the rows are not those that Hive reads")
    return {partition: (len(texts[partition]), _checksum(texts[partition])) for partition in table.folders}


def fast_figures(folder: Path, snapshot: Snapshot) -> Figures:
    """Rows and checksum of a partition, with Arrow alone; for tables whose files all have ACID columns.

    :raises WrongRowsError: a row id occurs twice.
    """
    inserted: list[pa.Table] = []
    deleted: list[pa.Table] = []
    for directory in live_directories(folder, snapshot):
        events = [_events(file, snapshot) for file in directory.glob("bucket_*")]
        if directory.name.startswith("delete_delta"):
            deleted += [deletes.select(_KEYS) for deletes in events]
        else:
            inserted += [_keys_and_text(inserts) for inserts in events]
    rows = pa.concat_tables(inserted)
    if deleted:
        rows = rows.join(pa.concat_tables(deleted), keys=_KEYS, join_type="left anti")
    if len(rows.group_by(_KEYS).aggregate([])) != len(rows):
        raise WrongRowsError(f"{folder}: a row id occurs twice")
    return len(rows), _checksum(_joined(rows.columns))


def _events(file: Path, snapshot: Snapshot) -> pa.Table:
    events = orc.ORCFile(file).read()
    if file.parent.name.startswith("base_"):
        return events
    writers = events["currentTransaction"]
    seen = [write_id for write_id in set(writers.to_pylist()) if write_id is not None and snapshot.sees(write_id)]
    return events.filter(pc.is_in(writers, value_set=pa.array(seen, pa.int64())))


def _keys_and_text(events: pa.Table) -> pa.Table:
    """Row ids, and all of the table's columns as one text."""
    row = events.select(["row"]).flatten()
    return events.select(_KEYS).append_column("text", pa.array(_joined(row.columns), pa.string()))


def _joined(columns: Iterable[pa.ChunkedArray[Any]]) -> list[str]:
    join: Any = pc.binary_join_element_wise
    texts = [column.cast(pa.string()) for column in columns]
    joined: list[str] = join(*texts, "\x1f", null_handling="replace", null_replacement="\\N").to_pylist()
    return joined


def _checksum(texts: Iterable[str]) -> int:
    """The sum of the rows' hashes: equal for equal rows in whatever order and files."""
    hashes = (blake2b(text.encode(), digest_size=_CHECKSUM_BITS // 8).digest() for text in texts)
    return sum(int.from_bytes(digest, "big") for digest in hashes) % (1 << _CHECKSUM_BITS)
