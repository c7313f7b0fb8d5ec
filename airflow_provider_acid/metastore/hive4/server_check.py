"""Whether a Hive 4 metastore's own threads leave alone what readers and compactions from outside need."""

from __future__ import annotations

import logging

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.rights import missing_rights
from airflow_provider_acid.metastore.database.sql_errors import HOW_TO_GRANT
from airflow_provider_acid.metastore.hive4 import by_sql
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

log = logging.getLogger(__name__)

CLEANER = "metastore.compactor.cleaner.on"
MIN_HISTORY_WRITE_ID = "metastore.txn.use.minhistorywriteid"
HOUSEKEEPING = "metastore.housekeeping.threads.on"
CLEANER_OF_ABORTS = "metastore.compactor.clean.aborts.using.cleaner"
"""Hive 4's Cleaner then looks by itself after partitions with 1,000 aborted writes, or one that is 12 hours old. It
deletes all that is obsolete there, without a request and whoever reads (seen on 4.0.1, 4.1.0, 4.2.1). On 4.2.1 also
what was made into a result that is not committed: where that began while the Cleaner worked on other partitions."""


def check_server(
    client: AcidMetastoreClient, database: MetastoreDatabase | None, *, housekeeping_elsewhere: bool = False
) -> None:
    """Refuse a metastore whose Cleaner would delete under readers, and warn of what only delays or disturbs.

    :param database: the metastore's, by which our rows are kept from Hive's Cleaner (:func:`~.by_sql.withhold`).
    :param housekeeping_elsewhere: whether another instance of the same metastore aborts dead transactions.
    :raises MetastoreVersionError: the database lacks a column that this takes.
    :raises ConfigurationError: Hive's Cleaner is on, could take our rows, and waits for registered readers alone; or
        the login to the database may not change the queue.
    """
    if not housekeeping_elsewhere and not is_on(client, HOUSEKEEPING):
        log.warning(
            "%s is not true on this metastore: where no other one of the same database has it, nobody aborts dead "
            "transactions, and a reader that died keeps every cleaning waiting",
            HOUSEKEEPING,
        )
    if cleans_aborts(client):
        log.warning(
            "%s and %s are true on this metastore: in a partition with 1,000 aborted writes, or one that is 12 hours "
            "old, Hive's Cleaner deletes what a compaction replaced at once, also beside readers and where it is kept "
            "for an undo; set the second to false on every metastore: compactions clean aborted writes as well",
            CLEANER,
            CLEANER_OF_ABORTS,
        )
    if database is not None:
        by_sql.queue_to_withhold_from(database)
        _check_rights(database)
        return
    if not is_on(client, CLEANER):
        return
    if is_on(client, MIN_HISTORY_WRITE_ID):
        raise ConfigurationError(
            CLEANER,
            f"is true on the metastore, and so is {MIN_HISTORY_WRITE_ID}: Hive's Cleaner would delete what a "
            "compaction replaced while a reader that did not register its write ids, such as Trino, still reads it",
            "name a connection to the metastore's database as metastore_db_conn_id in the extra of the hive_acid "
            "connection, so that our rows are kept from Hive's Cleaner; or set one of the two to false on every "
            "metastore of that database",
        )
    log.warning(
        "%s is true on this metastore: Hive's Cleaner may clean what we compact before our cleaner does, without a "
        "lock, and queries that list directories meanwhile may fail; set it to false, or name metastore_db_conn_id",
        CLEANER,
    )


def _check_rights(database: MetastoreDatabase) -> None:
    missing = missing_rights(database, ["COMPACTION_QUEUE"])
    if missing:
        raise ConfigurationError(
            "login to the metastore's database",
            f"lacks {', '.join(missing)}, by which our rows are kept from Hive's own Cleaner",
            f"{HOW_TO_GRANT}, or configure no connection to it",
        )


def cleans_aborts(client: AcidMetastoreClient) -> bool:
    """Whether Hive's Cleaner looks after aborted writes without a request; see :data:`CLEANER_OF_ABORTS`."""
    return is_on(client, CLEANER) and is_on(client, CLEANER_OF_ABORTS)


def is_on(client: AcidMetastoreClient, name: str) -> bool:
    """Whether a setting of the metastore is true; asked once by each client."""
    return client.config_value(name).strip().lower() == "true"
