"""The tests' own servers: Hive 3.1.3 and 4.0.1 on database servers, and a real Hive that works on their tables."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin, Transactions, WriteIds

PATIENCE_SECONDS = 30

ON_A_DATABASE_SERVER = ("hive_3_metastore", "hive_3_metastore_on_mariadb", "hive_4_metastore_on_postgres")


@pytest.fixture(params=ON_A_DATABASE_SERVER)
def metastore(request: pytest.FixtureRequest) -> MetastoreServer:
    server: MetastoreServer = request.getfixturevalue(request.param)
    return server


def _comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
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


def test_a_silent_transaction_is_aborted(reaping_hive_3_metastore: MetastoreServer) -> None:
    server = reaping_hive_3_metastore
    assert server.transaction_timeout_seconds == REAPER_SECONDS
    with ThriftAdmin(server.host, server.port) as admin:
        (silent,) = admin.open_transactions()
        assert _comes_true(lambda: silent not in _open(admin.transactions()))


def test_the_database_can_be_asked(metastore: MetastoreServer) -> None:
    database = metastore.server_database
    tables = database.query("SELECT table_name FROM information_schema.tables WHERE table_name NOT LIKE 'pg_%'")
    assert "compaction_queue" in {str(name).lower() for (name,) in tables}


def _open(transactions: Transactions) -> frozenset[int]:
    return transactions.open
