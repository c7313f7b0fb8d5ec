"""Columns of a stripe whose numbers are a few long runs, read run by run; no row of them is decoded.

Ids of rows are such columns. ORC's second run-length encoding (Apache ORC specification, "Run Length Encoding, version
2") has up to 512 numbers that are the same, or as far from each other, in a few bytes. All that is encoded otherwise,
or is odd in any way, is left to ORC's own library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.merge.orc.codec import CodecError, decompress
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.tail import OrcTail, Stripe

_DIRECT_V2 = 2
"""``ColumnEncoding.Kind`` of numbers in the second run-length encoding."""

_PRESENT, _DATA = 0, 1
"""``Stream.Kind`` of the bits that say which values are not NULL, and of the values."""

_MAX_BYTES = 1 << 20
"""Most bytes of all columns in the file; runs for some 50,000,000 rows."""

_SHORT_REPEAT, _DIRECT, _DELTA = 0, 1, 3
"""A run's encoding: its first two bits."""

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits of a number that is written as it is, by their code."""

_FEW_NUMBERS = 8
"""Most of them in a run: writers end a column with such a one, where what is left is too few for another encoding."""

_HEAD_BYTES = 2
"""Of a run of steps: encoding and rows."""

_VARINT_BYTES = 7
"""Most bytes of a number, 7 bits in each: no table has larger ids, and no sum here is larger than 64 bits."""

_MORE, _LAST = bytes(range(0x80, 0x100)), bytes(range(0x80))
"""Bytes of such a number after which another one follows, and those that end it."""

_RUN_BYTES, _RUN_ROWS = _HEAD_BYTES + 2 * _VARINT_BYTES, 128
"""Most bytes of a run, and so many rows at least on average; of shorter runs all rows are as soon decoded."""

_FEW = 64
"""Most stretches of runs."""


@dataclass(frozen=True)
class NumberRange:
    """Numbers that are all the same, or of which each is larger than the one before it; none is negative."""

    first: int
    last: int
    ascends: bool

    @property
    def only(self) -> int | None:
        """The number of all rows; None where there are several."""
        return self.first if self.first == self.last else None


def number_ranges(
    file: BinaryIO, tail: OrcTail, stripe: Stripe, footer: Any, columns: Sequence[int]
) -> tuple[NumberRange, ...] | None:
    """The numbers of some columns, exactly; None where they are not to be had so easily.

    :param footer: of the stripe, checked.
    :param columns: their ids. Neither they nor any before them have a NULL, or nothing is found.
    """
    places = _places(stripe, footer, columns)
    if places is None:
        return None
    start, end = min(place.start for place in places), max(place.stop for place in places)
    if end - start > _MAX_BYTES:
        return None
    file.seek(start)
    packed = file.read(end - start)
    found: list[NumberRange] = []
    for place in places:
        section = packed[place.start - start : place.stop - start]
        try:
            plain = decompress(section, tail.compression, tail.compression_block_bytes)
        except CodecError:
            return None
        numbers = _range_of(plain, stripe.rows)
        if numbers is None:
            return None
        found.append(numbers)
    return tuple(found)


def _places(stripe: Stripe, footer: Any, columns: Sequence[int]) -> list[range] | None:
    """Where the file has the columns' numbers."""
    found: dict[int, range] = {}
    end = stripe.offset
    for stream in footer.streams:
        start, end = end, end + stream.length
        if stream.column <= max(columns) and stream.kind == _PRESENT:
            return None
        if stream.column in columns and stream.kind == _DATA:
            if stream.column in found:
                return None
            found[stream.column] = range(start, end)
    encodings: list[Any] = [message_class("ColumnEncoding").FromString(footer.columns[column]) for column in columns]
    if len(found) != len(columns) or any(encoding.kind != _DIRECT_V2 for encoding in encodings):
        return None
    return [found[column] for column in columns]


@dataclass(frozen=True)
class _Stretch:
    """Runs that follow each other and are encoded alike: of as many rows each, with the same step from row to row.

    :param rows: of all of them.
    :param end: where the next run begins.
    """

    first: int
    last: int
    rows: int
    is_same: bool
    ascends: bool
    end: int


def _range_of(plain: bytes, rows: int) -> NumberRange | None:
    """What all runs make together; None where one is encoded in another way, or they are not as many rows."""
    if len(plain) > _RUN_BYTES * (rows // _RUN_ROWS + _FEW):
        return None
    first = last = -1
    found, is_same, ascends, position = 0, True, True, 0
    for _ in range(_FEW):
        stretch = _stretch(plain, position) if position < len(plain) else None
        if stretch is None:
            break
        first = first if position else stretch.first
        is_same &= stretch.is_same and stretch.first == first
        ascends &= stretch.ascends and stretch.first > last
        last, position, found = stretch.last, stretch.end, found + stretch.rows
    is_whole = position == len(plain) and found == rows
    return NumberRange(first, last, ascends) if is_whole and (is_same or ascends) else None


def _stretch(plain: bytes, start: int) -> _Stretch | None:
    """The runs from a place on that are alike; None where the first is encoded in another way, or is odd."""
    head = plain[start]
    if head >> 6 == _SHORT_REPEAT:
        end = start + 2 + (head >> 3 & 7)
        number = _signed(int.from_bytes(plain[start + 1 : end], "big"))
        is_sound = end <= len(plain) and number >= 0
        return _Stretch(number, number, (head & 7) + 3, True, False, end) if is_sound else None
    if head >> 6 == _DIRECT:
        return _direct(plain, start)
    first = _varint(plain, start + _HEAD_BYTES)
    packed_step = _varint(plain, start + _HEAD_BYTES + len(first))
    number, step = _number(first), _number(packed_step)
    # Differences that differ have a width.
    if head >> 6 != _DELTA or head & 0x3E or not first or not packed_step or number < 0 or step < 0:
        return None
    run_rows = _run_rows(plain, start)
    size = _HEAD_BYTES + len(first) + len(packed_step)
    # Of ids that ascend all but the first number of each run is alike, and that is as long.
    alike = [bytes([byte]) for byte in plain[start : start + size]]
    if step:
        alike[_HEAD_BYTES : _HEAD_BYTES + len(first)] = [*[_MORE] * (len(first) - 1), _LAST]
    runs = (len(plain) - start) // size
    for place, allowed in enumerate(alike, start):
        runs -= len(_every(plain, place, size, runs).lstrip(allowed))
    rows, end = runs * run_rows, start + runs * size
    if not step:
        return _Stretch(number, number, rows, True, rows == 1, end)
    columns = [_every(plain, start + _HEAD_BYTES + place, size, runs) for place in range(len(first))]
    firsts, span = _numbers(columns), step * (run_rows - 1)
    ends = pc.add(firsts, pa.scalar(span, pa.int64()))
    ascends = pc.min(firsts).as_py() >= 0 and pc.all(pc.greater(firsts[1:], ends[:-1]), min_count=0).as_py()
    return _Stretch(number, ends[-1].as_py(), rows, False, ascends, end)


def _direct(plain: bytes, start: int) -> _Stretch | None:
    """A run of a few numbers as they are."""
    if start + _HEAD_BYTES > len(plain) or _run_rows(plain, start) > _FEW_NUMBERS:
        return None
    rows, width = _run_rows(plain, start), _WIDTHS[plain[start] >> 1 & 0x1F]
    size = -(-rows * width // 8)
    end = start + _HEAD_BYTES + size
    bits = int.from_bytes(plain[start + _HEAD_BYTES : end], "big") >> size * 8 - rows * width
    numbers = [_signed(bits >> width * place & (1 << width) - 1) for place in reversed(range(rows))]
    if end > len(plain) or min(numbers) < 0:
        return None
    ascends = all(one < other for one, other in pairwise(numbers))
    return _Stretch(numbers[0], numbers[-1], rows, len(set(numbers)) == 1, ascends, end)


def _run_rows(plain: bytes, start: int) -> int:
    return ((plain[start] & 1) << 8 | plain[start + 1]) + 1


def _every(plain: bytes, start: int, size: int, runs: int) -> bytes:
    """The byte at a place, and those at the same place of the following runs."""
    return plain[start : start + (runs - 1) * size + 1 : size]


def _varint(plain: bytes, start: int) -> bytes:
    """The bytes of the number at a place; none where it is too long."""
    found = plain[start : start + _VARINT_BYTES]
    length = len(found) - len(found.lstrip(_MORE)) + 1
    return found[:length] if length <= len(found) else b""


def _number(varint: bytes) -> int:
    return _signed(sum((byte & 0x7F) << 7 * place for place, byte in enumerate(varint)))


def _numbers(columns: Sequence[bytes]) -> pa.Array[Any]:
    """The same of many; ``columns`` has the first byte of each, the second of each, and so on."""
    numbers: Any = None
    for place, column in enumerate(columns):
        found: Any = pa.Array.from_buffers(pa.uint8(), len(column), [None, pa.py_buffer(column)])
        bits = pc.bit_wise_and(found.cast(pa.int64()), pa.scalar(0x7F, pa.int64()))
        shifted = pc.shift_left(bits, pa.scalar(7 * place, pa.int64()))
        numbers = shifted if numbers is None else pc.bit_wise_or(numbers, shifted)
    signs = pc.negate(pc.bit_wise_and(numbers, pa.scalar(1, pa.int64())))
    signed: pa.Array[Any] = pc.bit_wise_xor(pc.shift_right(numbers, pa.scalar(1, pa.int64())), signs)
    return signed


def _signed(number: int) -> int:
    """A number of which the lowest bit is the sign."""
    return number >> 1 ^ -(number & 1)
