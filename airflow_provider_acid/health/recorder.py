"""Takes down what an evaluation sees and publishes it afterwards, a file per table.

Rows go to temporary files of this machine as they come, so that neither 100,000 partitions nor a slow store are felt by
the evaluation. Partitions that it left alone keep the figures of the last time they were looked at.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.health.arrow_form import ROW_GROUP, SCHEMA, newest_rows, table_of, texts_in
from airflow_provider_acid.health.files import TableFile, TableName, day_of, newest_files, now_ms
from airflow_provider_acid.health.parquet_files import rows_in
from airflow_provider_acid.health.renewal import Renewed
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY, HealthStore
from airflow_provider_acid.health.values import HealthState, PartitionHealth, held, partition_health
from airflow_provider_acid.plan.thresholds import CompactionDecision

log = logging.getLogger(__name__)

LONGEST_NAME = 255
"""Of a directory, on local disks and HDFS; a database's and a table's together may have more."""

IN_MEMORY_BYTES = 32 * 1024
"""Of a table's rows: most tables have few partitions, and a process may not have as many files open as tables."""

UNSEEN_DAYS = 7
"""How long a partition is shown that evaluations of written partitions do not look at: it may be dropped."""


@dataclass
class _Spool:
    """The rows of one table so far."""

    file: IO[bytes]
    writer: pq.ParquetWriter
    pending: list[PartitionHealth] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)

    def add(self, health: PartitionHealth) -> None:
        self.seen.add(health.entity.partition or "")
        self.pending.append(health)
        if len(self.pending) == ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        if self.pending:
            self.writer.write_table(table_of(self.pending))
            self.pending.clear()

    def drop(self) -> None:
        """Close and thereby remove the file; what a full disk does not take of it is wanted by nobody any more."""
        for close in (self.writer.close, self.file.close):
            with suppress(OSError, ValueError, pa.ArrowException):
                close()


class EvaluationRecorder:
    """An observer of one evaluation; belongs to one thread. A context manager: it drops its temporary files.

    :param metastore: id of Airflow's connection to the metastore.
    :param looks_at_all: whether a partition that is neither seen nor passed over does not exist any more.
    """

    def __init__(self, metastore: str, *, looks_at_all: bool) -> None:
        self._metastore = metastore
        self._looks_at_all = looks_at_all
        self._began_ms = now_ms()
        self._spools: dict[TableName, _Spool] = {}

    def __enter__(self) -> EvaluationRecorder:
        """The recorder itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close and thereby remove the temporary files."""
        self.drop()

    def drop(self) -> None:
        """Forget everything, and give all files back."""
        for spool in self._spools.values():
            spool.drop()
        self._spools.clear()

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        """Take down a partition that was looked at."""
        entity = seen.place.entity
        health = partition_health(self._metastore, entity, seen.directory, decision, hindrance, now_ms())
        self._spool(entity).add(health)

    def passed_over(self, entity: Entity, reason: str) -> None:
        """Take down a partition that was not."""
        self._spool(entity).held[entity.partition or ""] = reason

    def publish(self, store: HealthStore) -> None:
        """Write one file per table, and tidy up what is too old.

        :raises AcidError: the store cannot be written; tables before that are published.
        """
        known = store.table_files()
        newest = newest_files(file.path for file in known)
        renewed = self._renewed(store)
        written = []
        for table, spool in self._spools.items():
            if len(table.folder.rpartition("/")[2]) > LONGEST_NAME:
                log.warning("%s.%s is not shown on the page: its name is too long", table.database, table.table)
                continue
            again = SCHEMA.empty_table() if renewed is None else renewed.of(table)
            self._finish(spool, table, partial(_known_before, store, newest.get(table), again))
            spool.file.seek(0)
            older = [file for file in known if file.written_ms < self._began_ms]
            store.replace_table(table, spool.file, older)
            written.append(table)
        if renewed is not None:
            renewed.merge_without(written)
        store.forget_old_tables(known)
        store.merge_history(day_of(self._began_ms))

    def _spool(self, entity: Entity) -> _Spool:
        name = TableName(self._metastore, entity.database, entity.table)
        spool = self._spools.get(name)
        if spool is None:
            # Tables come one after the other; what is pending of the one before is written.
            for other in self._spools.values():
                other.flush()
            # Closed by drop.
            file = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, prefix="airflow-acid-health-")  # noqa: SIM115
            spool = self._spools[name] = _Spool(file, pq.ParquetWriter(file, SCHEMA, compression="zstd"))
        return spool

    def _renewed(self, store: HealthStore) -> Renewed | None:
        """What was looked at again before this evaluation began; None where nothing was."""
        older = [file for file in store.renewed_files(self._metastore) if file.written_ms < self._began_ms]
        return Renewed(store, self._metastore, older) if older else None

    def _finish(self, spool: _Spool, table: TableName, before: Callable[[], pa.Table]) -> None:
        spool.flush()
        known = self._kept(spool, before)
        if known.num_rows:
            spool.writer.write_table(known, row_group_size=ROW_GROUP)
        names = {*texts_in(known, "partition"), *spool.seen}
        new = [
            held(self._metastore, Entity(table.database, table.table, name or None), reason)
            for name, reason in spool.held.items()
            if name not in names
        ]
        if new:
            spool.writer.write_table(table_of(new), row_group_size=ROW_GROUP)
        spool.writer.close()

    def _kept(self, spool: _Spool, before: Callable[[], pa.Table]) -> pa.Table:
        """Rows of before, of partitions that this evaluation did not look at but that exist."""
        if self._looks_at_all and not spool.held:
            return SCHEMA.empty_table()
        rows = before()
        rows = rows.filter(~_is_one_of(sorted(spool.seen)))
        exists = _is_one_of(sorted(spool.held))
        if not self._looks_at_all:
            oldest_ms = self._began_ms - UNSEEN_DAYS * MILLISECONDS_PER_DAY
            exists = exists | (pc.field("evaluated_ms") >= oldest_ms)
        return _with_reasons(rows.filter(exists), spool.held)


def _known_before(store: HealthStore, file: TableFile | None, renewed: pa.Table) -> pa.Table:
    """The rows of a table's file, or newer ones of partitions that were looked at again."""
    if file is None:
        return renewed
    with store.open(file) as opened:
        rows = rows_in(opened, file.path)
    return newest_rows(pa.concat_tables([rows, renewed])) if renewed.num_rows else rows


def _is_one_of(names: Sequence[str]) -> pc.Expression:
    return pc.field("partition").isin(pa.array(names, pa.string()))


def _with_reasons(rows: pa.Table, reasons: Mapping[str, str]) -> pa.Table:
    """The rows, those that were passed over now held for that reason."""
    names = texts_in(rows, "partition")
    states = [
        HealthState.HELD.value if name in reasons else state
        for name, state in zip(names, texts_in(rows, "state"), strict=True)
    ]
    texts = [reasons.get(name, text) for name, text in zip(names, texts_in(rows, "reason"), strict=True)]
    rows = rows.set_column(SCHEMA.get_field_index("state"), "state", pa.array(states, pa.string()))
    return rows.set_column(SCHEMA.get_field_index("reason"), "reason", pa.array(texts, pa.string()))
