"""Transactions with lock and heartbeats on real metastores, which abort dead transactions after 3 s."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreUnavailableError,
    OwnershipLostError,
    RefusedError,
)
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import LockState, TxnState
from tests.harness import the_hive_4
from tests.harness.compaction_chain import wait_until
from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.network_proxy import NetworkProxy

PATIENCE_SECONDS = 60
NUMBERS = itertools.count(1)


HIVE_4 = f"reaping_{the_hive_4.NAME}_metastore"
ON_BOTH_METASTORES = pytest.mark.parametrize("server", [HIVE_4, "reaping_hive_3_metastore"], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[MetastoreServer]:
    server: MetastoreServer = request.getfixturevalue(getattr(request, "param", HIVE_4))
    with server.in_use():
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[AcidMetastoreClient]:
    """The caller's client, and in tests also the one that looks from outside."""
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)]) as client:
        yield client


@pytest.fixture
def proxy(server: MetastoreServer) -> Iterator[NetworkProxy]:
    with NetworkProxy(server.host, server.port) as proxy:
        yield proxy


@pytest.fixture
def shaky_client(proxy: NetworkProxy) -> Iterator[AcidMetastoreClient]:
    """A client behind a network that can break."""
    with AcidMetastoreClient([MetastoreAddress(proxy.host, proxy.port)], timeout_seconds=20) as client:
        yield client


@pytest.fixture
def entity() -> Entity:
    return Entity("transaction_tests", f"t{next(NUMBERS)}", "ds=1")


def beating_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("heartbeat-txn-")]


def is_lost(transaction: CompactionTransaction) -> bool:
    try:
        transaction.check()
    except OwnershipLostError:
        return True
    return False


@ON_BOTH_METASTORES
def test_the_servers_own_time_out_decides_how_often_to_beat(client: AcidMetastoreClient) -> None:
    assert client.txn_timeout_seconds() == REAPER_SECONDS


@ON_BOTH_METASTORES
def test_k12_heartbeats_keep_a_transaction_alive_beyond_its_time_out(
    client: AcidMetastoreClient, entity: Entity
) -> None:
    started = time.monotonic()
    abandoned = client.open_compaction_txn()
    with CompactionTransaction(client, entity) as transaction:
        wait_until(lambda: client.transaction_state(abandoned) is TxnState.COMMITTED_OR_UNKNOWN)
        wait_until(lambda: time.monotonic() - started > 2 * REAPER_SECONDS)
        transaction.verify()
        transaction.commit()
    assert client.transaction_state(transaction.txn_id) is TxnState.COMMITTED_OR_UNKNOWN


def test_the_lock_says_whose_transaction_it_is(client: AcidMetastoreClient, entity: Entity) -> None:
    with CompactionTransaction(client, entity, agent_info="attempt-1") as transaction:
        [lock] = client.show_locks(entity)
        [txn] = [txn for txn in client.transactions() if txn.id == transaction.txn_id]
    assert (lock.lock_id, lock.txn_id, lock.type) == (transaction.lock_id, transaction.txn_id, "SHARED_READ")
    assert (lock.state, lock.agent_info) == (LockState.ACQUIRED, "attempt-1")
    assert (txn.state, txn.agent_info) == (TxnState.OPEN, "attempt-1")


@pytest.mark.parametrize("partition", [None, "ds=1", "ds=A%2Fb/h=%25"])
def test_the_lock_is_found_whatever_the_server_makes_of_the_partitions_name(
    client: AcidMetastoreClient, entity: Entity, partition: str | None
) -> None:
    locked = Entity(entity.database, entity.table, partition)
    with CompactionTransaction(client, locked) as transaction:
        assert [lock.lock_id for lock in client.show_locks(locked)] == [transaction.lock_id]
        assert client.show_locks(Entity(entity.database, "another")) == []
    assert client.show_locks(locked) == []


@ON_BOTH_METASTORES
def test_leaving_without_commit_aborts_and_lets_go_of_the_lock(client: AcidMetastoreClient, entity: Entity) -> None:
    with pytest.raises(ZeroDivisionError), CompactionTransaction(client, entity, heartbeat_seconds=0.05) as transaction:
        raise ZeroDivisionError
    with pytest.raises(OwnershipLostError):
        client.commit(transaction.txn_id)
    assert client.show_locks(entity) == []


def test_a_commit_keeps_the_transaction_from_being_aborted_on_leaving(
    client: AcidMetastoreClient, entity: Entity
) -> None:
    with CompactionTransaction(client, entity) as transaction:
        transaction.commit()
        with pytest.raises(ConfigurationError, match="has ended"):
            transaction.check()
    with pytest.raises(OwnershipLostError, match="already committed"):
        client.abort(transaction.txn_id)


def test_several_transactions_are_open_at_once(client: AcidMetastoreClient, entity: Entity) -> None:
    entities = [Entity(entity.database, entity.table, f"ds={day}") for day in (1, 2)]
    transactions = [CompactionTransaction(client, entity).start() for entity in entities]
    transactions[0].close()
    transactions[1].verify()
    transactions[1].commit()
    transactions[1].close()
    with pytest.raises(OwnershipLostError, match="already committed"):
        client.abort(transactions[1].txn_id)


@ON_BOTH_METASTORES
def test_k12_no_heartbeat_follows_the_end(client: AcidMetastoreClient, entity: Entity) -> None:
    with CompactionTransaction(client, entity, heartbeat_seconds=0.02) as transaction:
        assert beating_threads() == [f"heartbeat-txn-{transaction.txn_id}"]
        transaction.commit()
        assert beating_threads() == []
    with CompactionTransaction(client, entity, heartbeat_seconds=0.02):
        pass
    assert beating_threads() == []


def test_k13_a_transaction_is_started_once(client: AcidMetastoreClient, entity: Entity) -> None:
    with (
        CompactionTransaction(client, entity) as transaction,
        pytest.raises(ConfigurationError, match="started already"),
    ):
        transaction.start()


def test_k13_a_transaction_that_was_not_started_has_no_id_and_closes_quietly(
    client: AcidMetastoreClient, entity: Entity
) -> None:
    transaction = CompactionTransaction(client, entity)
    with pytest.raises(ConfigurationError, match="not started"):
        _ = transaction.txn_id
    with pytest.raises(ConfigurationError, match="not started"):
        transaction.check()
    transaction.close()


@ON_BOTH_METASTORES
def test_an_aborted_transaction_is_noticed_by_its_heartbeats(client: AcidMetastoreClient, entity: Entity) -> None:
    with CompactionTransaction(client, entity, heartbeat_seconds=0.05) as transaction:
        client.abort(transaction.txn_id)
        wait_until(lambda: is_lost(transaction))
        with pytest.raises(OwnershipLostError):
            transaction.commit()


@ON_BOTH_METASTORES
def test_an_aborted_transaction_is_noticed_by_asking(client: AcidMetastoreClient, entity: Entity) -> None:
    with CompactionTransaction(
        client, entity, heartbeat_seconds=PATIENCE_SECONDS, txn_timeout_seconds=2 * PATIENCE_SECONDS
    ) as transaction:
        transaction.verify()
        client.abort(transaction.txn_id)
        transaction.check()
        with pytest.raises(OwnershipLostError):
            transaction.verify()
        with pytest.raises(OwnershipLostError):
            transaction.commit()


@ON_BOTH_METASTORES
def test_asking_is_a_sign_of_life(client: AcidMetastoreClient, entity: Entity) -> None:
    def heard_of_ms(txn_id: int) -> int | None:
        return next(txn.last_heartbeat_ms for txn in client.transactions() if txn.id == txn_id)

    with CompactionTransaction(
        client, entity, heartbeat_seconds=PATIENCE_SECONDS, txn_timeout_seconds=2 * PATIENCE_SECONDS
    ) as transaction:
        before_ms = heard_of_ms(transaction.txn_id)
        assert before_ms is not None
        time.sleep(0.1)
        assert heard_of_ms(transaction.txn_id) == before_ms
        transaction.verify()
        after_ms = heard_of_ms(transaction.txn_id)
    assert after_ms is not None
    assert after_ms > before_ms


@ON_BOTH_METASTORES
def test_a_transaction_that_outlived_the_network_is_lost(
    shaky_client: AcidMetastoreClient, proxy: NetworkProxy, client: AcidMetastoreClient, entity: Entity
) -> None:
    with CompactionTransaction(shaky_client, entity, heartbeat_seconds=0.1) as transaction:
        transaction.verify()
        proxy.refuse(True)
        wait_until(lambda: is_lost(transaction))
        wait_until(lambda: client.transaction_state(transaction.txn_id) is not TxnState.OPEN)
    with pytest.raises(OwnershipLostError):
        client.commit(transaction.txn_id)


@ON_BOTH_METASTORES
def test_k13_a_blip_of_the_network_is_survived_with_a_new_connection(
    shaky_client: AcidMetastoreClient, proxy: NetworkProxy, entity: Entity
) -> None:
    with CompactionTransaction(
        shaky_client, entity, heartbeat_seconds=0.1, txn_timeout_seconds=PATIENCE_SECONDS
    ) as transaction:
        accepted = proxy.accepted
        proxy.cut()
        wait_until(lambda: proxy.accepted > accepted)
        transaction.verify()
        transaction.commit()
    assert shaky_client.transaction_state(transaction.txn_id) is TxnState.COMMITTED_OR_UNKNOWN


@ON_BOTH_METASTORES
def test_a_lock_that_is_not_granted_is_a_refusal_that_names_the_holder(
    client: AcidMetastoreClient, server: MetastoreServer, entity: Entity
) -> None:
    with (
        exclusive_lock(server, entity) as lock_id,
        pytest.raises(RefusedError, match=f"lock {lock_id} .EXCLUSIVE, acquired, no txn, ddl@elsewhere"),
    ):
        CompactionTransaction(client, entity, lock_wait_seconds=0).start()
    assert client.show_locks(entity) == []
    txns = client.open_transactions()
    assert txns.high_water_mark not in txns.open, "the transaction was aborted"
    assert beating_threads() == []


@ON_BOTH_METASTORES
def test_a_lock_that_comes_late_is_waited_for(
    client: AcidMetastoreClient, server: MetastoreServer, entity: Entity
) -> None:
    is_locked = threading.Event()

    def ddl_statement() -> None:
        with exclusive_lock(server, entity):
            is_locked.set()
            time.sleep(0.5)

    statement = threading.Thread(target=ddl_statement)
    statement.start()
    assert is_locked.wait(PATIENCE_SECONDS)
    with CompactionTransaction(client, entity, lock_wait_seconds=PATIENCE_SECONDS) as transaction:
        transaction.verify()
    statement.join()


def test_a_commit_whose_answer_got_lost_is_settled_by_committing_again(
    shaky_client: AcidMetastoreClient, proxy: NetworkProxy, client: AcidMetastoreClient, entity: Entity
) -> None:
    with CompactionTransaction(shaky_client, entity, heartbeat_seconds=2) as transaction:
        transaction.verify()
        proxy.lose_answer()
        transaction.commit()
    with pytest.raises(OwnershipLostError, match="already committed"):
        client.abort(transaction.txn_id)


def test_a_commit_that_cannot_be_settled_is_reported_as_unknown(
    shaky_client: AcidMetastoreClient, proxy: NetworkProxy, entity: Entity
) -> None:
    with CompactionTransaction(shaky_client, entity) as transaction:
        proxy.refuse(True)
        with pytest.raises(MetastoreUnavailableError):
            transaction.commit()


def test_a_metastore_that_was_killed_and_came_back_is_found_again(tmp_path: Path, entity: Entity) -> None:
    with MetastoreServer(tmp_path, reaper=False) as server:
        address = MetastoreAddress(server.host, server.port)
        with AcidMetastoreClient([address]) as client:
            with CompactionTransaction(client, entity, heartbeat_seconds=0.1) as transaction:
                server.kill()
                with pytest.raises(MetastoreUnavailableError, match=f"{server.host}:{server.port}"):
                    client.databases()
                server.restart()
                transaction.verify()
                transaction.commit()
            assert client.databases() == ["default"]
            assert client.open_compaction_txn() > transaction.txn_id


@contextmanager
def exclusive_lock(server: MetastoreServer, entity: Entity) -> Iterator[int]:
    """The lock a DDL statement takes on the table; its id."""
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE,
        level=ttypes.LockLevel.TABLE,
        dbname=entity.database,
        tablename=entity.table,
        operationType=ttypes.DataOperationType.NO_TXN,
    )
    with HMSClient(host=server.host, port=server.port) as admin:
        lock = admin.lock(ttypes.LockRequest(component=[component], user="ddl", hostname="elsewhere"))
        try:
            yield lock.lockid
        finally:
            admin.unlock(ttypes.UnlockRequest(lock.lockid))
