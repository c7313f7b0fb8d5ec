"""The tables of a run, and the files that its writers make there as Hive's do."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from tests.harness.acid_history.hive_files import Event, acid_file, bucket_of, delete_event, insert_event
from tests.harness.acid_reader import RowId, Snapshot, read_table
from tests.harness.concurrency.ledger import Rows

COLUMNS = {"k": "bigint", "v": "bigint"}
PARTITION_KEYS = {"p": "string"}


@dataclass(frozen=True)
class RunTable:
    """A full-ACID table with the columns :data:`COLUMNS`.

    :param partitions: names of its partitions; None for the whole of an unpartitioned table.
    :param hive_partition: the one in which a real Hive has rows of its own, which nobody else may overwrite.
    :param insert_partition: the one in which rows are only inserted and overwritten, so that every minor compaction
        there makes one directory.
    """

    database: str
    name: str
    location: Path
    partitions: tuple[str | None, ...]
    hive_partition: str | None = None
    insert_partition: str | None = None

    @property
    def hive_session(self) -> str:
        """Under which a real Hive's statements stand in the ledger."""
        return f"{self.name}, written by Hive"

    @property
    def places(self) -> tuple[Place, ...]:
        """Its partitions."""
        return tuple(Place(self, partition) for partition in self.partitions)


@dataclass(frozen=True)
class Place:
    """A partition, or an unpartitioned table."""

    table: RunTable
    partition: str | None

    def __str__(self) -> str:
        return f"{self.table.name}/{self.partition or ''}"

    @property
    def entity(self) -> Entity:
        """Its name for the compactor."""
        return Entity(self.table.database, self.table.name, self.partition)

    @property
    def is_hives(self) -> bool:
        """Whether a real Hive has rows here."""
        return self.partition is not None and self.partition == self.table.hive_partition

    @property
    def is_for_inserts(self) -> bool:
        """Whether no row is changed or deleted here."""
        return self.partition is not None and self.partition == self.table.insert_partition

    @property
    def folder(self) -> Path:
        """Where its directories lie."""
        return self.table.location / (self.partition or "")

    def read(self, snapshot: Snapshot) -> dict[RowId, tuple[int, int]]:
        """Key and value of every row that a snapshot sees.

        :raises AssertionError: two rows have the same id.
        :raises FileNotFoundError: what was listed is gone.
        """
        rows = read_table(self.folder, COLUMNS, snapshot)
        return {row.row_id: (int(str(row.values["k"])), int(str(row.values["v"]))) for row in rows}

    def write_rows(self, directory: str, write_id: int, statement: int, buckets: Sequence[Rows]) -> None:
        """New rows, numbered from 0 in every bucket file."""
        for bucket, rows in enumerate(buckets):
            in_file = 1 << 29 | bucket << 16 | statement
            events = [insert_event((write_id, in_file, number), row) for number, row in enumerate(sorted(rows.items()))]
            self._write_file(directory, bucket, events)

    def write_deletes(self, write_id: int, statement: int, row_ids: Sequence[RowId]) -> None:
        """Delete events, each in the file of its row's bucket."""
        buckets: dict[int, list[RowId]] = defaultdict(list)
        for row_id in sorted(row_ids):
            buckets[bucket_of(row_id)].append(row_id)
        for bucket, ids in buckets.items():
            events = [delete_event(row_id, write_id) for row_id in ids]
            self._write_file(f"delete_delta_{write_id:07d}_{write_id:07d}_{statement:04d}", bucket, events)

    def listing(self) -> list[str]:
        """All names below it, for the report of a failure; others may be deleting meanwhile."""
        found = [Path(folder, name) for folder, folders, files in os.walk(self.folder) for name in [*folders, *files]]
        return sorted(str(path.relative_to(self.folder)) for path in found)

    def _write_file(self, directory: str, bucket: int, events: Iterable[Event]) -> None:
        file = self.folder / directory / f"bucket_{bucket:05d}"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as output:
            output.write(acid_file(events, COLUMNS))


def delta_name(write_id: int, statement: int) -> str:
    """The directory of a statement's new rows."""
    return f"delta_{write_id:07d}_{write_id:07d}_{statement:04d}"


def base_name(write_id: int) -> str:
    """The directory of an INSERT OVERWRITE."""
    return f"base_{write_id:07d}"


def by_key(rows: Mapping[RowId, tuple[int, int]]) -> dict[int, RowId]:
    """The row ids of the rows with these keys."""
    return {key: row_id for row_id, (key, _) in rows.items()}
