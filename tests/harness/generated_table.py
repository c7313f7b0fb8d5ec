"""A large ACID table made here, in the layout and with the write ids that Hive's MERGE statements leave behind."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import orc

from airflow_provider_acid.merge.files.sealed_output import key_index_text
from airflow_provider_acid.merge.orc.schema import ACID_COLUMNS, acid_schema
from airflow_provider_acid.merge.orc.tail import KEY_INDEX, STATS, VERSION, reseal
from airflow_provider_acid.plan.plan import Column
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

Integers = npt.NDArray[np.int64]

COLUMNS = {
    "order_id": "bigint",
    "customer": "string",
    "status": "string",
    "amount": "decimal(12,2)",
    "ordered_at": "timestamp",
    "note": "string",
}
PARTITION_KEYS = {"day": "string"}

ROW_TYPE = pa.struct(
    [
        ("order_id", pa.int64()),
        ("customer", pa.string()),
        ("status", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("ordered_at", pa.timestamp("ns")),
        ("note", pa.string()),
    ]
)
_ACID_TYPES = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64(), ROW_TYPE)
ORC_SCHEMA = acid_schema([Column(name, kind) for name, kind in COLUMNS.items()])
INSERT, DELETE = 0, 2
_INSERT_STATEMENT, _DELETE_STATEMENT = 0, 1
_BUCKET = 1 << 29 | _INSERT_STATEMENT
_DELETED_EVERY = 120
"""A MERGE of write id w deletes, of every earlier delta, the rows whose number is w modulo this."""
PROLEPTIC_CALENDAR = 2
_MICROSECONDS_A_DAY = 86_400_000_000
_STATUSES = ["placed", "paid", "packed", "shipped", "delivered", "returned"]
_CUSTOMERS = [f"customer-{number:05d}" for number in range(50_000)]
_NOTES = [
    None if number % 4 == 0 else f"{where}, {how}, slot {number}"
    for number, (where, how) in enumerate(
        product(
            ("leave at the door", "second floor", "back entrance", "with the neighbour", "at the reception"),
            ("ring twice", "call before delivery", "handle with care", "keep cool", "no invoice", "gift wrap") * 40,
        )
    )
]


@dataclass(frozen=True)
class GeneratedTable:
    """What to make.

    :param days: the partitions.
    :param merges: MERGE statements, each inserting into all partitions and, but for the first, deleting from them.
    :param rows_per_delta: rows each MERGE inserts into each partition.
    """

    database: str
    name: str
    days: tuple[str, ...] = ("2024-03-01", "2024-03-02", "2024-03-03")
    merges: int = 12
    rows_per_delta: int = 30_000

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions' names."""
        return tuple(f"day={day}" for day in self.days)


def create(server: MetastoreServer, table: GeneratedTable, *, writers: int = 2) -> Path:
    """Creates the table with its files, partitions and committed transactions, and returns its folder.

    :param writers: threads that write files.
    """
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(table.database)
        location = admin.create_table(TableDefinition(table.database, table.name, COLUMNS, PARTITION_KEYS))
        admin.add_partitions(table.database, table.name, table.partitions)
        transactions = admin.open_transactions(table.merges)
        write_ids = admin.allocate_write_ids(table.database, table.name, transactions)
        for transaction in transactions:
            for partition in table.partitions:
                admin.lock_as_writer(transaction, table.database, table.name, partition)
        write_files(table, location, writers=writers, write_ids=sorted(write_ids.values()))
        for transaction in transactions:
            admin.commit(transaction)
    return location


def write_files(table: GeneratedTable, location: Path, *, writers: int, write_ids: list[int]) -> None:
    """Writes every delta and delete delta of the table below ``location``."""
    with ThreadPoolExecutor(writers) as pool:
        written = [
            pool.submit(_write_merge, table, location / partition, number, write_ids[:merge])
            for number, partition in enumerate(table.partitions)
            for merge in range(1, table.merges + 1)
        ]
    for future in written:
        future.result()


def _write_merge(table: GeneratedTable, folder: Path, partition_number: int, write_ids: list[int]) -> None:
    """The directories of the last of the given write ids in one partition."""
    *earlier, write_id = write_ids
    first_order = (partition_number * table.merges + len(earlier)) * table.rows_per_delta
    rows = orders(table.days[partition_number], first_order, table.rows_per_delta)
    numbers = np.arange(table.rows_per_delta, dtype=np.int64)
    inserts = acid_events(INSERT, np.full(len(numbers), write_id), numbers, write_id, rows)
    _write_directory(folder / _directory_name("delta", write_id, _INSERT_STATEMENT), inserts)
    deleted = numbers[numbers % _DELETED_EVERY == write_id]
    if earlier and len(deleted):
        victims = np.repeat(np.array(earlier, dtype=np.int64), len(deleted))
        no_rows = pa.nulls(len(victims), ROW_TYPE)
        deletes = acid_events(DELETE, victims, np.tile(deleted, len(earlier)), write_id, no_rows)
        _write_directory(folder / _directory_name("delete_delta", write_id, _DELETE_STATEMENT), deletes)


def _directory_name(kind: str, write_id: int, statement: int) -> str:
    return f"{kind}_{write_id:07d}_{write_id:07d}_{statement:04d}"


def acid_events(
    operation: int,
    original_write_ids: Integers,
    numbers: Integers,
    write_id: int,
    rows: pa.Array[Any],
    bucket_property: int = _BUCKET,
) -> pa.Table:
    """Rows, or delete events, as an ACID file holds them.

    :param numbers: row ids.
    :param rows: of type ``ROW_TYPE``; NULLs in delete events.
    """
    count = len(numbers)
    columns = (
        np.full(count, operation),
        original_write_ids,
        np.full(count, bucket_property),
        numbers,
        np.full(count, write_id),
    )
    arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, _ACID_TYPES[:-1], strict=True)]
    return pa.table([*arrays, rows], names=list(ACID_COLUMNS))


def _write_directory(directory: Path, events: pa.Table) -> None:
    """One bucket file with the footer keys Hive writes, in a single stripe."""
    file = io.BytesIO()
    orc.write_table(events, file, compression="ZLIB", stripe_size=1 << 28)
    last = events.slice(events.num_rows - 1).to_pylist()[0]
    deletes = events.num_rows if last["operation"] == DELETE else 0
    footer = {
        KEY_INDEX: key_index_text([(last["originalTransaction"], last["bucket"], last["rowId"])]).encode(),
        STATS: f"{events.num_rows - deletes},0,{deletes}".encode(),
        VERSION: b"2",
    }
    directory.mkdir(parents=True)
    (directory / "_orc_acid_version").write_bytes(b"2")
    content = reseal(file.getvalue(), ORC_SCHEMA, footer, PROLEPTIC_CALENDAR)
    (directory / "bucket_00000_0").write_bytes(content)


def orders(day: str, first_order: int, count: int) -> pa.StructArray:
    """Rows that look like a shop's; the same ones for the same arguments."""
    random = np.random.default_rng(first_order)
    moments = np.datetime64(day, "ns") + np.sort(random.integers(0, _MICROSECONDS_A_DAY, count)) * 1000
    return pa.StructArray.from_arrays(
        [
            pa.array(np.arange(first_order, first_order + count, dtype=np.int64)),
            _any_of(_CUSTOMERS, random, count),
            _any_of(_STATUSES, random, count),
            decimals(random.integers(100, 1_000_000, count)),
            pa.array(moments),
            _any_of(_NOTES, random, count),
        ],
        fields=list(ROW_TYPE),
    )


def _any_of(values: Sequence[str | None], random: np.random.Generator, count: int) -> pa.Array[Any]:
    return pa.array(values, pa.string()).take(random.integers(0, len(values), count))


def decimals(cents: Integers, precision: int = 12) -> pa.Array[Any]:
    """Amounts of money."""
    words = np.zeros((len(cents), 2), dtype="<i8")
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(precision, 2), len(cents), [None, pa.py_buffer(words.tobytes())])
