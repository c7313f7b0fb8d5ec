"""Which Hive 3.1 metastores are refused, and what a login needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.pool import NullPool

import airflow_provider_acid
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreStateError,
    MetastoreVersionError,
)
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.locations import StoredLocations
from airflow_provider_acid.metastore.database.rights import missing_rights
from airflow_provider_acid.metastore.hive3.server_check import SILENT_TIMEOUTS
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import CompactionQueue, Enqueued
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_queue.rows import WORKER, the_row
from tests.integration.compaction_queue.writes import Writes

DOCS = Path(airflow_provider_acid.__file__).parents[1] / "docs"
GRANTS = {"hive-3-postgresql": "grants-postgresql.sql", "hive-3-mariadb": "grants-mysql.sql"}

LOCATIONS = ("DBS", "TBLS", "PARTITIONS", "SDS")
"""Hive spells these in upper case on every database."""

RIGHTS = {
    "COMPACTION_QUEUE": ("SELECT", "UPDATE", "DELETE"),
    "COMPLETED_COMPACTIONS": ("SELECT", "INSERT"),
    "COMPLETED_TXN_COMPONENTS": ("SELECT", "DELETE"),
    "TXN_COMPONENTS": ("SELECT", "DELETE"),
    "TXNS": ("SELECT",),
    **dict.fromkeys(LOCATIONS, ("SELECT",)),
    # Together, for MariaDB locks rows for who may only read them; MySQL does not.
    "AUX_TABLE": ("SELECT, UPDATE",),
}

pytestmark = pytest.mark.parametrize("server", GRANTS, indirect=True)

Answer = Callable[[str, str], None]


@pytest.fixture
def server_answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Lets the metastore give another value for a setting."""
    values: dict[str, str] = {}
    ask = AcidMetastoreClient.config_value

    def config_value(self: AcidMetastoreClient, name: str) -> str:
        return values.get(name) or ask(self, name)

    monkeypatch.setattr(AcidMetastoreClient, "config_value", config_value)
    return values.__setitem__


@pytest.mark.parametrize("name", ["hive.compactor.worker.threads", "metastore.compactor.worker.threads"])
def test_a_metastore_with_workers_of_its_own_is_refused(
    client: AcidMetastoreClient, database: MetastoreDatabase, server_answers: Answer, name: str
) -> None:
    server_answers(name, "2")
    with pytest.raises(ConfigurationError, match="is 2 on the metastore.*Remedy: set it to 0"):
        open_queue(client, database)


def test_a_metastore_that_aborts_no_dead_transactions_is_refused_unless_another_one_does(
    client: AcidMetastoreClient, database: MetastoreDatabase, server_answers: Answer
) -> None:
    for name in ("hive.compactor.initiator.on", "metastore.compactor.initiator.on"):
        server_answers(name, "false")
    with pytest.raises(ConfigurationError, match="is not true.*housekeeping_elsewhere"):
        open_queue(client, database)
    open_queue(client, database, housekeeping_elsewhere=True)


def test_a_row_of_a_worker_of_another_kind_is_a_reason_to_refuse(
    client: AcidMetastoreClient, database: MetastoreDatabase, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, "hive-host-12")
    assert claim is not None
    try:
        with pytest.raises(MetastoreStateError, match=f"compaction {claim.id}: is worked on by hive-host-12"):
            open_queue(client, database)
    finally:
        queue.fail(claim, "over")
    open_queue(client, database)


@pytest.mark.parametrize("housekeeping_elsewhere", [False, True])
def test_a_transaction_that_nobody_aborts_is_a_reason_to_refuse(
    server: MetastoreServer,
    client: AcidMetastoreClient,
    database: MetastoreDatabase,
    server_answers: Answer,
    housekeeping_elsewhere: bool,
) -> None:
    """The server itself takes transactions for dead after 300 s; it is made to say that it does after 1 s."""
    with ThriftAdmin(server.host, server.port) as admin:
        [txn] = admin.open_transactions()
        silent_since_ms = f"TXN_LAST_HEARTBEAT - {(SILENT_TIMEOUTS + 1) * 1000}"
        server.server_database.query(f"UPDATE TXNS SET TXN_LAST_HEARTBEAT = {silent_since_ms} WHERE TXN_ID = {txn}")
        open_queue(client, database, housekeeping_elsewhere=housekeeping_elsewhere)
        server_answers("metastore.txn.timeout", "1s")
        with pytest.raises(MetastoreStateError, match=f"transaction {txn}: is open, although silent"):
            open_queue(client, database, housekeeping_elsewhere=housekeeping_elsewhere)
        admin.abort(txn)


def test_hive_3_without_its_database_is_refused(client: AcidMetastoreClient) -> None:
    with pytest.raises(MetastoreVersionError, match="metastore_db_conn_id"):
        open_queue(client)


@pytest.mark.parametrize("column", ["CQ_TXN_ID", "CQ_NEXT_TXN_ID"])
def test_a_build_with_parts_of_hive_4_is_refused(
    server: MetastoreServer, client: AcidMetastoreClient, column: str
) -> None:
    server.server_database.query(f"ALTER TABLE COMPACTION_QUEUE ADD {column} bigint")
    try:
        with pytest.raises(MetastoreVersionError, match=f"has the column {column} of Hive 4"):
            open_queue(client, MetastoreDatabase(server.server_database.url))
    finally:
        server.server_database.query(f"ALTER TABLE COMPACTION_QUEUE DROP COLUMN {column}")


def test_a_column_that_is_not_there_is_named(server: MetastoreServer, client: AcidMetastoreClient) -> None:
    kind = "bytea" if server.server_database.url.startswith("postgresql") else "varbinary(2048)"
    server.server_database.query("ALTER TABLE COMPLETED_COMPACTIONS DROP COLUMN CC_META_INFO")
    try:
        with pytest.raises(MetastoreVersionError, match="COMPLETED_COMPACTIONS: has no column CC_META_INFO"):
            open_queue(client, MetastoreDatabase(server.server_database.url))
    finally:
        server.server_database.query(f"ALTER TABLE COMPLETED_COMPACTIONS ADD CC_META_INFO {kind}")


# Grants


@pytest.fixture(scope="module")
def login(server: MetastoreServer, request: pytest.FixtureRequest) -> Iterator[MetastoreDatabase]:
    """A login that may do what the script grants it, and nothing more."""
    url = make_url(server.server_database.url)
    engine = sqlalchemy.create_engine(url, future=True, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    is_postgres = url.get_backend_name() == "postgresql"
    name = login_name(is_mysql=not is_postgres)
    password = "PASSWORD 'sesame'" if is_postgres else "BY 'sesame'"
    script = (DOCS / ("grants-postgresql.sql" if is_postgres else "grants-mysql.sql")).read_text()
    script = "\n".join(line for line in script.splitlines() if not line.startswith("--"))
    statements = [script] if is_postgres else [part for part in script.split(";") if part.strip()]
    with engine.connect() as connection:
        create = f"CREATE ROLE {name} LOGIN {password}" if is_postgres else f"CREATE USER {name} IDENTIFIED {password}"
        for statement in (create, *statements):
            connection.exec_driver_sql(statement.replace("%", "%%"))
        try:
            yield MetastoreDatabase(url.set(username="airflow_acid", password="sesame"), patience_seconds=2)
        finally:
            for end in [f"DROP OWNED BY {name}", f"DROP ROLE {name}"] if is_postgres else [f"DROP USER {name}"]:
                connection.exec_driver_sql(end.replace("%", "%%"))


def test_the_grants_are_enough(client: AcidMetastoreClient, login: MetastoreDatabase, writes: Writes) -> None:
    assert missing_rights(login) == []
    use_every_right(client, login, writes)
    for sql in ("DELETE FROM TXNS", "UPDATE TXN_COMPONENTS SET TC_WRITEID = 1", "SELECT * FROM HIVE_LOCKS"):
        statement = sqlalchemy.text(sql)
        with pytest.raises(MetastoreError, match="lacks a right"):
            login.read("more", partial(Connection.execute, statement=statement))


@pytest.mark.parametrize(("table", "right"), [(table, right) for table, rights in RIGHTS.items() for right in rights])
def test_none_of_the_grants_is_more_than_needed(
    server: MetastoreServer,
    client: AcidMetastoreClient,
    login: MetastoreDatabase,
    writes: Writes,
    table: str,
    right: str,
) -> None:
    name = login_name(login.is_mysql)
    table = f'"{table}"' if table in LOCATIONS and not login.is_mysql else table
    server.server_database.query(f"REVOKE {right} ON {table} FROM {name}")
    try:
        assert missing_rights(login) != []
        with pytest.raises(MetastoreError, match="lacks a right"):
            use_every_right(client, login, writes)
    finally:
        server.server_database.query(f"GRANT {right} ON {table} TO {name}")


def use_every_right(client: AcidMetastoreClient, login: MetastoreDatabase, writes: Writes) -> None:
    """A compaction that fails and one that is cleaned, each after a claim that was given back, and a look around."""
    StoredLocations(login).near(Directory.of("file:/elsewhere"), writes.entity)
    writes.write(["p=b"], aborted=True)
    queue = open_queue(client, login)
    for end in ("fail", "clean"):
        pool = str(RequestPool.new(owner_of("grants")))
        made = queue.enqueue(writes.entity, CompactionType.MAJOR, pool)
        assert isinstance(made, Enqueued)
        assert queue.claim(pool, WORKER) is not None
        queue.give_back(the_row(queue, made.id), "silent")
        claim = queue.claim(pool, WORKER)
        assert claim is not None
        claim = queue.record(claim, 5, 77, "hive")
        queue.keep(claim)
        queue.set_job_id(claim, "application_1")
        if end == "fail":
            queue.fail(claim, "no")
            continue
        queue.complete(claim)
        queue.cleaned(the_row(queue, claim.id), 5)
        assert the_row(queue, claim.id).state is CompactionState.SUCCEEDED


def login_name(is_mysql: bool) -> str:
    return "airflow_acid@'%'" if is_mysql else "airflow_acid"


def test_a_missing_grant_is_named_with_its_remedy(server: MetastoreServer, login: MetastoreDatabase) -> None:
    server.server_database.query(f"REVOKE DELETE ON TXN_COMPONENTS FROM {login_name(login.is_mysql)}")
    assert missing_rights(login) == ["DELETE on TXN_COMPONENTS"]
    with pytest.raises(
        MetastoreError, match="(?i)denied.*txn_components.*Remedy: run what `airflow-acid grants"
    ) as error:
        login.write("components", lambda connection: connection.execute(sqlalchemy.text("DELETE FROM TXN_COMPONENTS")))
    assert "sesame" not in str(error.value)


def test_a_wrong_password_is_not_waited_out_and_not_shown(server: MetastoreServer) -> None:
    """PostgreSQL in the tests trusts everybody; a login that does not exist is refused in the same way."""
    url = make_url(server.server_database.url).set(username="nobody", password="sesame")
    database = MetastoreDatabase(url)
    with pytest.raises(MetastoreError, match="refuses the login.*Remedy: correct login") as error:
        database.table("TXNS")
    assert "sesame" not in f"{error.value!r} {database!r}"
