"""What was written, by write id, and hence what every snapshot must read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from tests.harness.acid_reader import RowId

Values = tuple[object, ...]


class Truth:
    """The rows and the delete events of every write id, whatever became of it."""

    def __init__(self) -> None:
        self._inserted: dict[int, dict[RowId, Values]] = defaultdict(dict)
        self._deleted: dict[int, set[RowId]] = defaultdict(set)
        self._overwrites: set[int] = set()

    def insert(self, row_id: RowId, values: Values) -> None:
        """A row came into being."""
        assert row_id not in self._inserted[row_id[0]]
        self._inserted[row_id[0]][row_id] = values

    def delete(self, row_id: RowId, by_write_id: int) -> None:
        """A row was deleted."""
        self._deleted[by_write_id].add(row_id)

    def overwrite(self, write_id: int) -> None:
        """Everything of smaller write ids was replaced."""
        self._overwrites.add(write_id)

    def rows(self, committed: Collection[int]) -> Mapping[RowId, Values]:
        """What a snapshot reads that trusts these write ids, and no others."""
        floor = max((write_id for write_id in self._overwrites if write_id in committed), default=0)
        trusted = [write_id for write_id in committed if write_id >= floor]
        deleted = {row_id for write_id in trusted for row_id in self._deleted.get(write_id, ())}
        return {
            row_id: values
            for write_id in trusted
            for row_id, values in self._inserted.get(write_id, {}).items()
            if row_id not in deleted
        }
