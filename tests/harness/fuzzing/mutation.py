"""Bytes of a case: one to eight small damages of a real document."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

_ODD_BYTES = (0, 1, 0x7F, 0x80, 0xFF, ord("["), ord("{"), ord('"'), ord("/"), ord("."), ord("-"))
_ODD_NUMBERS = (
    b"0",
    b"-1",
    b"1e999",
    b"NaN",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"9" * 5000,
)
_ODD_PIECES = (
    b"[" * 2000,
    b'{"a":' * 2000,
    b"../",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"null",
    b"true",
    b"",
)
_NUMBER = re.compile(rb"\d+")
_MOST_DAMAGES = 8
_MOST_BYTES = 4 * 1024 * 1024


def case_bytes(name: str, number: int, seeds: Sequence[bytes]) -> bytes:
    """The document of a case, the same at every call."""
    random = Random(f"{name} {number}")
    document = random.choice(seeds)
    for _ in range(random.randint(1, _MOST_DAMAGES)):
        document = random.choice(_DAMAGES)(random, document, seeds)[:_MOST_BYTES]
    return document


def _span(random: Random, document: bytes) -> tuple[int, int]:
    """A piece that is short as a rule; half of the time near the end, where tails are."""
    size = len(document)
    near_end = max(0, size - 512) if random.random() < 0.5 else 0
    begin = random.randint(near_end, size)
    return begin, min(size, begin + random.choice((1, 2, 4, 8, 64, 1024)))


def _flipped(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    begin, end = _span(random, document)
    if begin == end:
        return document
    return document[:begin] + bytes([document[begin] ^ 1 << random.randrange(8)]) + document[begin + 1 :]


def _odd_byte(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    begin, _ = _span(random, document)
    return document[:begin] + bytes([random.choice(_ODD_BYTES)]) + document[begin + 1 :]


def _cut_out(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    begin, end = _span(random, document)
    return document[:begin] + document[end:]


def _doubled(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    begin, end = _span(random, document)
    return document[:end] + document[begin:end] * random.choice((1, 1, 1, 100)) + document[end:]


def _ended(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    return document[: _span(random, document)[0]]


def _odd_piece(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    begin, end = _span(random, document)
    return document[:begin] + random.choice(_ODD_PIECES) + document[random.choice((begin, end)) :]


def _odd_number(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    numbers = list(_NUMBER.finditer(document[:65_536]))
    if not numbers:
        return _odd_byte(random, document, seeds)
    found = random.choice(numbers)
    return document[: found.start()] + random.choice(_ODD_NUMBERS) + document[found.end() :]


def _spliced(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    other = random.choice(seeds)
    return document[: _span(random, document)[0]] + other[_span(random, other)[0] :]


def _swapped(random: Random, document: bytes, seeds: Sequence[bytes]) -> bytes:
    (first, first_end), (second, second_end) = sorted((_span(random, document), _span(random, document)))
    if first_end > second:
        return document
    middle = document[first_end:second]
    return document[:first] + document[second:second_end] + middle + document[first:first_end] + document[second_end:]


_DAMAGES: tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...] = (
    _flipped,
    _flipped,
    _odd_byte,
    _cut_out,
    _doubled,
    _ended,
    _odd_piece,
    _odd_number,
    _spliced,
    _swapped,
)
