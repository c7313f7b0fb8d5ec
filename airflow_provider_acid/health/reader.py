"""Reads what is kept below ``[hive_acid] health_location``, for the page; belongs to a process, not to a thread.

Figures of all partitions stay in memory as Arrow columns, 100,000 of them in about 20 MB; files are read again only
where they changed. Directories stay in the files, and are read for one partition at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import AcidError, CorruptFileError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.health.arrow_form import FIGURES, KEYS, SCHEMA, has_key, key_of, newest_rows
from airflow_provider_acid.health.files import (
    DOCTOR,
    HISTORY,
    PARTITIONS,
    RENEWED,
    TableFile,
    TableName,
    day_of,
    history_file,
    newest_files,
    now_ms,
    renewed_file,
    report_files,
)
from airflow_provider_acid.health.history import HistoryRecord, RecordKind
from airflow_provider_acid.health.json_lines import from_lines
from airflow_provider_acid.health.parquet_files import rows_in
from airflow_provider_acid.health.report import Report, ReportedFinding
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

REFRESH_SECONDS = 5.0
"""Time between two listings of the location, however many people look at the page."""

WAIT_SECONDS = 10.0
"""Longest wait for another thread that reads: each holds one of the 40 that serve all of Airflow's API."""

HISTORY_DAYS = 30
"""Days of history that are read."""

LAST_COMPACTION = "last_compaction_ms"


@dataclass(frozen=True)
class Health:
    """All that is known at one moment.

    :param partitions: the columns :data:`~.arrow_form.FIGURES` and :data:`LAST_COMPACTION`, a row per partition.
    :param history: newest first.
    """

    partitions: pa.Table
    history: tuple[HistoryRecord, ...]


class HealthReader:
    """Reads one location; for any number of threads.

    :param open_storage: opens the location; called again for each refresh, since a connection may be changed.
    """

    def __init__(self, open_storage: Callable[[], Storage], clock: Callable[[], float] = time.monotonic) -> None:
        self._open_storage = open_storage
        self._clock = clock
        self._lock = threading.Lock()
        self._refreshed: float | None = None
        self._failed: tuple[float, AcidError] | None = None
        self._files: Mapping[TableName, TableFile] = {}
        self._tables: dict[str, pa.Table] = {}
        self._records: dict[str, list[HistoryRecord]] = {}
        self._health = Health(_with_last_compactions(_figures({}), ()), ())

    def health(self) -> Health:
        """What is known, at most :data:`REFRESH_SECONDS` old.

        :raises AcidError: the location cannot be read, or could not be a moment ago.
        """
        with self._alone():
            now = self._clock()
            if self._refreshed is None or now - self._refreshed >= REFRESH_SECONDS:
                self._refresh_unless_just_failed(now)
                self._refreshed = now
            return self._health

    def directories(self, metastore: str, entity: Entity) -> list[dict[str, object]]:
        """The directories of one partition, as objects with the fields of :class:`~.values.DirectoryHealth`.

        :raises AcidError: the location cannot be read.
        """
        self.health()
        try:
            return self._directories(metastore, entity)
        except AcidError:
            # A newer evaluation has replaced the file since the last refresh.
            with self._alone():
                self._refreshed = None
            self.health()
            return self._directories(metastore, entity)

    def report(self, metastore: str) -> Report | None:
        """What the doctor found last at a metastore; None where it has not looked.

        :raises AcidError: the location cannot be read.
        """
        storage = self._open_storage()
        for attempts_left in (2, 1, 0):
            files = report_files(_paths(storage, DOCTOR), metastore)
            if not files:
                break
            newest = files[-1]
            try:
                content = storage.read(newest.path)
            except AcidError:
                if not attempts_left:
                    raise
                continue  # another one has replaced it
            return Report(newest.written_ms, tuple(from_lines(ReportedFinding, content, newest.path)))
        return None

    def _directories(self, metastore: str, entity: Entity) -> list[dict[str, object]]:
        wanted = has_key(key_of(metastore, entity))
        file = self._files.get(TableName(metastore, entity.database, entity.table))
        holding = [path for path, rows in self._tables.items() if renewed_file(path) and rows.filter(wanted).num_rows]
        paths = holding if file is None else [file.path, *holding]
        storage = self._open_storage()
        found: list[dict[str, Any]] = []
        for path in paths:
            with storage.open_input(path) as source:
                rows = rows_in(source, path, ["evaluated_ms", "directories"], wanted)
            found.extend(rows.to_pylist())
        newest = max(reversed(found), key=lambda row: row["evaluated_ms"] or 0, default=None)
        return [] if newest is None else newest["directories"] or []

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            reason = f"is being read by another request, for longer than {WAIT_SECONDS:g} s"
            raise StorageError("[hive_acid] health_location", reason, "look whether its storage answers")
        try:
            yield
        finally:
            self._lock.release()

    def _refresh_unless_just_failed(self, now: float) -> None:
        """Whoever waited for a storage that does not answer, is told so, and does not wait for it once more."""
        if self._failed is not None and now - self._failed[0] < REFRESH_SECONDS:
            error = self._failed[1]
            raise StorageError(error.subject, error.reason, error.remedy)
        try:
            self._refresh(self._open_storage())
        except AcidError as error:
            self._failed = self._clock(), error
            raise
        self._failed = None

    def _refresh(self, storage: Storage) -> None:
        files, tables = self._read_tables(storage)
        records = self._read_history(storage)
        if tables.keys() == self._tables.keys() and records.keys() == self._records.keys():
            return
        unique = {record.id: record for of_file in records.values() for record in of_file}
        history = tuple(sorted(unique.values(), key=lambda record: record.ended_ms, reverse=True))
        self._files, self._tables, self._records = files, tables, records
        self._health = Health(_with_last_compactions(_figures(tables), history), history)

    def _read_tables(self, storage: Storage) -> tuple[Mapping[TableName, TableFile], dict[str, pa.Table]]:
        """The tables' files that count, and the figures of all; one may go meanwhile, when a newer one is there."""
        for attempts_left in (2, 1, 0):
            # These first: an evaluation takes them away when its own files are there.
            renewed = [path for path in _paths(storage, RENEWED) if renewed_file(path)]
            files = newest_files(_paths(storage, PARTITIONS))
            paths = [*(file.path for file in files.values()), *renewed]
            try:
                tables = {path: self._figures_in(storage, path) for path in paths}
            except AcidError:
                if not attempts_left:
                    raise
            else:
                break
        return files, tables

    def _figures_in(self, storage: Storage, path: str) -> pa.Table:
        known = self._tables.get(path)
        if known is not None:
            return known
        with storage.open_input(path) as source:
            return rows_in(source, path, FIGURES)

    def _read_history(self, storage: Storage) -> dict[str, list[HistoryRecord]]:
        oldest = day_of(now_ms()) - timedelta(days=HISTORY_DAYS)
        records = {}
        for path in _paths(storage, HISTORY):
            file = history_file(path)
            if file is None or file.day < oldest:
                continue
            known = self._records.get(path)
            try:
                if known is None:
                    known = from_lines(HistoryRecord, storage.read(path, EXCHANGE_FILE_BYTES), path)
                records[path] = known
            except CorruptFileError as error:
                log.warning("the health store's file is passed over: %s", error)
                records[path] = []
            except AcidError:
                continue  # merged into another file, which the next refresh finds
        return records


def _paths(storage: Storage, folder: str) -> list[str]:
    if not storage.exists(folder):
        return []
    return [f"{folder}/{entry.path}" for entry in storage.list(folder).files]


def _figures(tables: Mapping[str, pa.Table]) -> pa.Table:
    fields = [SCHEMA.field(name) for name in FIGURES]
    rows = pa.concat_tables([pa.schema(fields).empty_table(), *tables.values()])
    # A table's own file has each partition once.
    return (newest_rows(rows) if any(map(renewed_file, tables)) else rows).combine_chunks()


def _with_last_compactions(partitions: pa.Table, history: Sequence[HistoryRecord]) -> pa.Table:
    """The table with one more column: when the last compaction of each ended that is on record."""
    last: dict[tuple[str, str, str, str], int] = {}
    for record in history:
        if record.kind is RecordKind.COMPACTION and record.state == "compacted":
            key = key_of(record.metastore, record.entity)
            last[key] = max(last.get(key, 0), record.ended_ms)
    columns = [[key[place] for key in last] for place in range(len(KEYS))]
    known = pa.table(
        [*(pa.array(column, pa.string()) for column in columns), pa.array(last.values(), pa.int64())],
        names=[*KEYS, LAST_COMPACTION],
    )
    if partitions.num_rows == 0:
        return partitions.append_column(LAST_COMPACTION, pa.array([], pa.int64()))
    return partitions.join(known, keys=KEYS, join_type="left outer").combine_chunks()
