"""The keys of a bucket's deleted rows, for looking up: 8 bytes each, and a few times that while they are collected.

A key is one number, made of its pair's place among all pairs and of its row id. There are many deletes of few
transactions, so places take few bits; of the pairs themselves there would be too many to leave room for row ids.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.keys.acid_keys import Visibility, count, pairs_of, value_of

_NUMBER_BITS = 63

_RUN_KEYS = 1 << 20
"""At least as many are sorted together, so that there are few runs to look into, and no more than a run's to copy."""


@dataclass(frozen=True)
class Pairs:
    """A range of what :func:`~airflow_provider_acid.merge.keys.acid_keys.pairs_of` makes, both ends included."""

    low: int
    high: int


ALL_PAIRS = Pairs(0, (1 << _NUMBER_BITS) - 1)


@dataclass(frozen=True)
class DeletedKeys:
    """Keys of deleted rows of one bucket.

    :param pairs: write ids with statements, as :func:`~airflow_provider_acid.merge.keys.acid_keys.pairs_of` makes them;
        ascending, each once.
    :param row_id_bits: bits of a number in ``runs`` that are the row id; the others are the place in ``pairs``.
    :param runs: each ascending; a number may be in several.
    """

    pairs: pa.Array[Any]
    row_id_bits: int
    runs: tuple[pa.Array[Any], ...]

    def holds(self, pairs: pa.Array[Any], row_ids: pa.Array[Any]) -> pa.Array[Any]:
        """Which of these keys are deleted.

        :param pairs: ascending.
        """
        start = bisect_left(self.pairs, value_of(pairs[0]), key=value_of)
        end = bisect_right(self.pairs, value_of(pairs[-1]), key=value_of)
        if start == end:
            return pa.repeat(pa.scalar(False), len(pairs))
        places = pc.index_in(pairs, value_set=self.pairs.slice(start, end - start))
        fits = pc.less_equal(row_ids, pa.scalar((1 << self.row_id_bits) - 1, pa.int64()))
        is_near = pc.and_(pc.is_valid(places), fits)
        wanted: pa.Array[Any] = pc.if_else(is_near, _numbers(places, row_ids, self.row_id_bits), None)
        limits = pc.min_max(wanted)
        low, high = limits["min"].as_py(), limits["max"].as_py()
        if low is None:
            return pa.repeat(pa.scalar(False), len(pairs))
        offset = start << self.row_id_bits
        near = self._between(offset + low, offset + high)
        return pc.is_in(wanted, value_set=pc.subtract(near, pa.scalar(offset, pa.int64())))

    def holds_of(self, pair: int, row_ids: pa.Array[Any]) -> pa.Array[Any] | None:
        """Which rows of one write id and statement are deleted; None where none is.

        :param row_ids: ascending; one at least.
        """
        near = self._near(pair, value_of(row_ids[0]), value_of(row_ids[-1]))
        return pc.is_in(row_ids, value_set=near) if len(near) else None

    def has_any(self, pair: int, first_row_id: int, last_row_id: int) -> bool:
        """Whether any row of one write id and statement is deleted between two, both included."""
        return len(self._near(pair, first_row_id, last_row_id)) > 0

    def _near(self, pair: int, first_row_id: int, last_row_id: int) -> pa.Array[Any]:
        """The row ids of its deleted rows between the two."""
        place = bisect_left(self.pairs, pair, key=value_of)
        highest = (1 << self.row_id_bits) - 1
        if place == len(self.pairs) or value_of(self.pairs[place]) != pair or first_row_id > highest:
            return pa.array([], pa.int64())
        offset = place << self.row_id_bits
        near = self._between(offset + first_row_id, offset + min(last_row_id, highest))
        return pc.subtract(near, pa.scalar(offset, pa.int64()))

    def _between(self, low: int, high: int) -> pa.Array[Any]:
        """The numbers in a range, both ends included: a set of all would take several times their memory."""
        found: list[pa.Array[Any]] = []
        for run in self.runs:
            start, end = bisect_left(run, low, key=value_of), bisect_right(run, high, key=value_of)
            found.append(run.slice(start, end - start))
        return pa.concat_arrays(found)


def deleted_keys(batches: Iterable[pa.RecordBatch], visibility: Visibility, wanted: Pairs = ALL_PAIRS) -> DeletedKeys:
    """Collect the valid delete events of one bucket.

    :param batches: their ids; checked, and of this bucket's rows only.
    :param wanted: events of other pairs are left aside.
    :raises UnsupportedTableError: there are so many write ids and so high row ids that no number holds both.
    """
    pieces: list[_Piece] = []
    for batch in batches:
        pairs = pairs_of(batch)
        is_wanted = pc.and_(
            visibility.valid(batch.column("currentTransaction")),
            pc.and_(
                pc.greater_equal(pairs, pa.scalar(wanted.low, pa.int64())),
                pc.less_equal(pairs, pa.scalar(wanted.high, pa.int64())),
            ),
        )
        row_ids = batch.column("rowId").filter(is_wanted)
        if len(row_ids):
            pieces.append(_Piece(encoded(pairs.filter(is_wanted)), row_ids))
    return _packed(pieces)


@dataclass(frozen=True)
class _Piece:
    """Keys as they were read; the pairs are :func:`encoded`."""

    pairs: Any
    row_ids: pa.Array[Any]


def _packed(pieces: list[_Piece]) -> DeletedKeys:
    """Pack the pieces, and take each from the list with that, so that its memory is free for the next."""
    if not pieces:
        nothing: pa.Array[Any] = pa.array([], pa.int64())
        return DeletedKeys(nothing, 0, ())
    pairs = shared_values(piece.pairs for piece in pieces)
    highest = max(pc.max(piece.row_ids).as_py() for piece in pieces)
    row_id_bits = highest.bit_length()
    if row_id_bits + (len(pairs) - 1).bit_length() > _NUMBER_BITS:
        raise UnsupportedTableError(
            "the delete events of a bucket",
            f"name rows of {len(pairs)} write ids and statements with row ids up to {highest}",
            "compact this partition with Hive",
        )
    runs: list[pa.Array[Any]] = []
    gathered: list[pa.Array[Any]] = []
    gathered_keys = 0
    while pieces:
        piece = pieces.pop()
        gathered.append(_numbers(places_of(piece.pairs, pairs), piece.row_ids, row_id_bits))
        gathered_keys += len(piece.row_ids)
        if not pieces or gathered_keys >= _RUN_KEYS:
            runs.append(_run(gathered))
            gathered.clear()
            gathered_keys = 0
    return DeletedKeys(pairs, row_id_bits, tuple(runs))


def _numbers(places: pa.Array[Any], row_ids: pa.Array[Any], row_id_bits: int) -> pa.Array[Any]:
    shifted = pc.shift_left(pc.cast(places, pa.int64()), pa.scalar(row_id_bits, pa.int64()))
    return pc.bit_wise_or(shifted, row_ids)


def _run(pieces: list[pa.Array[Any]]) -> pa.Array[Any]:
    numbers = pa.concat_arrays(pieces)
    return numbers if _ascends(numbers) else numbers.take(pc.sort_indices(numbers))


def _ascends(numbers: pa.Array[Any]) -> bool:
    return count(pc.greater_equal(numbers[1:], numbers[:-1])) == max(len(numbers) - 1, 0)


def encoded(numbers: pa.Array[Any]) -> Any:
    """A piece of such a column, with a dictionary of its own."""
    return pc.dictionary_encode(numbers)


def shared_values(pieces: Iterable[Any]) -> pa.Array[Any]:
    """The values of all pieces, ascending, each once.

    :param pieces: as :func:`encoded` made them; one at least.
    """
    found: pa.Array[Any] = pc.unique(pa.concat_arrays([piece.dictionary for piece in pieces]))
    return found.take(pc.sort_indices(found))


def places_of(piece: Any, values: pa.Array[Any]) -> pa.Array[Any]:
    """Of every row of a piece its value's place, in 32 bits; places are ordered as the values are.

    :param values: as :func:`shared_values` made them.
    """
    places: pa.Array[Any] = pc.index_in(piece.dictionary, value_set=values)
    return places.take(piece.indices)
