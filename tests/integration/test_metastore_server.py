from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness import metastore_server
from tests.harness.acid_reader import Snapshot, as_hive_prints, read_table
from tests.harness.hive_tables import VERSIONS, FixtureTable, fixture_names, register
from tests.harness.metastore_program import HIVE_4
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin
from tests.harness.thrift_answers import WriteIds
from tests.storage.remote_tables import RemotePlace

TIMEOUT_SECONDS = 3
PATIENCE_SECONDS = 30


def _comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def _create_table(admin: ThriftAdmin, database: str) -> None:
    admin.create_database(database)
    admin.create_table(TableDefinition(database, "t", {"id": "int"}))


def _dead_writer(admin: ThriftAdmin, database: str) -> int:
    """A transaction that took a lock and a write id and never sends a heartbeat."""
    _create_table(admin, database)
    (transaction,) = admin.open_transactions()
    admin.allocate_write_ids(database, "t", [transaction])
    admin.lock_as_writer(transaction, database, "t")
    return transaction


def test_the_reaper_aborts_a_transaction_without_heartbeats_and_remembers_what_it_wrote(tmp_path: Path) -> None:
    with (
        MetastoreServer(tmp_path, transaction_timeout_seconds=TIMEOUT_SECONDS, reaper=True) as server,
        ThriftAdmin(server.host, server.port) as admin,
    ):
        dead = _dead_writer(admin, "reaped")
        assert _comes_true(lambda: dead in admin.transactions().aborted)
        assert admin.write_ids("reaped", "t").aborted == {1}


def test_the_reaper_spares_a_transaction_with_heartbeats(tmp_path: Path) -> None:
    with (
        MetastoreServer(tmp_path, transaction_timeout_seconds=TIMEOUT_SECONDS, reaper=True) as server,
        ThriftAdmin(server.host, server.port) as admin,
    ):
        alive, dead = admin.open_transactions(2)

        def dead_is_aborted() -> bool:
            admin.heartbeat(alive)
            return dead in admin.transactions().aborted

        assert _comes_true(dead_is_aborted)
        assert alive in admin.transactions().open


def test_without_a_reaper_a_dead_transaction_stays_open(tmp_path: Path) -> None:
    with (
        MetastoreServer(tmp_path, transaction_timeout_seconds=TIMEOUT_SECONDS, reaper=False) as server,
        ThriftAdmin(server.host, server.port) as admin,
    ):
        dead = _dead_writer(admin, "kept")
        time.sleep(2 * TIMEOUT_SECONDS)  # longer than the reaper of the test above ever needs
        assert dead in admin.transactions().open


def test_a_killed_server_comes_back_on_the_same_port_with_the_same_data(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path, reaper=False) as server:
        with ThriftAdmin(server.host, server.port) as admin:
            transaction = _dead_writer(admin, "survivor")
        address = server.uri
        server.kill()
        with pytest.raises(Exception, match="Could not connect"), ThriftAdmin(server.host, server.port):
            pass
        server.restart()
        assert server.uri == address
        with ThriftAdmin(server.host, server.port) as admin:
            assert transaction in admin.transactions().open
            assert admin.write_ids("survivor", "t") == WriteIds(1, frozenset({1}), frozenset())


def test_stop_ends_the_server_and_nothing_else(tmp_path: Path, metastore: MetastoreServer) -> None:
    with MetastoreServer(tmp_path, reaper=False) as server:
        pid = server.pid
    assert pid is not None
    assert server.pid is None
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
    assert metastore.pid is not None


def test_a_server_that_cannot_start_says_why_and_leaves_no_process(tmp_path: Path, metastore: MetastoreServer) -> None:
    server = MetastoreServer(tmp_path, reaper=False)
    (tmp_path / "derby").mkdir()  # no database in it
    with pytest.raises(MetastoreUnavailableError, match=r"metastore\.log"):
        server.start()
    assert server.pid is None


def test_a_server_that_does_not_answer_in_time_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def never(_: MetastoreServer) -> None:
        if server.pid is not None:
            started.append(server.pid)

    monkeypatch.setattr(metastore_server, "START_SECONDS", 0)
    monkeypatch.setattr(MetastoreServer, "_version", never)
    server = MetastoreServer(tmp_path, reaper=False)
    with pytest.raises(MetastoreUnavailableError, match="no answer"):
        server.start()
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], signal.SIGTERM)


def test_a_server_of_another_version_than_its_programs_is_not_used(tmp_path: Path) -> None:
    server = MetastoreServer(tmp_path, reaper=False, program=replace(HIVE_4, version_answer="4.1.0"))
    with pytest.raises(MetastoreUnavailableError, match="is version 4.0.1, not 4.1.0"):
        server.start()
    assert server.pid is None


def test_a_fixture_that_does_not_lie_where_the_test_says_is_not_used(
    metastore: MetastoreServer, tmp_path: Path
) -> None:
    """Metastore 4 puts managed tables into its warehouse, whatever their database's location is."""
    place = RemotePlace(Storages(), f"file:{tmp_path}/elsewhere")
    with pytest.raises(AssertionError, match="misplaced.a_plain is to lie below"):
        register(metastore, "a_plain", "3.1.3", "misplaced", place=(place, tmp_path / "copy"))


@pytest.mark.parametrize(("version", "name"), [(v, name) for v in VERSIONS for name in fixture_names(v)])
def test_a_fixture_has_the_write_ids_and_rows_that_hive_saw(
    version: str, name: str, metastore: MetastoreServer
) -> None:
    table = register(metastore, name, version, f"fixtures_{version[0]}")
    fixture = table.fixture
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        write_ids = admin.write_ids(table.database, table.name)
        assert admin.partition_names(table.database, table.name) == list(table.partitions)
    assert write_ids == WriteIds(fixture.high_water_mark, fixture.open_write_ids, fixture.aborted_write_ids)
    if fixture.full_acid:
        definition = fixture.definition
        snapshot = Snapshot(write_ids.high_water_mark, write_ids.open, write_ids.aborted)
        rows = read_table(table.location, definition.columns, snapshot, partition_keys=[*definition.partition_keys])
        assert len(rows) == len(table.rows)
        assert all(as_hive_prints(row) in table.rows for row in rows)
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        for transaction in table.open_transactions.values():
            # Left open it would hold back every cleaner of the metastore that all tests share.
            admin.abort(transaction)


def test_the_aborted_write_ids_of_a_fixture_outlive_the_metastores_housekeeping(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path, reaper=True) as server, ThriftAdmin(server.host, server.port) as admin:
        forgotten = admin.open_transactions(2)[0]
        admin.abort(forgotten)
        table = register(server, "a_abort", "3.1.3", "housekept")
        assert _comes_true(lambda: forgotten not in admin.transactions().aborted)
        assert admin.write_ids("housekept", "a_abort").aborted == table.fixture.aborted_write_ids


def test_locks_are_granted_as_hive_grants_them(metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        _create_table(admin, "locked")
        first, second = admin.open_transactions(2)
        assert admin.lock_as_reader(first, "locked", "t") > 0
        assert admin.lock_as_writer(second, "locked", "t") > 0
        admin.abort(first)
        admin.abort(second)


def test_a_truncated_or_dropped_table_has_no_files(metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        table = register(metastore, "a_multi", "3.1.3", "emptied")
        admin.drop_partition("emptied", "a_multi", "p=2")
        assert not (table.location / "p=2").exists()
        admin.truncate_table("emptied", "a_multi")
        assert not list(table.location.rglob("bucket_*"))
        admin.drop_table("emptied", "a_multi")
        assert not table.location.exists()


def _pretend_to_compact(server: MetastoreServer, table: FixtureTable) -> None:
    """A base without rows is published as a major compaction's outcome; only what the Cleaner does of it matters."""
    entity = Entity(table.database, table.name)
    pool = f"cleaner-test-{table.name}"
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)], user="tester") as client:
        queue = ThriftCompactionQueue(client, client.probe())
        queue.enqueue(entity, CompactionType.MAJOR, pool)
        claim = queue.claim(pool, "worker")
        assert claim is not None
        with CompactionTransaction(client, entity) as transaction:
            claim = queue.record(claim, table.fixture.high_water_mark, transaction.txn_id, "hive")
            base = table.location / f"base_{table.fixture.high_water_mark:07d}_v{transaction.txn_id:07d}"
            base.mkdir()
            (base / "_orc_acid_version").write_text("2")
            queue.complete(claim)
            transaction.commit()


def test_the_metastores_own_cleaner_deletes_what_a_compaction_made_obsolete_only_where_it_is_on(tmp_path: Path) -> None:
    server = MetastoreServer(tmp_path, reaper=False, own_cleaner=False)
    with server:
        table = register(server, "a_plain", "3.1.3", "cleaned")
        _pretend_to_compact(server, table)
        time.sleep(3)  # the Cleaner below needs less
        assert (table.location / "delta_0000001_0000001_0000").exists()
    server.own_cleaner = True
    with server:
        assert _comes_true(lambda: not list(table.location.glob("*delta_*")))
        assert [child.name[:12] for child in table.location.iterdir()] == ["base_0000006"]
