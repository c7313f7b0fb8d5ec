"""What is read out of, and written into, Thrift's structs."""

from __future__ import annotations

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.catalog import partition_values
from airflow_provider_acid.metastore.thrift.compactions import info_struct, row_of
from airflow_provider_acid.metastore.thrift.txns import duration_seconds, lock_answer, lock_of, split_by_bits, txn_of
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionState, LockState, TxnState


@pytest.mark.parametrize(
    ("ids", "bits", "open_ids", "aborted"),
    [
        ([], b"", (), ()),
        ([3, 5, 9], b"", (3, 5, 9), ()),
        ([3, 5, 9], b"\x00", (3, 5, 9), ()),
        ([3, 5, 9], b"\x01", (5, 9), (3,)),
        ([3, 5, 9], b"\x06", (3,), (5, 9)),
        (list(range(1, 11)), b"\x80\x02", (1, 2, 3, 4, 5, 6, 7, 9), (8, 10)),
        ([9, 3, 5], b"\x01", (3, 5), (9,)),
    ],
)
def test_bit_i_of_the_bitset_says_whether_id_i_is_aborted(
    ids: list[int], bits: bytes, open_ids: tuple[int, ...], aborted: tuple[int, ...]
) -> None:
    assert split_by_bits(ids, bits) == (open_ids, aborted)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300s", 300),
        ("300", 300),
        ("5m", 300),
        ("5 min", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("500ms", 0.5),
        ("3 hours", 10800),
        ("2days", 172800),
        ("5minutes", 300),
        ("300 seconds", 300),
        ("300S", 300),
        ("1000000us", 1),
    ],
)
def test_hives_time_settings(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "fast", "5 weeks", "-1s"])
def test_a_time_setting_that_is_none(text: str) -> None:
    with pytest.raises(MetastoreError, match="unknown form"):
        duration_seconds(text)


@pytest.mark.parametrize(
    ("fields", "highest_write_id"),
    [
        ({"highest_write_id": 7}, 7),
        ({"highest_txn_id": 7}, 7),
        ({"highest_txn_id": 6, "highest_write_id": 7}, 7),
        ({"highest_txn_id": 0, "highest_write_id": 0}, None),
        ({}, None),
    ],
)
def test_the_high_water_mark_is_field_24_else_field_9(fields: dict[str, int], highest_write_id: int | None) -> None:
    element = structs.ShowCompactResponseElement(id=1, database="d", table="t", type=2, state="working", **fields)
    assert row_of(element).highest_write_id == highest_write_id


@pytest.mark.parametrize(
    ("number", "name"), [(1, "minor"), (2, "major"), (3, "rebalance"), (5, "smart_optimize"), (77, "type 77")]
)
def test_a_request_of_any_type_is_read_and_sent_back_as_it_came(number: int, name: str) -> None:
    """Hive 4.1 knows a fifth type; seen: KeyError: 'type 5'."""
    element = structs.ShowCompactResponseElement(id=1, database="d", table="t", type=number, state="working")
    row = row_of(element)
    assert row.type == name
    assert info_struct(CompactionInfo.of_row(row)).type == number


@pytest.mark.parametrize("state", [None, "", "dancing"])
def test_a_request_in_a_state_that_nobody_knows_is_neither_history_nor_anybodys_to_change(state: str | None) -> None:
    row = row_of(structs.ShowCompactResponseElement(id=1, database="d", table="t", type=2, state=state))
    assert row.state is CompactionState.UNKNOWN
    assert not row.state.is_terminal
    assert not row.waits_to_be_cleaned


def test_a_transaction_or_lock_in_a_state_that_nobody_knows_counts_as_held_by_somebody() -> None:
    """Where not, a cleaner would delete what it reads."""
    txn = txn_of(structs.TxnInfo(id=7, state=99, user="u", hostname="h"), None)
    lock = lock_of(
        structs.ShownLock(lockid=1, dbname="d", tablename="t", state=99, type=99, txnid=7, user="u", hostname="h")
    )
    assert (txn.state, lock.state) == (TxnState.OPEN, LockState.ACQUIRED)


def test_a_lock_that_was_granted_in_a_way_that_nobody_knows_is_not_ours() -> None:
    assert lock_answer(structs.LockResponse(lock_id=1, state=99)).state is LockState.NOT_ACQUIRED


def test_what_the_database_holds_no_value_for_is_none() -> None:
    element = structs.ShowCompactResponseElement(
        **{"id": 1, "database": "d", "table": "t", "partition": "", "type": 9, "state": "?", "pool": "default"},
        **{"next_txn_id": 0, "txn_id": 0, "commit_ms": 0},
    )
    row = row_of(element)
    assert row.entity == Entity("d", "t")
    assert (row.next_txn_id, row.txn_id, row.commit_ms, row.pool, row.type) == (None, None, None, None, "type 9")


@pytest.mark.parametrize(
    ("name", "values"),
    [("ds=1", ("1",)), ("ds=A%2Fb c%25/h=", ("A/b c%", "")), ("k=a%3Db", ("a=b",)), ("k=é", ("é",))],
)
def test_the_values_in_a_partition_name(name: str, values: tuple[str, ...]) -> None:
    assert partition_values(name) == values


def test_a_struct_is_read_as_it_was_written_and_unset_fields_are_not_sent() -> None:
    written = structs.CompactionInfoStruct(id=5, database="d", table="t", type=2, too_many_aborts=False)
    buffer = TMemoryBuffer()
    written.write(TBinaryProtocol(buffer))
    assert len(buffer.getvalue()) == (3 + 8) + 2 * (3 + 4 + 1) + (3 + 4) + (3 + 1) + 1
    read = structs.CompactionInfoStruct.read(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))
    assert vars(read) == vars(written)


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="databse"):
        structs.CompactionInfoStruct(databse="d")
