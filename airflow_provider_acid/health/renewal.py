"""Figures of partitions that were looked at again after work on them, one small file for all of a task's.

The next evaluation of their tables takes them over; where there is none, every :data:`MERGED_FILES` files become one.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.exceptions import AcidError, CorruptFileError
from airflow_provider_acid.health.arrow_form import ROW_GROUP, SCHEMA, newest_rows, table_of
from airflow_provider_acid.health.files import KEPT_DAYS, RenewedFile, TableName, now_ms
from airflow_provider_acid.health.parquet_files import rows_in
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY, HealthStore
from airflow_provider_acid.health.values import PartitionHealth, partition_health
from airflow_provider_acid.plan.thresholds import CompactionDecision

log = logging.getLogger(__name__)

MERGED_FILES = 100


class RenewalRecorder:
    """An observer of one task's second look; belongs to one thread.

    :param metastore: id of Airflow's connection to the metastore.
    """

    def __init__(self, metastore: str) -> None:
        self._metastore = metastore
        self._partitions: list[PartitionHealth] = []

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        """Take down a partition."""
        entity = seen.place.entity
        health = partition_health(self._metastore, entity, seen.directory, decision, hindrance, now_ms())
        self._partitions.append(health)

    def passed_over(self, entity: Entity, reason: str) -> None:
        """What is not looked at keeps its figures."""

    def publish(self, store: HealthStore) -> None:
        """Write one file.

        :raises AcidError: the store cannot be written.
        """
        if not self._partitions:
            return
        store.add_renewed(self._metastore, _content(table_of(self._partitions)))
        files = store.renewed_files(self._metastore)
        if len(files) >= MERGED_FILES:
            Renewed(store, self._metastore, files).merge_without(())


class Renewed:
    """What a metastore's files of partitions that were looked at again hold.

    :param files: those that somebody else has merged meanwhile are passed over: their rows are in a newer one.
    """

    def __init__(self, store: HealthStore, metastore: str, files: Sequence[RenewedFile]) -> None:
        self._store = store
        self._metastore = metastore
        self._read: list[str] = []
        tables = [SCHEMA.empty_table()]
        for file in files:
            try:
                content = store.read(file)
            except CorruptFileError as error:
                log.warning("the health store's file is passed over: %s", error)
                continue
            except AcidError:
                continue
            self._read.append(file.path)
            tables.append(rows_in(io.BytesIO(content), file.path))
        self._rows = newest_rows(pa.concat_tables(tables))

    def of(self, table: TableName) -> pa.Table:
        """The rows of one table."""
        return self._rows.filter((pc.field("database") == table.database) & (pc.field("table") == table.table))

    def merge_without(self, tables: Collection[TableName]) -> None:
        """Make one file of all, without these tables, and without partitions that are too old.

        A process that dies between writing and deleting leaves rows twice; of equal ones readers take one.
        """
        oldest_ms = now_ms() - KEPT_DAYS * MILLISECONDS_PER_DAY
        left = self._rows.filter(pc.field("evaluated_ms") >= oldest_ms)
        for table in tables:
            left = left.filter((pc.field("database") != table.database) | (pc.field("table") != table.table))
        if left.num_rows == self._rows.num_rows and len(self._read) < 2:
            return
        if left.num_rows:
            self._store.add_renewed(self._metastore, _content(left))
        self._store.delete(self._read)


def _content(rows: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file, row_group_size=ROW_GROUP, compression="zstd")
    return file.getvalue()
