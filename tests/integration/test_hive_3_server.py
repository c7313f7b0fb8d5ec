"""The tests' own servers: Hive 3.1.3 and 4.0.1 on database servers, and a real Hive that works on their tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from sqlalchemy.exc import OperationalError

from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_tables import register
from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin
from tests.harness.thrift_answers import WriteIds

PATIENCE_SECONDS = 30

ON_A_DATABASE_SERVER = ("hive_3_metastore", "hive_3_metastore_on_mariadb", "hive_4_metastore_on_postgres")


@pytest.fixture(params=ON_A_DATABASE_SERVER)
def metastore(request: pytest.FixtureRequest) -> Iterator[MetastoreServer]:
    server: MetastoreServer = request.getfixturevalue(request.param)
    with server.in_use():
        yield server


def _comes_true(condition: Callable[[], bool], within_seconds: float = PATIENCE_SECONDS) -> bool:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_an_acid_table_is_made_and_written_in_transactions(metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        admin.create_database("written")
        location = admin.create_table(TableDefinition("written", "t", {"v": "bigint"}, {"p": "string"}))
        admin.add_partitions("written", "t", ["p=A"])
        committed, aborted, still_open = admin.open_transactions(3)
        ids = admin.allocate_write_ids("written", "t", [committed, aborted, still_open])
        for transaction in ids:
            admin.lock_as_writer(transaction, "written", "t", "p=A")
        admin.commit(committed)
        admin.abort(aborted)
        assert location == metastore.warehouse / "written.db" / "t"
        assert admin.write_ids("written", "t") == WriteIds(3, open=frozenset({3}), aborted=frozenset({2}))
        admin.abort(still_open)


def test_a_request_for_compaction_is_shown(metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        admin.create_database("requested")
        admin.create_table(TableDefinition("requested", "t", {"v": "bigint"}, {"p": "string"}))
        admin.add_partitions("requested", "t", ["p=1"])
        admin.request_compaction("requested", "t", "p=1")
        assert [(row.state, row.partition) for row in admin.compactions("requested")] == [("initiated", "p=1")]


@pytest.fixture(params=["reaping_hive_3_metastore", "reaping_hive_3_metastore_on_mariadb"])
def reaping_metastore(request: pytest.FixtureRequest) -> Iterator[MetastoreServer]:
    server: MetastoreServer = request.getfixturevalue(request.param)
    with server.in_use():
        yield server


def test_a_silent_transaction_is_aborted(reaping_metastore: MetastoreServer) -> None:
    server = reaping_metastore
    assert server.transaction_timeout_seconds == REAPER_SECONDS
    with ThriftAdmin(server.host, server.port) as admin:
        (silent,) = admin.open_transactions()
        assert silent in admin.transactions().open
        assert _comes_true(lambda: silent not in admin.transactions().open)


def test_a_server_rests_when_nobody_uses_it_any_longer_until_its_port_is_asked_for(
    reaping_hive_3_metastore: MetastoreServer,
) -> None:
    # No engine of the session keeps this one at work, as the others' may.
    server = reaping_hive_3_metastore
    process = psutil.Process(server.pid)
    with server.in_use():
        with server.in_use():
            pass
        assert _comes_true(lambda: process.status() != psutil.STATUS_STOPPED)
    assert _comes_true(lambda: process.status() == psutil.STATUS_STOPPED)
    with ThriftAdmin(server.host, server.port) as admin:
        assert admin.is_hive_3


def test_a_server_never_rests_while_an_engine_uses_it(hive_3_engine: HiveEngine) -> None:
    process = psutil.Process(hive_3_engine.metastore.pid)
    with hive_3_engine.metastore.in_use():
        pass
    assert not _comes_true(lambda: process.status() == psutil.STATUS_STOPPED, within_seconds=0.5)


def test_the_database_can_be_asked(metastore: MetastoreServer) -> None:
    database = metastore.server_database
    tables = database.query("SELECT table_name FROM information_schema.tables WHERE table_name NOT LIKE 'pg_%'")
    assert "compaction_queue" in {str(name).lower() for (name,) in tables}


@pytest.mark.parametrize(("engine_name", "fixture"), [("hive_3_engine", "a_plain"), ("hive_4_engine", "acid_plain")])
def test_a_real_hive_reads_and_writes_the_tables_of_the_server(
    engine_name: str, fixture: str, request: pytest.FixtureRequest
) -> None:
    engine: HiveEngine = request.getfixturevalue(engine_name)
    table = register(engine.metastore, fixture, engine.version, "read")
    name, key = f"read.{table.name}", next(iter(table.fixture.definition.columns))
    assert engine.execute(f"SELECT count(*) FROM {name}") == [str(len(table.rows))]
    engine.execute(f"DELETE FROM {name} WHERE {key} IS NOT NULL")
    assert engine.execute(f"SELECT * FROM {name}") == []
    with ThriftAdmin(engine.metastore.host, engine.metastore.port) as admin:
        assert admin.write_ids("read", table.name).high_water_mark == table.fixture.high_water_mark + 1


def test_a_server_keeps_its_port_and_data_when_it_is_killed_and_started_again() -> None:
    with PostgresServer() as server:
        server.create_database("kept", "CREATE TABLE t (v integer)")
        server.query("kept", "INSERT INTO t VALUES (1)")
        server.kill()
        with pytest.raises(OperationalError):
            server.query("kept", "SELECT v FROM t")
        server.start()
        assert server.query("kept", "SELECT v FROM t") == [(1,)]
        folder = server.folder
    assert server.pid is None
    assert not folder.exists()
