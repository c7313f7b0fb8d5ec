"""What no call of a Hive 4 metastore does, or not on PostgreSQL: it is done in the metastore's database."""

from __future__ import annotations

from sqlalchemy import delete, select, update
from sqlalchemy.engine import Connection

from airflow_provider_acid.metastore.database.cleaning import WriteIdBookkeeping
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase
from airflow_provider_acid.metastore.database.history import move_to_history
from airflow_provider_acid.metastore.hive3.stored_rows import INITIATED, READY, SUCCEEDED, WORKING
from airflow_provider_acid.metastore.values import CompactionRow

_ABORT_CLEANUP = "c"
"""CQ_TYPE of the marks that Hive 4's Cleaner leaves for a cleaning of aborted writes that failed."""

WITHHELD_MS = 100 * 365 * 24 * 3600 * 1000
"""CQ_RETRY_RETENTION of our rows: so long after the commit Hive's Cleaner leaves them alone."""


def queue_to_withhold_from(database: MetastoreDatabase) -> HiveTable:
    """The table of :func:`withhold`.

    :raises MetastoreVersionError: it, or a column, is not there.
    """
    return database.table("COMPACTION_QUEUE", ("CQ_ID", "CQ_TXN_ID", "CQ_RETRY_RETENTION"))


def withhold(database: MetastoreDatabase, id: int, txn_id: int) -> bool:
    """Keep a compaction's row from Hive's own Cleaner, as if it had failed there and were to wait for its next try.

    With ``metastore.txn.use.minhistorywriteid``, Hive 4.2's default, that Cleaner waits only for readers that
    registered their write ids; Hive's do, Trino's do not. Ours waits for all.

    It takes rows without a time of commit whatever their retention, and would even stumble over ours: it reads the
    retention as an int, and cleans nothing for anybody. So they are committed before they are ready for cleaning.

    :param txn_id: of the compaction, recorded in the row.
    :returns: whether there is such a row.
    """
    queue = queue_to_withhold_from(database)
    values = {queue["CQ_RETRY_RETENTION"].name: WITHHELD_MS}
    statement = update(queue.table).where(queue["CQ_ID"] == id, queue["CQ_TXN_ID"] == txn_id).values(values)
    return database.write(f"compaction {id}", lambda connection: connection.execute(statement).rowcount) == 1


def is_withheld(database: MetastoreDatabase, id: int) -> bool:
    """Whether a compaction's row is one of :func:`withhold`."""
    queue = queue_to_withhold_from(database)
    wanted = select(queue["CQ_RETRY_RETENTION"]).where(queue["CQ_ID"] == id)
    found = database.read(f"compaction {id}", lambda connection: connection.execute(wanted).scalar_one_or_none())
    return found == WITHHELD_MS


def claim(database: MetastoreDatabase, id: int, pool: str | None, worker_id: str, worker_version: str) -> None:
    """Claim one waiting request, as ``find_next_compact2`` claims whichever stands first.

    Nothing happens where it waits no longer, or not in that pool.

    :param pool: as the database has it; None where it has none.
    """
    changes: dict[str, object] = {
        "CQ_STATE": WORKING,
        "CQ_WORKER_ID": worker_id,
        "CQ_WORKER_VERSION": worker_version,
    }
    queue = database.table("COMPACTION_QUEUE", ("CQ_ID", "CQ_START", *changes, *(("CQ_POOL_NAME",) if pool else ())))
    in_pool = [database.equals(queue["CQ_POOL_NAME"], pool)] if "CQ_POOL_NAME" in queue else []
    waits = (queue["CQ_ID"] == id, queue["CQ_STATE"] == INITIATED, *in_pool)

    def take(connection: Connection) -> None:
        values = {queue[name].name: value for name, value in changes.items()}
        values[queue["CQ_START"].name] = database.now_ms(connection)
        connection.execute(update(queue.table).where(*waits).values(values))

    database.write(f"compaction {id}", take)


def properties(database: MetastoreDatabase, id: int) -> str | None:
    """What a request was made ``WITH OVERWRITE TBLPROPERTIES``, in Hive's text; SHOW COMPACTIONS does not tell."""
    queue = database.table("COMPACTION_QUEUE", ("CQ_ID", "CQ_TBLPROPERTIES"))
    wanted = select(queue["CQ_TBLPROPERTIES"]).where(queue["CQ_ID"] == id)
    found: str | None = database.read(
        f"compaction {id}", lambda connection: connection.execute(wanted).scalar_one_or_none()
    )
    return found


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
