"""Which compaction queue a metastore has."""

from __future__ import annotations

from airflow_provider_acid.exceptions import MetastoreVersionError
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.database import MetastoreDatabase
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.sql_queue import SqlCompactionQueue
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue


def open_queue(
    client: AcidMetastoreClient, database: MetastoreDatabase | None = None, *, housekeeping_elsewhere: bool = False
) -> CompactionQueue:
    """The queue behind a client, chosen by what the server can do.

    :param database: the metastore's database; needed on Hive 3.1.
    :param housekeeping_elsewhere: whether another instance of the same metastore aborts dead transactions.
    :raises MetastoreVersionError: the server has no queue over Thrift, and no database is configured.
    """
    facts = client.probe()
    if facts.supports_thrift_queue:
        return ThriftCompactionQueue(client)
    if database is None:
        raise MetastoreVersionError(
            f"metastore {facts.version}",
            "keeps its compaction queue in its database alone, as Hive 3.1 does",
            "name a connection to that database as metastore_db_conn_id in the extra of the hive_acid connection",
        )
    return SqlCompactionQueue(client, database)
