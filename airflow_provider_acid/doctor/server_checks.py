"""Checks of the metastore's own threads, settings and database, as compactions from outside need them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select

from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.check import Check, Seen, note, problem, warning
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.rights import missing_rights
from airflow_provider_acid.metastore.database.sql_errors import HOW_TO_GRANT
from airflow_provider_acid.metastore.hive3.server_check import setting
from airflow_provider_acid.metastore.hive4.server_check import CLEANER, CLEANER_OF_ABORTS, HOUSEKEEPING, cleans_aborts

INITIATOR = "metastore.compactor.initiator.on"
WORKERS = "metastore.compactor.worker.threads"
MANY_RECORDS = 1_000_000
RECORDS = ("COMPLETED_TXN_COMPONENTS", "TXN_TO_WRITE_ID", "TXN_COMPONENTS")


def _housekeeping(site: Site) -> Iterator[Seen]:
    if site.queue.hive.queue_speaks_thrift:
        name, is_on = HOUSEKEEPING, site.is_on(HOUSEKEEPING)
    else:
        name, is_on = "hive.compactor.initiator.on", setting(site.client, "compactor.initiator.on").lower() == "true"
    if not is_on and not site.endpoint.housekeeping_elsewhere:
        yield warning(
            f"{name} is not true on this metastore",
            "where no other metastore of the same database has it, nobody aborts the transactions of dead clients, and "
            "each holds every cleaning back",
            f"set {name}=true on one metastore; where another has it, set housekeeping_elsewhere in the connection",
        )


def _initiator(site: Site) -> Iterator[Seen]:
    if site.queue.hive.queue_speaks_thrift and site.is_on(INITIATOR):
        yield note(
            f"{INITIATOR} is true: Hive asks for compactions, too",
            "its requests are carried out like anybody's; with its thresholds beside ours, a table follows the lower",
            "leave it, or set it to false so that the sensor's thresholds alone decide",
        )


def _workers(site: Site) -> Iterator[Seen]:
    threads = site.setting(WORKERS)
    if threads.isdigit() and int(threads) > 0:
        yield note(
            f"{WORKERS} is {threads}: Hive's own workers compact, too",
            "whoever claims a request first does it; neither disturbs the other",
            "set it to 0 on every metastore and HiveServer2 to have one compactor only",
        )


def _cleaner(site: Site) -> Iterator[Seen]:
    if site.queue.hive.queue_speaks_thrift and site.database is None and site.is_on(CLEANER):
        yield warning(
            f"{CLEANER} is true on this metastore, and its database is not at hand",
            "Hive's Cleaner may clean what we compact before our cleaner does, without a lock, and queries that list "
            "directories meanwhile may fail",
            f"set {CLEANER}=false on every metastore, or name the database (metastore_db_conn_id)",
        )


def _cleaner_of_aborts(site: Site) -> Iterator[Seen]:
    if site.queue.hive.queue_speaks_thrift and cleans_aborts(site.client):
        yield warning(
            f"{CLEANER} and {CLEANER_OF_ABORTS} are true on this metastore",
            "in a partition with 1,000 aborted writes, or one that is 12 hours old, Hive's Cleaner deletes what a "
            "compaction replaced at once, also beside readers and where it is kept for an undo",
            f"set {CLEANER_OF_ABORTS}=false on every metastore; compactions clean aborted writes as well",
        )


def _rights(site: Site) -> Iterator[Seen]:
    missing = [] if site.database is None else missing_rights(site.database)
    if missing:
        yield problem(
            f"the login to the metastore's database lacks {', '.join(missing)}",
            "cleaning fails, or leaves records that nobody removes",
            HOW_TO_GRANT,
        )


def _records(site: Site) -> Iterator[Seen]:
    database = site.database
    if database is None:
        return
    for name in RECORDS:
        count = _rows_of(database, name)
        if count >= MANY_RECORDS:
            yield warning(
                f"{name} has {count:,} rows",
                "every lock, commit and evaluation by written candidates takes longer",
                "compact and clean what is written to; then look for tables that nobody compacts (no_auto_compaction)",
            )


def _rows_of(database: MetastoreDatabase, name: str) -> int:
    count = select(func.count()).select_from(database.table(name).table)
    return database.read(f"table {name}", lambda connection: int(connection.scalar(count) or 0))


def _addresses(site: Site) -> Iterator[Seen]:
    """Each by itself, and whether all are of one database; nothing where there is only one."""
    addresses = site.endpoint.addresses if len(site.endpoint.addresses) > 1 else ()
    databases: dict[str, str] = {}
    for address in addresses:
        try:
            with Supervised(address), site.endpoint.open_at(address) as client:
                uuid = client.database_uuid()
        except AcidError as error:
            why = "while another answers nobody notices, and once that is gone nothing works"
            yield warning(f"{error.subject}: {error.reason}", why, error.remedy)
            continue
        if uuid is not None:
            databases[str(address)] = uuid
    if len(set(databases.values())) > 1:
        told = ", ".join(f"{address} has {uuid}" for address, uuid in databases.items())
        yield problem(
            f"the addresses are metastores of different databases: {told}",
            "whoever is led from one to the other works on other transactions and tables of the same names",
            "name metastores of one database in one connection",
        )


QUICK_CHECKS = (
    Check("metastore addresses", "all answer, and are of one database", _addresses),
    Check("dead transactions are aborted", "a thread of this metastore does it", _housekeeping),
    Check("Hive's Initiator", "it is off", _initiator),
    Check("Hive's workers", "there are none in this metastore", _workers),
    Check("Hive's Cleaner", "it cannot reach what we compact", _cleaner),
    Check("Hive's Cleaner of aborted writes", "it deletes nothing without a request", _cleaner_of_aborts),
    Check("rights in the metastore's database", "none is missing, or it is not used", _rights),
)
"""A few calls each; of the database no table is read."""

SERVER_CHECKS = (
    *QUICK_CHECKS,
    Check("records of transactions", f"no table has {MANY_RECORDS:,} rows, or they are not at hand", _records),
)
