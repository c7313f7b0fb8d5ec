"""The typed client against a real Hive 4 metastore."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.acid.write_ids import ValidTxnList
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
)
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import ColumnInfo, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.network_proxy import NetworkProxy
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

DATABASE = "client_tests"
PARTITIONS = ["ds=2024-01-01/h=0", "ds=A%2Fb c%25/h=1", "ds=MixedCase/h=2"]
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def _tables(metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        admin.create_database(DATABASE, properties={"no_auto_compaction": "true"})
        admin.create_table(
            TableDefinition(
                DATABASE, "parted", {"a": "int", "b": "array<struct<c:decimal(10,2)>>"}, {"ds": "string", "h": "int"}
            )
        )
        admin.add_partitions(DATABASE, "parted", PARTITIONS)
        admin.create_table(TableDefinition(DATABASE, "bucketed", {"a": "int"}, bucket_columns=("a",), buckets=4))
        admin.create_table(TableDefinition(DATABASE, "inserted", {"a": "int"}, properties=INSERT_ONLY))


@pytest.fixture
def address(metastore: MetastoreServer) -> MetastoreAddress:
    return MetastoreAddress(metastore.host, metastore.port)


@pytest.fixture
def client(address: MetastoreAddress) -> Iterator[AcidMetastoreClient]:
    with AcidMetastoreClient([address]) as client:
        yield client


@pytest.fixture
def nowhere() -> MetastoreAddress:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return MetastoreAddress("127.0.0.1", free.getsockname()[1])


def valid_txns(client: AcidMetastoreClient) -> str:
    txns = client.open_transactions()
    return str(ValidTxnList(txns.high_water_mark, txns.open, txns.aborted))


def test_the_server_says_what_it_can_do(client: AcidMetastoreClient) -> None:
    hive = client.probe()
    assert hive == Hive(4, "4.0.1")


def test_databases_and_tables_are_listed(client: AcidMetastoreClient) -> None:
    assert DATABASE in client.databases()
    assert client.tables(DATABASE) == ["bucketed", "inserted", "parted"]
    assert client.tables(DATABASE, "b*|p*") == ["bucketed", "parted"]
    assert client.get_database(DATABASE).parameters["no_auto_compaction"] == "true"


def test_a_table_is_described_as_it_was_declared(client: AcidMetastoreClient) -> None:
    table = client.get_table(DATABASE.upper(), "PARTED")
    assert table.full_table_name == f"{DATABASE}.parted"
    assert table.columns == (ColumnInfo("a", "int"), ColumnInfo("b", "array<struct<c:decimal(10,2)>>"))
    assert table.partition_keys == (ColumnInfo("ds", "string"), ColumnInfo("h", "int"))
    assert table.input_format.endswith("OrcInputFormat")
    assert table.serde.library.endswith("OrcSerde")
    assert not table.stored_as_directories
    assert (table.is_transactional, table.is_insert_only, table.is_external) == (True, False, False)
    assert (table.bucket_count, table.sort_columns) == (-1, ())
    bucketed = client.get_table(DATABASE, "bucketed")
    assert bucketed.bucket_count == 4
    assert client.get_table(DATABASE, "inserted").is_insert_only


def test_partitions_come_by_name_in_the_order_asked_for(
    client: AcidMetastoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_acid.metastore.thrift.catalog.PARTITIONS_PER_CALL", 2)
    assert client.get_partition_names(DATABASE, "parted") == PARTITIONS
    wanted = PARTITIONS[::-1]
    found = client.get_partitions(DATABASE, "parted", wanted)
    assert [partition.name for partition in found] == wanted
    assert [partition.values for partition in found] == [("MixedCase", "2"), ("A/b c%", "1"), ("2024-01-01", "0")]
    assert all(partition.location.startswith("file:") for partition in found)
    assert all(partition.input_format.endswith("OrcInputFormat") for partition in found)
    assert all(partition.serde.library.endswith("OrcSerde") for partition in found)
    assert client.get_partitions(DATABASE, "parted", []) == []
    assert client.get_partition_names(DATABASE, "bucketed") == []


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.get_database("nowhere"),
        lambda client: client.get_table(DATABASE, "nothing"),
        lambda client: client.get_table("nowhere", "nothing"),
        lambda client: client.get_partitions(DATABASE, "parted", ["ds=x/h=7", PARTITIONS[0]]),
        lambda client: client.get_partitions(DATABASE, "parted", ["ds=2024-01-01"]),
    ],
)
def test_what_does_not_exist_is_named_and_the_connection_stays_good(client: AcidMetastoreClient, read: object) -> None:
    assert callable(read)
    with pytest.raises(ObjectNotFoundError, match="nowhere|nothing|ds="):
        read(client)
    assert DATABASE in client.databases()


def test_write_ids_are_told_apart_as_open_and_aborted(client: AcidMetastoreClient, metastore: MetastoreServer) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        txns = admin.open_transactions(11)
        admin.allocate_write_ids(DATABASE, "parted", txns)
        aborted, still_open = (txns[1], txns[8], txns[10]), (txns[4], txns[9])
        for txn in aborted:
            admin.abort(txn)
        for txn in set(txns) - {*aborted, *still_open}:
            admin.commit(txn)
    names = [f"{DATABASE}.PARTED", f"{DATABASE}.bucketed"]
    written, untouched = client.valid_write_ids(names, valid_txns(client))
    assert written.full_table_name == f"{DATABASE}.parted"
    assert (written.high_water_mark, written.min_open) == (11, 5)
    assert (sorted(written.open), sorted(written.aborted)) == ([5, 10], [2, 9, 11])
    assert (untouched.full_table_name, untouched.high_water_mark) == (f"{DATABASE}.bucketed", 0)
    states = [client.transaction_state(txn) for txn in (txns[0], txns[1], txns[4])]
    assert states == [TxnState.COMMITTED_OR_UNKNOWN, TxnState.ABORTED, TxnState.OPEN]
    assert client.open_transactions().min_open is not None
    for txn in still_open:
        client.abort(txn)


def test_write_ids_are_never_asked_for_with_an_empty_list_of_transactions(client: AcidMetastoreClient) -> None:
    with pytest.raises(MetastoreError, match="without a transaction list"):
        client.valid_write_ids([f"{DATABASE}.parted"], "")


def test_the_metastores_clock_is_told_and_leaves_no_transaction_open(client: AcidMetastoreClient) -> None:
    before = client.open_transactions().open
    first, second = client.server_now_ms(), client.server_now_ms()
    assert first <= second
    assert client.open_transactions().open == before


def test_hive_4_reports_the_high_water_mark_of_a_live_row_in_field_9(client: AcidMetastoreClient) -> None:
    entity = Entity(DATABASE, "field_9")
    client.compact(entity, CompactionType.MAJOR, pool="field_9")
    info = client.find_next_compaction("worker-1", "field_9", "1")
    assert info is not None
    txn = client.open_compaction_txn()
    client.update_compactor_state(type(info)(info.id, entity, info.type, highest_write_id=7, run_as="hive"), txn)
    client.abort(txn)
    request = structs.ShowCompactRequest(id=info.id)
    [element] = client._invoke("test", methods.SHOW_COMPACT, request, repeatable=True).compactions
    assert (element.highest_txn_id, element.highest_write_id) == (7, None)
    [row] = client.compactions(id=info.id)
    assert row.highest_write_id == 7


def test_all_rows_are_listed_however_many(client: AcidMetastoreClient) -> None:
    entities = [Entity(DATABASE, "many", f"ds={number}") for number in range(120)]
    for entity in entities:
        client.compact(entity, CompactionType.MINOR, pool="many")
    rows = client.compactions(pool="many")
    assert [row.entity for row in rows] == entities
    assert client.compactions(entity=entities[7], pool="many") == [rows[7]]


def test_nobody_listening_is_an_error_that_names_every_address(nowhere: MetastoreAddress) -> None:
    other = MetastoreAddress("host.invalid", 9083)
    with (
        AcidMetastoreClient([nowhere, other], timeout_seconds=5) as client,
        pytest.raises(MetastoreUnavailableError, match=rf"{nowhere}.*{other}"),
    ):
        client.databases()


def test_the_next_address_is_taken_where_the_first_does_not_answer(
    nowhere: MetastoreAddress, address: MetastoreAddress
) -> None:
    with AcidMetastoreClient([nowhere, address]) as client:
        assert DATABASE in client.databases()


def test_a_connection_that_breaks_fails_over_to_the_other_address(
    metastore: MetastoreServer, address: MetastoreAddress
) -> None:
    with (
        NetworkProxy(metastore.host, metastore.port) as proxy,
        AcidMetastoreClient([MetastoreAddress(proxy.host, proxy.port), address]) as client,
    ):
        client.databases()
        proxy.refuse(True)
        assert DATABASE in client.databases()
        client.abort(client.open_compaction_txn())


def test_a_read_is_repeated_when_its_answer_got_lost_and_a_new_transaction_is_not(
    metastore: MetastoreServer, client: AcidMetastoreClient
) -> None:
    with (
        NetworkProxy(metastore.host, metastore.port) as proxy,
        AcidMetastoreClient([MetastoreAddress(proxy.host, proxy.port)], timeout_seconds=20) as shaky,
    ):
        shaky.databases()
        proxy.lose_answer()
        assert DATABASE in shaky.databases()
        before = client.open_transactions().high_water_mark
        proxy.lose_answer()
        with pytest.raises(MetastoreUnavailableError, match="carried the call out is unknown"):
            shaky.open_compaction_txn()
        assert client.open_transactions().high_water_mark == before + 1
        assert DATABASE in shaky.databases()
        client.abort(before + 1)


def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = MetastoreAddress("127.0.0.1", silent.getsockname()[1])
        with (
            AcidMetastoreClient([address], timeout_seconds=0.2) as client,
            pytest.raises(MetastoreUnavailableError, match="read timeout"),
        ):
            client.databases()


def test_an_interrupted_call_ends_at_once_and_the_client_is_spent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = MetastoreAddress("127.0.0.1", silent.getsockname()[1])
        with AcidMetastoreClient([address], timeout_seconds=PATIENCE_SECONDS) as client:
            threading.Timer(0.2, client.interrupt).start()
            with pytest.raises(MetastoreUnavailableError, match="read 0 bytes"):  # not: a time-out
                client.databases()
            with pytest.raises(MetastoreUnavailableError, match="interrupted"):
                client.databases()


def test_a_client_belongs_to_one_thread(client: AcidMetastoreClient) -> None:
    client.databases()
    with ThreadPoolExecutor(1) as other_thread:
        with pytest.raises(ConfigurationError, match="one client per thread"):
            other_thread.submit(client.databases).result()
        own = client.for_another_thread()
        assert DATABASE in other_thread.submit(own.databases).result()
        other_thread.submit(own.close).result()
    assert DATABASE in client.databases()
