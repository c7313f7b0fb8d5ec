"""Whether a Hive 3.1 metastore is set up so that compactions from outside are safe, and can ever be cleaned."""

from __future__ import annotations

from sqlalchemy import func, or_, select
from sqlalchemy.engine import Connection

from airflow_provider_acid.exceptions import ConfigurationError, MetastoreStateError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive3.clock import MetastoreClock
from airflow_provider_acid.metastore.hive3.stored_rows import WORKING
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

SILENT_TIMEOUTS = 3
"""An open transaction that was silent for so many time-outs shows that nobody aborts dead ones."""

_REPLICATION = 1
"""TXN_TYPE of a transaction that replication opened, which no reaper aborts."""


def check_server(
    client: AcidMetastoreClient, database: MetastoreDatabase, *, housekeeping_elsewhere: bool = False
) -> None:
    """Refuse a metastore whose settings, or whose database, show that it must not be compacted from outside.

    :param housekeeping_elsewhere: whether another instance on the same database has the Initiator that aborts dead
        transactions; the database still has to look like it.
    :raises ConfigurationError: Hive's own workers take requests, or nobody aborts dead transactions: by the server's
        settings, or (:class:`MetastoreStateError`) by what lies in its database.
    """
    threads = setting(client, "compactor.worker.threads")
    if threads not in ("", "0"):
        raise ConfigurationError(
            "hive.compactor.worker.threads",
            f"is {threads} on the metastore: Hive's own workers would take our requests",
            "set it to 0 in hive-site.xml of every metastore and HiveServer2, and restart them",
        )
    if not housekeeping_elsewhere and setting(client, "compactor.initiator.on").lower() != "true":
        raise ConfigurationError(
            "hive.compactor.initiator.on",
            "is not true on the metastore: without it Hive 3.1 aborts no dead transactions, and a reader that died "
            "would keep every cleaning waiting for ever",
            "set it to true on one metastore and protect tables by no_auto_compaction=true; where another metastore of "
            "the same database has it, put housekeeping_elsewhere into the extra of the hive_acid connection",
        )
    timeout_ms = int(client.txn_timeout_seconds() * 1000)
    _refuse_foreign_workers(database)
    _refuse_silent_transactions(client, database, timeout_ms)


def setting(client: AcidMetastoreClient, name: str) -> str:
    """A setting's value; Hive 3 and 4 answer to different names for it."""
    values = [client.config_value(f"{prefix}.{name}").strip() for prefix in ("metastore", "hive")]
    return next((value for value in values if value not in ("", "0", "false")), values[0])


def _refuse_foreign_workers(database: MetastoreDatabase) -> None:
    queue = database.table("COMPACTION_QUEUE", ("CQ_ID", "CQ_STATE", "CQ_WORKER_ID"))
    working = select(queue["CQ_ID"], queue["CQ_WORKER_ID"]).where(queue["CQ_STATE"] == WORKING)
    rows = database.read("compaction queue", lambda connection: list(connection.execute(working)))
    foreign = [(id, worker) for id, worker in rows if RequestPool.of_worker(worker) is None]
    if foreign:
        id, worker = foreign[0]
        raise MetastoreStateError(
            f"compaction {id}",
            f"is worked on by {worker}, which is not of this package",
            "set hive.compactor.worker.threads to 0 on the host in the worker's name and restart that metastore, which "
            "gives the request back",
        )


def _refuse_silent_transactions(client: AcidMetastoreClient, database: MetastoreDatabase, timeout_ms: int) -> None:
    clock = MetastoreClock(client, database)
    txns = database.table("TXNS", ("TXN_ID", "TXN_STATE", "TXN_LAST_HEARTBEAT"))
    silent = select(func.min(txns["TXN_ID"])).where(txns["TXN_STATE"] == "o")
    if "TXN_TYPE" in txns:
        silent = silent.where(or_(txns["TXN_TYPE"].is_(None), txns["TXN_TYPE"] != _REPLICATION))

    def look(connection: Connection) -> int | None:
        oldest_ms = clock.now_ms(connection) - SILENT_TIMEOUTS * timeout_ms
        found = connection.execute(silent.where(txns["TXN_LAST_HEARTBEAT"] < oldest_ms)).scalar_one()
        return None if found is None else int(found)

    txn_id = database.read("open transactions", look)
    if txn_id is not None:
        raise MetastoreStateError(
            f"transaction {txn_id}",
            f"is open, although silent for more than {SILENT_TIMEOUTS} time-outs of {timeout_ms / 1000:.0f} s: nobody "
            "aborts dead transactions",
            "run a metastore with hive.compactor.initiator.on=true on this database",
        )
