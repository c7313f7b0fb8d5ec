"""An ORC file's tail: read it, and write it again with other types, user metadata and calendar.

File = stripes | stripe statistics ("metadata") | footer | postscript | 1 byte postscript length. A rewritten tail keeps
the stripes and their statistics byte by byte. (Apache ORC specification, "File Tail".)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.merge.orc.bounds import MAGIC, MAX_TAIL_BYTES, check_layout
from airflow_provider_acid.merge.orc.codec import CompressionKind, UnknownCompressionError, compress
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import OrcType, from_footer, to_footer
from airflow_provider_acid.merge.orc.sections import Sections

KEY_INDEX = "hive.acid.key.index"
STATS = "hive.acid.stats"
VERSION = "hive.acid.version"

_FIRST_READ_BYTES = 16_384

_REMEDY = "restore the file from a backup or ask its writer; nothing was changed"


class EncryptedError(ValueError):
    """A file whose columns only its keys open; it may be whole."""


@dataclass(frozen=True)
class Stripe:
    """Where a stripe lies, and how many rows it holds."""

    offset: int
    index_bytes: int
    data_bytes: int
    footer_bytes: int
    rows: int

    @property
    def size_bytes(self) -> int:
        """The whole stripe."""
        return self.index_bytes + self.data_bytes + self.footer_bytes


@dataclass(frozen=True)
class ColumnRange:
    """What the file's statistics say about a column of dates or timestamps.

    :param values: values that are not NULL.
    :param minimum: days, or milliseconds by the writer's clock (by UTC in files of Hive 2, which differs by less than
        a day); None where the writer did not say.
    """

    values: int
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True)
class OrcTail:
    """What a compaction needs to know of a file before it reads rows.

    :param schema: the root type; its column ids are the positions in ``statistics``.
    :param calendar: footer field 11: 0 unknown (Hive 3 writes a hybrid calendar), 1 Julian-Gregorian, 2 proleptic.
    :param columns: how many column ids there are.
    :param tail_bytes: bytes from the end of the stripe data to the end of the file.
    :param statistics: per column id.
    """

    compression: CompressionKind
    compression_block_bytes: int
    rows: int
    row_index_stride: int
    stripes: tuple[Stripe, ...]
    schema: OrcType
    columns: int
    user_metadata: Mapping[str, bytes]
    statistics: tuple[ColumnRange, ...]
    stripe_statistics: int
    calendar: int
    tail_bytes: int


def read_tail(file: BinaryIO, name: str) -> OrcTail:
    """Read and check a file's tail.

    :param name: how errors call the file.
    :raises CorruptFileError: the file is not ORC, or damaged, or truncated.
    :raises UnsupportedTableError: it is compressed in a way that this release does not read, or encrypted.
    """
    size = file.seek(0, io.SEEK_END)
    with tail_errors_named(name):
        return _decode(read_tail_section(file, size), size)


@contextmanager
def tail_errors_named(name: str, reason: str = "is not a complete ORC file") -> Iterator[None]:
    """Turn what is wrong with a tail, or a section of it, into an error that names the file.

    :raises CorruptFileError: in its place.
    :raises UnsupportedTableError: in its place, where the file may be whole.
    """
    try:
        yield
    except (UnknownCompressionError, EncryptedError) as error:
        raise UnsupportedTableError(name, str(error), "compact this partition with Hive") from error
    except (DecodeError, ValueError) as error:
        raise CorruptFileError(name, f"{reason} ({error})", _REMEDY) from error


def reseal(end: bytes, schema: OrcType, user_metadata: Mapping[str, bytes], calendar: int) -> bytes:
    """Replace types, user metadata and calendar in the last bytes of a file.

    :param end: the end of a file just written, at least its whole tail.
    :param schema: the types as Hive declares them; the column encodings must be those that are in the file.
    :returns: ``end`` with its new tail.
    """
    sections = Sections.of(end)
    postscript, footer = sections.postscript, sections.footer
    start = len(end) - tail_bytes(end)
    metadata = end[start : start + postscript.metadataLength]
    del footer.types[:]
    declare_types(footer, schema)
    del footer.metadata[:]
    for name, value in user_metadata.items():
        footer.metadata.add(name=name, value=value)
    if calendar:
        footer.calendar = calendar
    packed = compress(footer.SerializeToString(), sections.compression, postscript.compressionBlockSize)
    postscript.footerLength = len(packed)
    last = postscript.SerializeToString()
    return b"".join((end[:start], metadata, packed, last, bytes([len(last)])))


def stripe_rows(end: bytes) -> tuple[int, ...]:
    """Rows of every stripe, from the last bytes of a file just written."""
    return tuple(stripe.numberOfRows for stripe in Sections.of(end).footer.stripes)


def tail_bytes(end: bytes) -> int:
    """Length of the tail in the last bytes of a file just written."""
    postscript = _postscript(end)
    return int(1 + end[-1] + postscript.footerLength + postscript.metadataLength)


def declare_types(footer: Any, schema: OrcType) -> None:
    """Add the types, as Hive declares them, to a ``Footer`` that has none."""
    for node in to_footer(schema):
        footer.types.add(
            kind=node.kind, subtypes=node.subtypes, fieldNames=node.field_names, **_parameters(node.parameters)
        )


def _parameters(parameters: Mapping[str, int]) -> dict[str, int]:
    names = {"length": "maximumLength", "precision": "precision", "scale": "scale"}
    return {names[name]: value for name, value in parameters.items()}


def _postscript(end: bytes) -> Any:
    return message_class("PostScript").FromString(end[-1 - end[-1] : -1])


def read_tail_section(file: BinaryIO, size: int) -> bytes:
    """The bytes of a file's whole tail.

    :param size: of the file.
    :raises ValueError: the file is not ORC, or truncated, or its tail is longer than any may be.
    :raises DecodeError: its postscript is damaged.
    """
    if size < len(MAGIC) + 2:
        raise ValueError(f"it has {size} bytes")
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin with ORC")
    end = _last(file, size, min(size, _FIRST_READ_BYTES))
    if _postscript(end).magic != MAGIC.decode():
        raise ValueError("it does not end with an ORC postscript")
    wanted = tail_bytes(end)
    if wanted > size:
        raise ValueError(f"its tail should have {wanted} bytes, the file has {size}")
    if wanted > MAX_TAIL_BYTES:
        raise ValueError(f"its tail has {wanted} bytes, {MAX_TAIL_BYTES} at most are read")
    return end[-wanted:] if wanted <= len(end) else _last(file, size, wanted)


def _last(file: BinaryIO, size: int, length: int) -> bytes:
    file.seek(size - length)
    data = file.read(length)
    if len(data) != length:
        raise ValueError(f"it ends after {size - length + len(data)} of {size} bytes")
    return data


def _decode(end: bytes, size: int) -> OrcTail:
    sections = Sections.of(end)
    footer = sections.footer
    if footer.encryption:
        raise EncryptedError("has encrypted columns")
    check_layout(footer, size - len(end))
    stripes = tuple(
        Stripe(stripe.offset, stripe.indexLength, stripe.dataLength, stripe.footerLength, stripe.numberOfRows)
        for stripe in footer.stripes
    )
    return OrcTail(
        compression=sections.compression,
        compression_block_bytes=sections.postscript.compressionBlockSize,
        rows=footer.numberOfRows,
        row_index_stride=footer.rowIndexStride,
        stripes=stripes,
        schema=from_footer(footer.types),
        columns=len(footer.types),
        user_metadata={item.name: item.value for item in footer.metadata},
        statistics=tuple(_column_range(column) for column in footer.statistics),
        stripe_statistics=len(sections.metadata.stripeStats),
        calendar=footer.calendar,
        tail_bytes=len(end),
    )


def _column_range(column: Any) -> ColumnRange:
    minimum, maximum = None, None
    for field, low, high in (
        ("dateStatistics", "minimum", "maximum"),
        ("timestampStatistics", "minimum", "maximum"),
        ("timestampStatistics", "minimumUtc", "maximumUtc"),
        ("intStatistics", "minimum", "maximum"),
    ):
        found = getattr(column, field)
        if found.HasField(low) and found.HasField(high):
            minimum, maximum = getattr(found, low), getattr(found, high)
    return ColumnRange(column.numberOfValues, minimum, maximum)
