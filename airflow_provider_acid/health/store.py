"""Writes what is known of tables, and what happened to them, below ``[hive_acid] health_location``.

Readers never wait: a file appears whole, under a new name, and what it replaces goes afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from shutil import copyfileobj
from typing import IO, BinaryIO

from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.health.files import (
    DOCTOR,
    HISTORY,
    KEPT_DAYS,
    PARTITIONS,
    RENEWED,
    HistoryFile,
    RenewedFile,
    TableFile,
    TableName,
    day_of,
    history_file,
    new_history_file,
    new_renewed_file,
    new_report_file,
    new_table_file,
    now_ms,
    renewed_file,
    report_files,
    table_file,
)
from airflow_provider_acid.health.history import HistoryRecord
from airflow_provider_acid.health.json_lines import from_lines, to_lines
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

MILLISECONDS_PER_DAY = 86_400_000


class HealthStore:
    """Adds to one health location; any number of processes may do so at the same time."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @classmethod
    def at(cls, location: str, storages: Storages) -> HealthStore:
        """The store at a location, which is made if it is missing; its parent has to be there.

        :raises AcidError: it cannot be reached or made.
        """
        parent, _, name = location.rstrip("/").rpartition("/")
        storages.open(parent or "/").make_directory(name)
        return cls(storages.open(location))

    def table_files(self) -> list[TableFile]:
        """Every file with partitions, also those that are replaced already."""
        if not self._storage.exists(PARTITIONS):
            return []
        listed = self._storage.list(PARTITIONS).files
        return [file for entry in listed if (file := table_file(f"{PARTITIONS}/{entry.path}"))]

    def open(self, file: TableFile) -> BinaryIO:
        """A reader of a file; the caller closes it."""
        return self._storage.open_input(file.path)

    def replace_table(self, table: TableName, content: IO[bytes], known: Iterable[TableFile]) -> None:
        """Publish a table's partitions, then remove the files that were known before they were evaluated."""
        self._storage.make_directory(table.folder)
        with self._storage.create(new_table_file(table)) as file:
            copyfileobj(content, file)
        self._storage.delete([old.path for old in known if old.table == table])

    def renewed_files(self, metastore: str) -> list[RenewedFile]:
        """Every file with partitions of a metastore that were looked at again."""
        if not self._storage.exists(RENEWED):
            return []
        listed = self._storage.list(RENEWED).files
        found = (renewed_file(f"{RENEWED}/{entry.path}") for entry in listed)
        return [file for file in found if file is not None and file.metastore == metastore]

    def read(self, file: RenewedFile) -> bytes:
        """The content of a file.

        :raises AcidError: it is not there any more, or cannot be read.
        """
        return self._storage.read(file.path, EXCHANGE_FILE_BYTES)

    def add_renewed(self, metastore: str, content: bytes) -> None:
        """Publish partitions that were looked at again, as one new file."""
        path = new_renewed_file(metastore)
        self._storage.make_directory(path.rpartition("/")[0])
        self._storage.write_new(path, content)

    def replace_report(self, metastore: str, content: bytes) -> None:
        """Publish what the doctor found, and remove what it found before."""
        path = new_report_file(metastore)
        self._storage.make_directory(path.rpartition("/")[0])
        listed = self._storage.list(DOCTOR).files if self._storage.exists(DOCTOR) else ()
        known = report_files([f"{DOCTOR}/{entry.path}" for entry in listed], metastore)
        self._storage.write_new(path, content)
        self._storage.delete([old.path for old in known])

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; those that are gone already count as removed."""
        self._storage.delete(paths)

    def forget_old_tables(self, known: Iterable[TableFile]) -> None:
        """Remove files of tables that nobody has evaluated for :data:`~.files.KEPT_DAYS`."""
        oldest_ms = now_ms() - KEPT_DAYS * MILLISECONDS_PER_DAY
        self._storage.delete([file.path for file in known if file.written_ms < oldest_ms])

    def add_history(self, records: Sequence[HistoryRecord]) -> None:
        """Write records as one new file of the day."""
        if records:
            self._write_history(day_of(records[-1].ended_ms), records)

    def merge_history(self, today: date) -> None:
        """Merge the files of each day that is over into one, and forget days that are too old.

        A process that dies between writing and deleting leaves records twice; readers know them by their ids.
        """
        files: dict[date, list[HistoryFile]] = {}
        if not self._storage.exists(HISTORY):
            return
        for entry in self._storage.list(HISTORY).files:
            file = history_file(f"{HISTORY}/{entry.path}")
            if file is not None:
                files.setdefault(file.day, []).append(file)
        for day, of_day in files.items():
            if day < today - timedelta(days=KEPT_DAYS):
                self._storage.delete([f"{HISTORY}/{day.isoformat()}"])
            elif day < today and len(of_day) > 1:
                self._merge(day, [file.path for file in of_day])

    def _merge(self, day: date, paths: Sequence[str]) -> None:
        try:
            contents = {path: self._storage.read(path, EXCHANGE_FILE_BYTES) for path in paths}
        except AcidError:
            return  # somebody else is merging the same day
        records = {record.id: record for path in paths for record in from_lines(HistoryRecord, contents[path], path)}
        self._write_history(day, sorted(records.values(), key=lambda record: record.ended_ms))
        self._storage.delete(paths)

    def _write_history(self, day: date, records: Sequence[HistoryRecord]) -> None:
        path = new_history_file(day)
        self._storage.make_directory(path.rpartition("/")[0])
        self._storage.write_new(path, to_lines(records))
