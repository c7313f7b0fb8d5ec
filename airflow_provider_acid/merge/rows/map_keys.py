"""Maps that a Python dict does not hold whole: with a key that is repeated, or with 0.0 beside -0.0.

pyorc makes a dict of each map, in which one entry of such keys is left. Statistics count the keys that the file holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.files.source_files import SourceReader
from airflow_provider_acid.merge.orc.schema import Kind, OrcType


class MapKeys:
    """The keys in the maps of a file's rows, counted as Python has them, stripe by stripe."""

    def __init__(self, source: SourceReader) -> None:
        self._source = source
        self._columns = source.tail.columns - sum(1 for _ in source.row_type.walk())
        """Their number before the row's, which is its id."""
        self._row = _branch(source.row_type, self._columns)
        self._found = Counter[int]()

    def begin(self) -> None:
        """Rows of another stripe follow."""
        self._found.clear()

    def add(self, row: tuple[Any, ...]) -> None:
        """Count those of a row."""
        if self._row is not None:
            self._row.count((row,), self._found)

    def check(self, stripe: int) -> None:
        """Compare them with what a stripe's statistics count; all its rows were added.

        :raises UnsupportedTableError: some are missing. Statistics that do not count them are no reason.
        """
        for name, keys in _key_columns(self._source.row_type, self._columns):
            held, found = self._source.values_in_stripe(stripe, keys), self._found[keys]
            if held not in (None, found):
                raise UnsupportedTableError(
                    self._source.name,
                    f"has column {name} with maps that have a key twice, or 0.0 and -0.0: of {held} keys in stripe "
                    f"{stripe} {found} would be left",
                    "write this partition anew with Hive (INSERT OVERWRITE), or compact it with Hive",
                )


@dataclass(frozen=True)
class _Branch:
    """A type with maps in it.

    :param column: its id.
    :param children: those with maps in them, and their places among all.
    """

    kind: Kind
    column: int
    children: tuple[tuple[int, _Branch], ...]

    def count(self, values: Iterable[Any], found: Counter[int]) -> None:
        """Count the keys that are not NULL in values of the type; by the id of the keys' column."""
        for value in values:
            if value is None:
                continue
            if self.kind is Kind.MAP:
                found[self.column + 1] += len(value) - (None in value)
            for place, child in self.children:
                child.count(self._items(value, place), found)

    def _items(self, value: Any, place: int) -> Iterable[Any]:
        if self.kind is Kind.STRUCT:
            return (value[place],)
        return value.values() if place else value  # type: ignore[no-any-return]


def _branch(node: OrcType, column: int) -> _Branch | None:
    children, child_id = [], column + 1
    for place, child in enumerate(node.children):
        branch = _branch(child, child_id)
        children += [(place, branch)] if branch else []
        child_id += sum(1 for _ in child.walk())
    return _Branch(node.kind, column, tuple(children)) if children or node.kind is Kind.MAP else None


def _key_columns(row: OrcType, column: int) -> Iterator[tuple[str, int]]:
    """The ids of all columns of keys, each with the name of the table's column that it is in."""
    for name, child in zip(row.names, row.children, strict=True):
        for node in child.walk():
            column += 1
            if node.kind is Kind.MAP:
                yield name, column + 1
