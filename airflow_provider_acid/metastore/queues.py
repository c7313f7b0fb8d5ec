"""Which compaction queue a metastore has."""

from __future__ import annotations

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreVersionError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive3 import server_check as hive3_server
from airflow_provider_acid.metastore.hive3.queue import SqlCompactionQueue
from airflow_provider_acid.metastore.hive4 import server_check as hive4_server
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.hive4.unpooled_queue import UnpooledCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AS_APACHE_RELEASED, AcidMetastoreClient

HIVE_4_COLUMNS = ("CQ_TXN_ID", "CQ_NEXT_TXN_ID")
"""Columns of the queue by which Hive 4 makes a compaction a transaction."""


def open_queue(
    client: AcidMetastoreClient, database: MetastoreDatabase | None = None, *, housekeeping_elsewhere: bool = False
) -> CompactionQueue:
    """The queue behind a client, chosen by what the server can do.

    :param database: the metastore's database; needed on Hive 3.1 and where Hive 4 has no pools; on any Hive 4 it keeps
        our rows from Hive's own Cleaner.
    :param housekeeping_elsewhere: whether another instance of the same metastore aborts dead transactions.
    :raises MetastoreVersionError: the server has no queue over Thrift, and no database is configured, or it is neither
        Hive 3.1 nor Hive 4.
    :raises ConfigurationError: it is set up in a way that would harm; see :mod:`~.hive3.server_check` and
        :mod:`~.hive4.server_check`.
    """
    hive = check_metastore(client, database, housekeeping_elsewhere=housekeeping_elsewhere)
    return queue_of(client, database, hive)


def check_metastore(
    client: AcidMetastoreClient, database: MetastoreDatabase | None = None, *, housekeeping_elsewhere: bool = False
) -> Hive:
    """All that :func:`open_queue` asks, and errors as it raises them.

    :return: what :func:`queue_of` needs to know.
    """
    hive = client.probe()
    if hive.queue_speaks_thrift:
        if not hive.has_pools:
            UnpooledCompactionQueue(client, hive, _needed(database, hive))
        hive4_server.check_server(client, database, housekeeping_elsewhere=housekeeping_elsewhere)
        return hive
    database = _needed(database, hive)
    _refuse_hybrid(hive.version, database)
    hive3_server.check_server(client, database, housekeeping_elsewhere=housekeeping_elsewhere)
    return hive


def queue_of(client: AcidMetastoreClient, database: MetastoreDatabase | None, hive: Hive) -> CompactionQueue:
    """The queue of a metastore that :func:`check_metastore` has accepted, perhaps through another client.

    :raises MetastoreVersionError: a table or column that it needs is not there.
    """
    if hive.queue_speaks_thrift and not hive.has_pools:
        return UnpooledCompactionQueue(client, hive, _needed(database, hive))
    if hive.queue_speaks_thrift:
        return ThriftCompactionQueue(client, hive, database)
    return SqlCompactionQueue(client, hive, _needed(database, hive))


def _needed(database: MetastoreDatabase | None, hive: Hive) -> MetastoreDatabase:
    if database is None:
        where = (
            "has no pools of compaction requests and shows no transaction of a compaction; its database tells them"
            if hive.queue_speaks_thrift
            else "keeps its compaction queue in its database alone, as Hive 3.1 does"
        )
        raise MetastoreVersionError(
            f"metastore {hive.version}",
            where,
            "name a connection to that database as metastore_db_conn_id in the extra of the hive_acid connection",
        )
    return database


def _refuse_hybrid(version: str, database: MetastoreDatabase) -> None:
    """Refuse a vendor's build that took over parts of Hive 4: what it does at commit and cleaning is unknown."""
    queue = database.table("COMPACTION_QUEUE")
    new = [name for name in HIVE_4_COLUMNS if name in queue]
    if new:
        raise MetastoreVersionError(
            f"metastore {version}",
            f"has the column {new[0]} of Hive 4 in its queue, but not Hive 4's calls",
            AS_APACHE_RELEASED,
        )
