"""Rows of Hive 3.1's compaction queue and its history as they are stored, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import select
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.database.database import HiveTable
from airflow_provider_acid.metastore.hive3.row_notes import RowNotes
from airflow_provider_acid.metastore.thrift.stringable_map import parse_stringable_map
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

POOL_PROPERTY = "airflow_provider_acid.pool"
"""Property of a request that names its pool, for which Hive 3.1 has no column."""

ENQUEUED_PROPERTY = "airflow_provider_acid.enqueued_ms"
"""Property of a request that tells when it was made, by the database's clock."""

FIELDS = (
    "ID",
    "DATABASE",
    "TABLE",
    "PARTITION",
    "STATE",
    "TYPE",
    "TBLPROPERTIES",
    "WORKER_ID",
    "START",
    "RUN_AS",
    "HIGHEST_WRITE_ID",
    "META_INFO",
    "HADOOP_JOB_ID",
)
"""What queue and history have in common, after ``CQ_`` and ``CC_``."""

INITIATED, WORKING, READY, SUCCEEDED, FAILED, ATTEMPTED = "i", "w", "r", "s", "f", "a"

_STATES = {
    INITIATED: CompactionState.INITIATED,
    WORKING: CompactionState.WORKING,
    READY: CompactionState.READY_FOR_CLEANING,
    SUCCEEDED: CompactionState.SUCCEEDED,
    FAILED: CompactionState.FAILED,
    ATTEMPTED: CompactionState.DID_NOT_INITIATE,
}
LETTERS = {
    CompactionState.INITIATED: (INITIATED,),
    CompactionState.WORKING: (WORKING,),
    CompactionState.READY_FOR_CLEANING: (READY, WORKING),
}
"""Which stored states a row of the queue may be in that is in this one; see :meth:`StoredRow.row`."""

_TYPES = {"a": "major", "i": "minor"}


@dataclass(frozen=True)
class StoredRow:
    """One row.

    :param values: by the names in :data:`FIELDS`, as stored.
    :param end_ms: when it left the queue; None while it is there.
    """

    values: Mapping[str, Any]
    end_ms: int | None = None

    @property
    def id(self) -> int:
        """The row's id."""
        return int(self.values["ID"])

    @property
    def state(self) -> str:
        """Hive's letter."""
        return str(self.values["STATE"])

    @property
    def worker_id(self) -> str | None:
        """Who works on it, or did."""
        return self.values["WORKER_ID"] or None

    @property
    def entity(self) -> Entity:
        """What is to be compacted."""
        return Entity(self.values["DATABASE"], self.values["TABLE"], self.values["PARTITION"] or None)

    @property
    def meta_info(self) -> bytes | None:
        """The notes as stored."""
        stored = self.values["META_INFO"]
        return None if stored is None else bytes(stored)

    @property
    def notes(self) -> RowNotes:
        """The notes; those of a row nobody of us has claimed say only its pool."""
        notes = RowNotes.parse(self.meta_info)
        return replace(notes, pool=notes.pool or self.properties.get(POOL_PROPERTY))

    @property
    def properties(self) -> dict[str, str]:
        """The request's properties; empty where they cannot be read."""
        try:
            return parse_stringable_map(self.values["TBLPROPERTIES"])
        except MetastoreError:
            return {}

    def row(self) -> CompactionRow:
        """What the row means.

        A claim of ours whose result is published is ready for cleaning, although the database says 'working'; an
        attempted row with our note on it is a refused one, and so is a failed one, as release 0.1 wrote them.
        """
        notes, state = self.notes, _STATES.get(self.state, CompactionState.UNKNOWN)
        published = notes.published
        if state is CompactionState.WORKING and published is not None:
            state = CompactionState.READY_FOR_CLEANING
        if notes.refused and self.state in (ATTEMPTED, FAILED):
            state = CompactionState.REFUSED
        enqueued = self.properties.get(ENQUEUED_PROPERTY, "")
        return CompactionRow(
            id=self.id,
            entity=self.entity,
            type=self._type(),
            state=state,
            worker_id=None if state is CompactionState.READY_FOR_CLEANING else self.worker_id,
            pool=notes.pool,
            start_ms=self.values["START"] or None,
            end_ms=self.end_ms,
            enqueue_ms=int(enqueued) if enqueued.isascii() and enqueued.isdigit() else None,
            highest_write_id=self.values["HIGHEST_WRITE_ID"] or None,
            next_txn_id=published.next_txn_id if published else None,
            txn_id=notes.txn_id,
            commit_ms=published.at_ms if published else None,
            error_message=notes.message,
            run_as=self.values["RUN_AS"] or None,
            job_id=self.values["HADOOP_JOB_ID"] or None,
            newest_lock_id=published.newest_lock_id if published else None,
        )

    def info(self) -> CompactionInfo:
        """What a claim carries around."""
        return replace(CompactionInfo.of_row(self.row()), properties=self.values["TBLPROPERTIES"])

    def _type(self) -> str:
        letter = str(self.values["TYPE"])
        return _TYPES.get(letter, f"type {letter}")


def stored_rows(
    connection: Connection, table: HiveTable, prefix: str, *conditions: ColumnElement[bool]
) -> list[StoredRow]:
    """The rows of the queue (prefix ``CQ_``) or of the history (``CC_``) that meet all conditions, by id."""
    columns = [table[prefix + name].label(name) for name in FIELDS]
    if prefix + "END" in table:
        columns.append(table[prefix + "END"].label("END"))
    found = connection.execute(select(*columns).where(*conditions).order_by(table[prefix + "ID"])).mappings()
    return [
        StoredRow({name: values[name] for name in FIELDS}, end_ms=values.get("END") or None) for values in found.all()
    ]
