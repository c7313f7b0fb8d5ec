"""The EXCLUSIVE lock of a compaction's own transaction, as real metastores see it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError, OwnershipLostError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import LockState
from tests.harness import the_hive_4
from tests.harness.compaction_chain import wait_until
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import FULL_ACID, LockNotAcquiredError, TableDefinition, ThriftAdmin

NUMBERS = itertools.count(1)


@pytest.fixture(params=[f"reaping_{the_hive_4.NAME}_metastore", "reaping_hive_3_metastore"])
def server(request: pytest.FixtureRequest) -> Iterator[MetastoreServer]:
    found: MetastoreServer = request.getfixturevalue(request.param)
    with found.in_use():
        yield found


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[AcidMetastoreClient]:
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)]) as client:
        yield client


@pytest.fixture
def admin(server: MetastoreServer) -> Iterator[ThriftAdmin]:
    with ThriftAdmin(server.host, server.port) as admin:
        yield admin


@pytest.fixture
def table(admin: ThriftAdmin) -> Entity:
    database = f"exclusive{next(NUMBERS)}"
    admin.create_database(database)
    definition = TableDefinition(
        database, "t", {"v": "bigint"}, partition_keys={"p": "string"}, properties=dict(FULL_ACID)
    )
    admin.create_table(definition)
    admin.add_partitions(database, "t", ["p=1", "p=2"])
    return Entity(database, "t")


def test_it_does_not_wait_for_the_transactions_own_shared_lock(client: AcidMetastoreClient, table: Entity) -> None:
    with CompactionTransaction(client, table) as transaction:
        transaction.ask_exclusive()
        assert transaction.has_exclusive()
        transaction.verify()
        held = {lock.type: lock.lock_id for lock in client.show_locks(table)}
        assert held == {"SHARED_READ": transaction.lock_id, "EXCLUSIVE": transaction.exclusive_lock_id}
        transaction.commit()
    assert client.show_locks(table) == []


@pytest.mark.parametrize("is_older", [True, False], ids=["older", "newer"])
def test_beside_a_reader_with_an_older_or_newer_lock_than_the_shared_one_it_is_neither_held_nor_verified(
    client: AcidMetastoreClient, admin: ThriftAdmin, table: Entity, is_older: bool
) -> None:
    """Hive 3.1.3 grants it past an older one all the same."""
    (reader,) = admin.open_transactions()
    if is_older:
        admin.lock_as_reader(reader, table.database, table.table)
    with CompactionTransaction(client, table) as transaction:
        if not is_older:
            admin.lock_as_reader(reader, table.database, table.table)
        transaction.ask_exclusive()
        assert not transaction.has_exclusive()
        assert f"SHARED_READ, acquired, txn {reader}, " in transaction.blockers()
        with pytest.raises(OwnershipLostError, match=f"lock {transaction.exclusive_lock_id} on {table}: is waiting"):
            transaction.verify()
        admin.commit(reader)
        assert transaction.has_exclusive()
        assert transaction.blockers() == "nobody any more"
        transaction.verify()


def test_it_is_not_held_before_it_was_asked_for(client: AcidMetastoreClient, table: Entity) -> None:
    with CompactionTransaction(client, table) as transaction:
        with pytest.raises(ConfigurationError, match="did not ask for an exclusive lock"):
            transaction.has_exclusive()
        assert transaction.exclusive_lock_id is None


@pytest.mark.parametrize(
    ("locked", "read", "waits"),
    [("p=1", "p=1", True), ("p=1", None, True), (None, "p=1", True), ("p=1", "p=2", False)],
)
def test_it_keeps_away_readers_of_the_same_partition_and_of_the_whole_table(
    client: AcidMetastoreClient, admin: ThriftAdmin, table: Entity, locked: str | None, read: str | None, waits: bool
) -> None:
    (reader,) = admin.open_transactions()
    with CompactionTransaction(client, Entity(table.database, table.table, locked)) as transaction:
        transaction.ask_exclusive()
        assert transaction.has_exclusive()
        try:
            admin.lock_as_reader(reader, table.database, table.table, read)
            was_let_in = True
        except LockNotAcquiredError:
            was_let_in = False
    assert was_let_in is not waits
    admin.abort(reader)


def test_it_is_not_recorded_as_a_write_of_the_transaction(
    client: AcidMetastoreClient, admin: ThriftAdmin, table: Entity
) -> None:
    """An aborted transaction that wrote is kept until its files are cleaned; one that did not is forgotten."""
    (writer,) = admin.open_transactions()
    admin.lock_as_writer(writer, table.database, table.table)
    admin.abort(writer)
    with CompactionTransaction(client, table) as transaction:
        transaction.ask_exclusive()
        assert client.check_lock(transaction.exclusive_lock_id or 0, transaction.txn_id).state is LockState.ACQUIRED
    # The newest transaction is never forgotten.
    wait_until(lambda: client.server_now_ms() > 0 and transaction.txn_id not in client.open_transactions().aborted)
    assert writer in client.open_transactions().aborted
