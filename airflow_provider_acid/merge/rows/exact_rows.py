"""The exact way to move rows: one by one with pyorc, for what Arrow does not hold.

Timestamps pass as (seconds, nanoseconds) in the zone the writer counted them in, dates as days, decimals as their
digits: no value goes through a Python date, time or decimal.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator
from itertools import compress, islice
from typing import Any

import pyarrow as pa
import pyorc

from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.merge.files.sealed_output import SealedOutput, StripeKeys
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, damage_named
from airflow_provider_acid.merge.orc.schema import Kind, OrcType
from airflow_provider_acid.merge.rows.arrow_rows import DICTIONARY_THRESHOLD
from airflow_provider_acid.merge.rows.map_keys import MapKeys
from airflow_provider_acid.plan.plan import OrcOptions

_BATCH_ROWS = 1024

_Convert = Callable[[Any], Any]


class _RawTimestamp(pyorc.converters.ORCConverter):
    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: zoneinfo.ZoneInfo) -> tuple[int, int]:
        return seconds, nanoseconds

    @staticmethod
    def to_orc(value: tuple[int, int], timezone: zoneinfo.ZoneInfo) -> tuple[int, int]:
        return value


class _RawDate(pyorc.converters.ORCConverter):
    @staticmethod
    def from_orc(days: int) -> int:
        return days

    @staticmethod
    def to_orc(days: int) -> int:
        return days


class _RawDecimal(pyorc.converters.ORCConverter):
    @staticmethod
    def from_orc(digits: str) -> str:
        return digits

    @staticmethod
    def to_orc(precision: int, scale: int, digits: str) -> int:
        whole, _, fraction = digits.partition(".")
        return int(whole + fraction.ljust(scale, "0"))


CONVERTERS: dict[pyorc.TypeKind, type[pyorc.converters.ORCConverter]] = {
    pyorc.TypeKind.TIMESTAMP: _RawTimestamp,
    pyorc.TypeKind.DATE: _RawDate,
    pyorc.TypeKind.DECIMAL: _RawDecimal,
}


class ExactRows:
    """Writes a bucket's rows with pyorc.

    :param schema: type of the output; char and varchar are written as strings.
    :param zone: the zone in which sources and output count their timestamps.
    """

    fields = KEY_FIELDS
    holds_much = False
    """What it takes of memory is not known here."""

    def __init__(
        self,
        name: str,
        output: SealedOutput,
        schema: OrcType,
        options: OrcOptions,
        bloom_filter_ids: set[int],
        zone: str,
    ) -> None:
        self._row = schema.children[5]
        self._zone = zoneinfo.ZoneInfo(zone)
        self._output = output
        self.keys = StripeKeys(name, _BATCH_ROWS, across_calls=True)
        self._source: SourceReader | None = None
        self._writer = pyorc.Writer(
            output,  # type: ignore[arg-type]
            _pyorc_schema(schema),
            batch_size=_BATCH_ROWS,
            stripe_size=options.stripe_bytes,
            row_index_stride=options.row_index_stride,
            compression=pyorc.CompressionKind[options.compression.upper()],
            compression_block_size=options.compression_block_bytes,
            bloom_filter_columns=bloom_filter_ids or None,
            dict_key_size_threshold=DICTIONARY_THRESHOLD,
            timezone=self._zone,
            converters=CONVERTERS,
        )

    def write(self, source: SourceReader, stripe: int, batch: pa.RecordBatch, mask: pa.Array[Any] | None) -> None:
        """Write the rows that stay of those that follow in a stripe; ``batch`` holds their keys.

        :raises CorruptFileError: the stripe cannot be read.
        :raises UnsupportedTableError: its last rows were read, and a map in it lost entries on the way.
        """
        if source is not self._source:
            self._source = source
            self._reader = exact_reader(source, self._zone)
            self._convert = converter(source.row_type, self._row)
            self._map_keys = MapKeys(source)
            self._stripe: int | None = None
        if stripe != self._stripe:
            self._stripe, self._read = stripe, 0
            self._rows = self._rows_of(source, stripe)
            self._map_keys.begin()
        start, rows = self._read, islice(self._rows, batch.num_rows)
        self._writer.writerows(rows if mask is None else compress(rows, mask.to_pylist()))
        found = self._read - start
        if found != batch.num_rows:
            raise CorruptFileError(
                source.name, f"has {self._read} rows in stripe {stripe}, not more", "restore the file from a backup"
            )
        if self._read == source.tail.stripes[stripe].rows:
            self._map_keys.check(stripe)
        self.keys.add(batch if mask is None else batch.filter(mask))

    def close(self) -> None:
        """Write the last stripe and the tail into the held end of the output."""
        self._output.hold()
        self._writer.close()

    def _rows_of(self, source: SourceReader, stripe: int) -> Iterator[tuple[Any, ...]]:
        convert = self._convert
        source.check_stripe(stripe)
        with damage_named(source.name):
            for *key, row in source.events(stripe, self._reader.read_stripe(stripe)):
                if row is None:
                    raise CorruptFileError(
                        source.name, "holds an insert without a row", "restore the file from a backup"
                    )
                self._read += 1
                self._map_keys.add(row)
                yield (*key, convert(row) if convert else row)


def exact_reader(source: SourceReader, zone: zoneinfo.ZoneInfo) -> pyorc.Reader[Any]:
    """A reader that gives raw timestamps, dates and decimals."""
    source.file.seek(0)
    with damage_named(source.name):
        return pyorc.Reader(source.file, timezone=zone, converters=CONVERTERS)


def converter(source: OrcType, target: OrcType) -> _Convert | None:
    """What brings a value of one type to another; None where nothing is to be done.

    Only pairs that :func:`~airflow_provider_acid.merge.orc.schema.can_become` allows come here.
    """
    if target.kind is Kind.STRUCT:
        return _struct_converter(source, target)
    inner = [converter(*pair) for pair in zip(source.children, target.children, strict=True)]
    if not any(inner):
        return None
    if target.kind is Kind.LIST:
        (element,) = inner
        return lambda value: None if value is None else [element(item) for item in value]  # type: ignore[misc]
    of_key, of_value = (convert or _same for convert in inner)
    return lambda value: None if value is None else {of_key(key): of_value(item) for key, item in value.items()}


def _struct_converter(source: OrcType, target: OrcType) -> _Convert | None:
    inner = [converter(*pair) for pair in zip(source.children, target.children, strict=False)]
    missing = (None,) * (len(target.children) - len(inner))
    if not any(inner) and not missing:
        return None
    fields = [convert or _same for convert in inner]

    def convert_struct(value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        return tuple(convert(item) for convert, item in zip(fields, value, strict=True)) + missing

    return convert_struct


def _same(value: Any) -> Any:
    return value


def _pyorc_schema(schema: OrcType) -> pyorc.TypeDescription:
    return pyorc.TypeDescription.from_string(_pyorc_text(schema))


def _pyorc_text(node: OrcType) -> str:
    """The type in pyorc's words, with neutral field names: the table's own may need quoting; the footer gets them."""
    if node.kind is Kind.STRUCT:
        fields = ",".join(f"c{number}:{_pyorc_text(child)}" for number, child in enumerate(node.children))
        return f"struct<{fields}>"
    if node.children:
        name = {Kind.LIST: "array", Kind.MAP: "map"}[node.kind]
        return f"{name}<{','.join(_pyorc_text(child) for child in node.children)}>"
    return str(node)
