"""Footers of stripes, read and checked before ORC's C++ library sees the stripe.

That library takes columns, sizes of dictionaries and names of time zones from them as they are: it reads the zone's
file wherever the name leads, and takes memory for a dictionary before it reads one.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from airflow_provider_acid.merge.orc.codec import decompress
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.tail import OrcTail, Stripe, tail_errors_named

_DICTIONARIES = (1, 3)
"""``ColumnEncoding.Kind`` of both forms of a dictionary."""

_ENCODINGS = range(4)

_LENGTH, _DICTIONARY_DATA = 2, 3
"""``Stream.Kind`` of a dictionary's lengths, and of its texts."""

BLOOM_FILTER_UTF8 = 8
_BLOOM_FILTERS = (7, BLOOM_FILTER_UTF8)
"""``Stream.Kind`` of a column's Bloom filters, in their older and their newer form."""

_ENTRIES_PER_BYTE = 64
"""Most entries of a dictionary for each byte of its streams: different texts do not compress so well."""

_MAX_STREAMS_PER_COLUMN = 16

_ZONE = re.compile(r"[A-Za-z0-9_+:-]+(/[A-Za-z0-9_+:-]+)*")
_MAX_ZONE_CHARACTERS = 100


def stripe_footer(file: BinaryIO, tail: OrcTail, stripe: Stripe, name: str) -> Any:
    """A stripe's ``StripeFooter``.

    :param tail: of the file, read and checked.
    :param name: how errors call the file.
    :raises CorruptFileError: the footer is damaged, or says what cannot be true.
    """
    file.seek(stripe.offset + stripe.index_bytes + stripe.data_bytes)
    packed = file.read(stripe.footer_bytes)
    with tail_errors_named(name, "has a damaged stripe footer"):
        plain = decompress(packed, tail.compression, tail.compression_block_bytes)
        parts: Any = message_class("StripeFooterParts").FromString(plain)
        if len(parts.streams) > _MAX_STREAMS_PER_COLUMN * tail.columns:
            raise ValueError(f"it has {len(parts.streams)} streams of {tail.columns} columns")
        footer: Any = message_class("StripeFooter").FromString(plain)
        _check(footer, tail, stripe)
    return footer


def zone_of(footer: Any) -> str:
    """The time zone in which a stripe counts its timestamps; ``''`` where it names none.

    :raises ValueError: what it names is no zone.
    """
    zone = footer.writerTimezone
    if not zone:
        return ""
    if not isinstance(zone, str) or len(zone) > _MAX_ZONE_CHARACTERS or not _ZONE.fullmatch(zone):
        raise ValueError(f"{zone[:_MAX_ZONE_CHARACTERS]!r} is no time zone")
    return zone


def bloom_filters(footer: Any) -> frozenset[tuple[int, int]]:
    """The columns of which a stripe has Bloom filters, each with the form of these."""
    return frozenset((stream.column, stream.kind) for stream in footer.streams if stream.kind in _BLOOM_FILTERS)


def _check(footer: Any, tail: OrcTail, stripe: Stripe) -> None:
    zone_of(footer)
    if len(footer.columns) != tail.columns:
        raise ValueError(f"it has encodings of {len(footer.columns)} columns, the file has {tail.columns} columns")
    if sum(stream.length for stream in footer.streams) > stripe.index_bytes + stripe.data_bytes:
        raise ValueError("its streams are longer than the stripe")
    dictionary_bytes = [0] * tail.columns
    for stream in footer.streams:
        if stream.column >= tail.columns:
            raise ValueError(f"it has a stream of column {stream.column}, the file has {tail.columns} columns")
        if stream.kind in (_LENGTH, _DICTIONARY_DATA):
            dictionary_bytes[stream.column] += stream.length
    for column, packed in enumerate(footer.columns):
        encoding: Any = message_class("ColumnEncoding").FromString(packed)
        if encoding.kind not in _ENCODINGS:
            raise ValueError(f"it has encoding {encoding.kind}, which is not known")
        most = _ENTRIES_PER_BYTE * dictionary_bytes[column] if encoding.kind in _DICTIONARIES else 0
        if encoding.dictionarySize > most:
            raise ValueError(f"a dictionary of {encoding.dictionarySize} entries is more than its streams can hold")
