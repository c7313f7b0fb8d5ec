"""Moving a row from the compaction queue to its history, as Hive's ``CompactionTxnHandler`` does."""

from __future__ import annotations

from sqlalchemy import delete, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.metastore.database.database import HiveTable


def move_to_history(
    connection: Connection,
    queue: HiveTable,
    history: HiveTable,
    *conditions: ColumnElement[bool],
    state: str,
    end_ms: int,
    changes: dict[str, object] | None = None,
) -> bool:
    """Move the one row that meets all conditions; False, with nothing changed, where there is none.

    All columns that queue and history have in common are copied.

    :param state: its letter in the history.
    :param end_ms: when it ended, by the metastore's clock.
    :param changes: other values of columns of the history, by Hive's names.
    """
    common = [name for name in queue.columns if "CC_" + name[3:] in history]
    wanted = select(*(queue[name].label(name) for name in common)).where(*conditions).with_for_update()
    row = connection.execute(wanted).mappings().one_or_none()
    if row is None or connection.execute(delete(queue.table).where(*conditions)).rowcount != 1:
        return False
    values = {"CC_" + name[3:]: row[name] for name in common}
    values.update({"CC_STATE": state, "CC_END": end_ms}, **(changes or {}))
    connection.execute(insert(history.table).values({history[name].name: value for name, value in values.items()}))
    return True
