"""Columns of few different numbers, read in pieces: each value once, and of every row only its place among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


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
