"""The fast way to move rows: Arrow record batches, where Arrow holds every value exactly.

It does not for timestamps before 1970 (its writer writes negative nanoseconds) and outside 1677..2262 (its reader
fails), nor where the writer counted timestamps in a zone other than UTC; nested columns that changed their type are
left to the other way too. :mod:`exact_rows` takes those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.merge.files.sealed_output import SealedOutput, StripeKeys
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, damage_named
from airflow_provider_acid.merge.orc.schema import TIMESTAMPS, Kind, OrcType
from airflow_provider_acid.merge.rows.held_texts import MAX_HELD_BYTES, HeldTexts
from airflow_provider_acid.plan.plan import OrcOptions

_BATCH_ROWS = 1024

_COMPRESSIONS: dict[str, Literal["UNCOMPRESSED", "ZLIB", "SNAPPY", "LZ4", "ZSTD"]] = {
    "none": "UNCOMPRESSED",
    "zlib": "ZLIB",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "zstd": "ZSTD",
}

# ORC's default for orc.dictionary.key.threshold
DICTIONARY_THRESHOLD = 0.8

UTC_NAMES = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT"})

# 2262-01-01, a little before the last nanosecond an int64 can hold
_LAST_MILLISECOND = 9_214_646_400_000

_PRIMITIVES: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.TIMESTAMP: pa.timestamp("ns"),
    Kind.DATE: pa.date32(),
}


class NotExactError(Exception):
    """A value that Arrow does not hold exactly turned up; the file is written anew the exact way."""


def is_exact(source: SourceReader, target_row: OrcType) -> bool:
    """Whether every row of a file can go through Arrow without a change of value."""
    for was, becomes in zip(source.row_type.children, target_row.children, strict=False):
        if was.children and was != becomes:
            return False
    if not source.has_values(TIMESTAMPS):
        return True
    for found in source.ranges(TIMESTAMPS):
        if found.minimum is None or found.maximum is None:
            return False
        # What milliseconds hide just before 1970 turns up while writing, and raises NotExactError.
        if found.minimum < 0 or found.maximum > _LAST_MILLISECOND:
            return False
    return source.writer_time_zones() <= UTC_NAMES


class ArrowFile:
    """An ACID file written with pyarrow.

    :param schema: type of the output; char and varchar are written as strings.
    """

    fields = None

    def __init__(
        self, name: str, output: SealedOutput, schema: OrcType, options: OrcOptions, bloom_filter_ids: set[int]
    ) -> None:
        row = schema.children[5]
        self.types = [_arrow_type(child) for child in row.children]
        self.keys = StripeKeys(name, _BATCH_ROWS, across_calls=False)
        self._output = output
        self._texts = HeldTexts()
        self._has_timestamps = any(node.kind in TIMESTAMPS for node in row.walk())
        self._row_fields = [pa.field(f"c{number}", kind) for number, kind in enumerate(self.types)]
        kinds = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64(), pa.struct(self._row_fields))
        self._schema = pa.schema([pa.field(f"c{number}", kind) for number, kind in enumerate(kinds)])
        self._writer = orc.ORCWriter(
            pa.PythonFile(output, mode="w"),
            batch_size=_BATCH_ROWS,
            stripe_size=options.stripe_bytes,
            compression=_COMPRESSIONS[options.compression],
            compression_block_size=options.compression_block_bytes,
            row_index_stride=options.row_index_stride,
            dictionary_key_size_threshold=DICTIONARY_THRESHOLD,
            bloom_filter_columns=sorted(bloom_filter_ids) or None,
        )
        # The writer takes its schema from the first table, also where no row follows.
        self._writer.write(self._schema.empty_table())

    @property
    def holds_much(self) -> bool:
        """Whether the writer should be closed for the memory it takes."""
        return self._texts.held_bytes > MAX_HELD_BYTES

    def append(self, ids: pa.RecordBatch, columns: list[pa.Array[Any]], is_null: pa.Array[Any] | None = None) -> None:
        """Write rows.

        :param ids: the five columns before the row.
        :param columns: of the row, in the types of the output.
        :param is_null: where the row itself is NULL.
        """
        rows = pa.StructArray.from_arrays(columns, fields=self._row_fields, mask=is_null)
        batch = pa.RecordBatch.from_arrays([*ids.columns, rows], schema=self._schema)
        self._writer.write(pa.Table.from_batches([batch]))
        self._texts.add(columns, self._output.tell())
        self.keys.add(ids)

    def close(self) -> None:
        """Write the last stripe and the tail into the held end of the output."""
        self._output.hold()
        self._writer.close()


class ArrowRows(ArrowFile):
    """Writes a bucket's rows with pyarrow."""

    def write(self, source: SourceReader, stripe: int, batch: pa.RecordBatch, mask: pa.Array[Any] | None) -> None:
        """Write the rows of a stripe that stay.

        :raises NotExactError: a timestamp is outside what Arrow's writer can write.
        :raises CorruptFileError: a row has no columns at all.
        """
        chosen = batch if mask is None else batch.filter(mask)
        rows: Any = chosen.column("row")
        if rows.null_count:
            raise CorruptFileError(source.name, "holds an insert without a row", "restore the file from a backup")
        columns = [rows.field(number) for number in range(rows.type.num_fields)]
        with damage_named(source.name):
            brought = [
                column if column.type == kind else column.cast(kind)
                for column, kind in zip(columns, self.types, strict=False)
            ]
        for kind in self.types[len(columns) :]:
            missing: Any = kind
            brought.append(pa.nulls(len(rows), missing))
        if self._has_timestamps and not all(_writable(column) for column in brought):
            raise NotExactError(source.name)
        self.append(chosen.select(KEY_FIELDS), brought)


def _arrow_type(node: OrcType) -> pa.DataType:
    if node.kind is Kind.DECIMAL:
        return pa.decimal128(node.parameters["precision"], node.parameters["scale"])
    if node.kind is Kind.LIST:
        return pa.list_(_arrow_type(node.children[0]))
    if node.kind is Kind.MAP:
        return pa.map_(_arrow_type(node.children[0]), _arrow_type(node.children[1]))
    if node.kind is Kind.STRUCT:
        pairs = zip(node.names, node.children, strict=True)
        return pa.struct([pa.field(name, _arrow_type(child)) for name, child in pairs])
    return _PRIMITIVES[node.kind]


def _writable(column: pa.Array[Any]) -> bool:
    for leaf in _timestamps(column):
        earliest = pc.min(leaf.cast(pa.int64())).as_py()
        if earliest is not None and earliest < 0:
            return False
    return True


def _timestamps(column: Any) -> Iterator[pa.Array[Any]]:
    if pa.types.is_timestamp(column.type):
        yield column
    elif pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _timestamps(child)
    elif pa.types.is_map(column.type):
        yield from _timestamps(column.keys)
        yield from _timestamps(column.items)
    elif pa.types.is_list(column.type):
        yield from _timestamps(column.flatten())
