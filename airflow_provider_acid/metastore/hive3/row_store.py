"""Reading, changing and moving stored rows of Hive 3.1's compaction queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlalchemy import func, or_, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase
from airflow_provider_acid.metastore.database.history import move_to_history
from airflow_provider_acid.metastore.hive3.clock import MetastoreClock
from airflow_provider_acid.metastore.hive3.row_notes import RowNotes
from airflow_provider_acid.metastore.hive3.stored_rows import FIELDS, INITIATED, StoredRow, stored_rows


class RowStore:
    """The queue and its history. What is changed is changed on condition that it is what was looked at.

    :param database: the metastore's database.
    :raises MetastoreVersionError: a table or column is not there.
    """

    def __init__(self, database: MetastoreDatabase, clock: MetastoreClock) -> None:
        self._database = database
        self._clock = clock
        self._queue = database.table("COMPACTION_QUEUE", ["CQ_" + name for name in FIELDS])
        self._history = database.table("COMPLETED_COMPACTIONS", ["CC_END", *("CC_" + name for name in FIELDS)])

    def initiated(self) -> list[StoredRow]:
        """Requests that wait for a worker, by id."""
        is_initiated = self._queue["CQ_STATE"] == INITIATED
        return self._database.read(
            "compaction queue", lambda connection: stored_rows(connection, self._queue, "CQ_", is_initiated)
        )

    def update(self, connection: Connection, row: StoredRow, changes: Mapping[str, object]) -> bool:
        """Change columns of a row in the queue; False where it is no longer what was looked at."""
        values = {self._queue["CQ_" + name].name: value for name, value in changes.items()}
        return connection.execute(update(self._queue.table).where(*self._same(row)).values(values)).rowcount == 1

    def move(self, connection: Connection, row: StoredRow, state: str, notes: RowNotes) -> bool:
        """Move a row to history; False where it is no longer what was looked at."""
        return move_to_history(
            connection,
            self._queue,
            self._history,
            *self._same(row),
            state=state,
            end_ms=self._clock.now_ms(connection),
            changes={"CC_META_INFO": notes.stored()},
        )

    def _same(self, row: StoredRow) -> list[ColumnElement[bool]]:
        meta_info = self._queue["CQ_META_INFO"]
        return [
            self._queue["CQ_ID"] == row.id,
            self._queue["CQ_STATE"] == row.state,
            self._database.equals(self._queue["CQ_WORKER_ID"], row.values["WORKER_ID"]),
            meta_info.is_(None) if row.meta_info is None else meta_info == row.meta_info,
        ]

    def find(self, id: int) -> StoredRow | None:
        """The row of that id; None where it is neither in the queue nor in the history."""
        found = self.rows(id)
        return found[0] if found else None

    def rows(
        self, id: int | None = None, entity: Entity | None = None, live_states: Collection[str] = ()
    ) -> list[StoredRow]:
        """Rows of queue and history, by id.

        :param id: only the one of that id.
        :param entity: only those of this table or partition.
        :param live_states: only those of the queue, in one of these states; both sorts of rows where empty.
        """
        places = ((self._queue, "CQ_"), (self._history, "CC_"))

        def look(connection: Connection) -> dict[int, StoredRow]:
            found = {}
            # The queue first: a row that moves meanwhile is seen twice, and counts as history, but is never missed.
            for table, prefix in places[:1] if live_states else places:
                conditions = _conditions(table, prefix, id, entity, live_states)
                found.update({row.id: row for row in stored_rows(connection, table, prefix, *conditions)})
            return found

        rows = self._database.read("compactions" if id is None else f"compaction {id}", look)
        return [rows[id] for id in sorted(rows)]


def _conditions(
    table: HiveTable, prefix: str, id: int | None, entity: Entity | None, states: Collection[str]
) -> Iterator[ColumnElement[bool]]:
    if id is not None:
        yield table[prefix + "ID"] == id
    if states:
        yield table[prefix + "STATE"].in_(states)
    if entity is not None:
        partition = table[prefix + "PARTITION"]
        yield func.lower(table[prefix + "DATABASE"]) == entity.database
        yield func.lower(table[prefix + "TABLE"]) == entity.table
        # A database that ignores case finds more, which the caller sorts out.
        yield or_(partition.is_(None), partition == "") if entity.partition is None else partition == entity.partition
