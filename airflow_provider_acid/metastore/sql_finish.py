"""Finishing what a Hive 4 metastore on PostgreSQL fails to do: marking an unpartitioned table's compaction cleaned."""

from __future__ import annotations

from sqlalchemy import delete
from sqlalchemy.engine import Connection

from airflow_provider_acid.metastore.database import MetastoreDatabase
from airflow_provider_acid.metastore.sql_cleaning import WriteIdBookkeeping
from airflow_provider_acid.metastore.sql_history import move_to_history
from airflow_provider_acid.metastore.stored_rows import READY, SUCCEEDED
from airflow_provider_acid.metastore.values import CompactionRow

_ABORT_CLEANUP = "c"
"""CQ_TYPE of the marks that Hive 4's Cleaner leaves for a cleaning of aborted writes that failed."""


def mark_cleaned(database: MetastoreDatabase, row: CompactionRow, highest_write_id: int) -> None:
    """Do in one transaction what Hive 4's ``mark_cleaned`` does; nothing where the row is not as given.

    :param row: of an unpartitioned table, ready for cleaning, and committed.
    :param highest_write_id: positive, and not above the row's own.
    """
    queue = database.table("COMPACTION_QUEUE", ("CQ_ID", "CQ_STATE", "CQ_TXN_ID", "CQ_COMMIT_TIME", "CQ_TYPE"))
    history = database.table("COMPLETED_COMPACTIONS", ("CC_ID", "CC_STATE", "CC_END"))
    bookkeeping = WriteIdBookkeeping.of(database)
    entity = row.entity

    def finish(connection: Connection) -> None:
        conditions = (
            queue["CQ_ID"] == row.id,
            queue["CQ_STATE"] == READY,
            queue["CQ_TXN_ID"] == row.txn_id,
            queue["CQ_COMMIT_TIME"] == row.commit_ms,
        )
        end_ms = database.now_ms(connection)
        if not move_to_history(connection, queue, history, *conditions, state=SUCCEEDED, end_ms=end_ms):
            return
        connection.execute(
            delete(queue.table).where(
                database.equals(queue["CQ_DATABASE"], entity.database),
                database.equals(queue["CQ_TABLE"], entity.table),
                database.equals(queue["CQ_PARTITION"], entity.partition),
                queue["CQ_TYPE"] == _ABORT_CLEANUP,
            )
        )
        bookkeeping.forget(connection, entity, highest_write_id, aborted_too=True)

    database.write(str(row), finish)
