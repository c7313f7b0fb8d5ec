"""How much memory ORC's C++ writer holds for texts until it ends a stripe.

It looks at what a stripe will take in the file, and ends it by that. Of a column with a dictionary it holds every
different value with what finds it, and a place for every row: 6 times as much where there are few values, 18 times
where each comes twice (measured). Whether a column gets a dictionary it decides by a stripe's first rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MAX_HELD_BYTES = 80 << 20
"""A stripe ends when so much is held."""

_PLACE_BYTES = 8
_ENTRY_BYTES = 160
"""Of an entry of a dictionary, without its text (measured)."""

_SAMPLE_ROWS = 8192
_LEAST_SAMPLE_ROWS = 1024

_DIRECT_SHARE = 0.9
"""Of different values among a sample, from which on a column surely gets no dictionary; the writer asks for 0.8."""


class HeldTexts:
    """An estimate of it, from samples, for one writer."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._written_bytes = 0
        self._direct: tuple[bool, ...] | None = None

    def add(self, columns: Iterable[pa.Array[Any]], written_bytes: int) -> None:
        """Note the columns of rows that were written.

        :param written_bytes: what the writer gave to its file so far; a stripe has ended when that grows.
        """
        if written_bytes != self._written_bytes:
            self._written_bytes, self.held_bytes, self._direct = written_bytes, 0, None
        texts = [text for column in columns for text in _texts(column) if len(text)]
        shares = [_distinct_share(text) for text in texts]
        if self._direct is None or len(self._direct) != len(texts):
            self._direct = tuple(
                len(text) >= _LEAST_SAMPLE_ROWS and share > _DIRECT_SHARE
                for text, share in zip(texts, shares, strict=True)
            )
        for text, share, is_direct in zip(texts, shares, self._direct, strict=True):
            if not is_direct:
                self.held_bytes += len(text) * _PLACE_BYTES
                self.held_bytes += int(share * (len(text) * _ENTRY_BYTES + text.nbytes))


def _distinct_share(text: Any) -> float:
    sample = text.slice(0, _SAMPLE_ROWS)
    distinct: int = pc.count_distinct(sample).as_py()
    return distinct / len(sample)


def _texts(column: Any) -> Iterator[Any]:
    if pa.types.is_string(column.type):
        yield column
    elif pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _texts(child)
    elif pa.types.is_map(column.type):
        yield from _texts(column.keys)
        yield from _texts(column.items)
    elif pa.types.is_list(column.type):
        yield from _texts(column.flatten())
