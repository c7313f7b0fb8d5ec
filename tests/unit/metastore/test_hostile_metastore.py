"""A metastore that is slow, lies, or is none: every call ends in time, in few bytes, and in this package's errors."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import AcidError, MetastoreError, MetastoreUnavailableError
from airflow_provider_acid.metastore.thrift import binary_protocol, transport
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import CallSocket
from airflow_provider_acid.plan.plan import CompactionType
from tests.unit.metastore.hostile_server import (
    EXCEPTION,
    I32,
    KEEP,
    LIST,
    MAP,
    STOP,
    STRUCT,
    TEXT,
    Answer,
    Asked,
    field,
    list_of,
    server,
    text,
)

TIMEOUT_SECONDS = 1.0
BLOCK = b"\0" * 2**20
RESULT = 0
UNKNOWN = "whether the metastore carried the call out is unknown"


def names(declared: int, items: bytes = b"") -> bytes:
    return field(LIST, RESULT, list_of(TEXT, declared, items))


def says(body: bytes, **head: int | bytes) -> Answer:
    """An answer with this body."""
    return lambda asked, connection: connection.sendall(asked.head(**head) + body)  # type: ignore[arg-type]


def raw(data: bytes) -> Answer:
    return lambda _, connection: connection.sendall(data)


def slowly(asked: Asked, connection: socket.socket) -> None:
    """A byte now and then, for far longer than a call may take."""
    connection.sendall(asked.head() + names(1) + struct.pack("!i", 1 << 20))
    for _ in range(100):
        connection.sendall(b"x")
        time.sleep(TIMEOUT_SECONDS / 10)


def without_end(asked: Asked, connection: socket.socket) -> None:
    """As many empty names as anybody takes."""
    connection.sendall(asked.head() + names(2**31 - 1))
    while True:
        connection.sendall(BLOCK)


def silently(_: Asked, connection: socket.socket) -> None:
    connection.recv(1)


HOSTILE: dict[str, tuple[Answer, str]] = {
    "a byte now and then": (slowly, "no complete answer within 1 s"),
    "nothing": (silently, "no complete answer within 1 s"),
    "a list without end": (without_end, "OverflowError"),
    "a list that says it is huge": (says(names(2**31 - 1)), "OverflowError"),
    "a text that says it is huge": (says(names(1, struct.pack("!i", 2**31 - 1))), "OverflowError"),
    "a text of negative length": (says(names(1, struct.pack("!i", -5))), "OverflowError"),
    "a list of negative length": (says(names(-7)), "OverflowError"),
    "a name that says it is huge": (raw(b"\x80\x01\x00\x02" + struct.pack("!i", 2**31 - 1)), "Length exceeded"),
    "structs in structs": (says(field(STRUCT, 99) * 100_000 + STOP * 100_001), "recursion depth"),
    "lists in lists": (says(field(LIST, 99, list_of(LIST, 1) * 100_000)), "recursion depth"),
    "half an answer": (says(names(2, text(b"a"))), "read 0 bytes"),
    "a list of numbers": (says(field(LIST, RESULT, list_of(I32, 1, b"\0\0\0\1"))), "TypeError"),
    "a map for a list": (says(field(MAP, RESULT, TEXT + list_of(TEXT, 0)) + STOP), "neither a result nor an error"),
    "no result": (says(STOP), "neither a result nor an error"),
    "an unknown type": (says(b"\x7f\0\0"), "no answer to it|TProtocolException"),
    "text that is not UTF-8": (says(names(1, text(b"\xff\xfe")) + STOP), "text that is not UTF-8"),
    "an unpaired surrogate": (says(names(1, text(b"\xed\xa0\x80")) + STOP), "text that is not UTF-8"),
    "another call's answer": (says(names(0) + STOP, name=b"drop_table"), "about 'drop_table'"),
    "an earlier call's answer": (says(names(0) + STOP, number=77), "answered by message 77"),
    "a call": (says(names(0) + STOP, type=1), "of type 1"),
    "an error that is not UTF-8": (says(field(TEXT, 1, text(b"\xff")) + STOP, type=EXCEPTION), "not UTF-8"),
    "an answer without a version": (raw(struct.pack("!i", 17) + b"get_all_databases"), "as none of a metastore does"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_call_ends_in_time_in_few_bytes_and_in_the_family(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 4 * 2**20)
    received = count_bytes(monkeypatch)
    answer, told = HOSTILE[hostile]
    with server(answer) as (address, asked), AcidMetastoreClient([address], timeout_seconds=TIMEOUT_SECONDS) as client:
        started = time.monotonic()
        with pytest.raises(MetastoreError, match=told):
            client.databases()
        # Each of two attempts has its time; the rest is for a busy machine.
        assert time.monotonic() - started < 2 * TIMEOUT_SECONDS + 20
        assert client._transport is None
    assert max(received) <= 4 * 2**20
    assert {call.name for call in asked} == {b"get_all_databases"}


def count_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each call received, in bytes."""
    received = [0]
    begin, read = CallSocket.begin_call, CallSocket.read

    def counting_begin(self: CallSocket) -> None:
        received.append(0)
        begin(self)

    def counting_read(self: CallSocket, size: int) -> bytes:
        data = read(self, size)
        received[-1] += len(data)
        return data

    monkeypatch.setattr(CallSocket, "begin_call", counting_begin)
    monkeypatch.setattr(CallSocket, "read", counting_read)
    return received


def test_an_answer_over_the_cap_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 2**20)
    received = count_bytes(monkeypatch)
    with (
        server(says(names(4, text(b"n" * 2**18) * 4) + STOP)) as (address, _),
        AcidMetastoreClient([address]) as client,
        pytest.raises(MetastoreUnavailableError, match="more than 1048576 bytes"),
    ):
        client.databases()
    assert max(received) == 2**20


def test_an_answer_of_600_000_partition_names_passes() -> None:
    items = b"".join(text(b"ds=2024-01-01/country=%08d/%066d" % (number, 0)) for number in range(600_000))
    with (
        server(says(names(600_000, items) + STOP)) as (address, _),
        AcidMetastoreClient([address]) as client,
    ):
        found = client.get_partition_names("d", "t")
    assert (len(found), len(found[-1])) == (600_000, 97)


def test_a_connection_is_used_again_after_an_answer_and_never_after_a_wrong_one() -> None:
    connections: list[object] = []

    def answer(asked: Asked, connection: socket.socket) -> object:
        connections.append(connection)
        number = asked.number if len(connections) < 3 else 0
        connection.sendall(asked.head(number=number) + names(1, text(b"d")) + STOP)
        return KEEP

    with server(answer) as (address, _), AcidMetastoreClient([address]) as client:
        assert [client.databases(), client.databases()] == [["d"], ["d"]]
        with pytest.raises(MetastoreUnavailableError, match="answered by message 0"):
            client.databases()
    assert [connections.index(connection) for connection in connections] == [0, 0, 0, 3]


Call = Callable[[AcidMetastoreClient], object]
ENTITY = Entity("d", "t")
ANSWER_FIELDS: dict[str, tuple[Call, bytes, str]] = {
    "a table without a place": (
        lambda client: client.get_table("d", "t"),
        field(STRUCT, 1, field(TEXT, 1, text(b"t")) + field(TEXT, 2, text(b"d")) + STOP),
        "get_table_req .* Table without storage",
    ),
    "no table": (lambda client: client.get_table("d", "t"), b"", "GetTableResult without table"),
    "a database without a name": (lambda client: client.get_database("d"), b"", "Database without name"),
    "open transactions without a mark": (lambda client: client.open_transactions(), b"", "txn_high_water_mark"),
    "a transaction without an id": (
        lambda client: client.transactions(),
        field(b"\x0a", 1, b"\0" * 8) + field(LIST, 2, list_of(STRUCT, 1, STOP)),
        "get_open_txns_info .* TxnInfo without id",
    ),
    "write ids of no table": (
        lambda client: client.valid_write_ids(["d.t"], "5:9:::"),
        field(LIST, 1, list_of(STRUCT, 1, STOP)),
        "TableValidWriteIds without full_table_name",
    ),
    "a lock that is nobody's": (
        lambda client: client.show_locks(),
        field(LIST, 1, list_of(STRUCT, 1, STOP)),
        "ShownLock without lockid",
    ),
    "the check of a lock without its state": (
        lambda client: client.check_lock(1),
        field(b"\x0a", 1, b"\0" * 8),
        "check_lock .* LockResponse without state",
    ),
    "a row without a table": (
        lambda client: client.compactions(),
        field(LIST, 1, list_of(STRUCT, 1, STOP)),
        "ShowCompactResponseElement without database",
    ),
}


@pytest.mark.parametrize("case", ANSWER_FIELDS)
def test_an_answer_without_what_it_promises_names_the_call(case: str) -> None:
    call, body, told = ANSWER_FIELDS[case]
    answer = says(field(STRUCT, RESULT, body + STOP) + STOP)
    with (
        server(answer) as (address, _),
        AcidMetastoreClient([address]) as client,
        pytest.raises(MetastoreError, match=told) as caught,
    ):
        call(client)
    assert not isinstance(caught.value, MetastoreUnavailableError)


def test_partitions_without_a_place_are_refused() -> None:
    partition = field(LIST, 1, list_of(TEXT, 1, text(b"1"))) + STOP
    answer = says(field(LIST, RESULT, list_of(STRUCT, 1, partition)) + STOP)
    with (
        server(answer) as (address, _),
        AcidMetastoreClient([address]) as client,
        pytest.raises(MetastoreError, match="Partition without storage"),
    ):
        client.get_partitions("d", "t", ["p=1"])


SENT_ONCE: dict[str, Call] = {
    "lock": lambda client: client.lock_shared_read(1, ENTITY),
    "compact2": lambda client: client.compact(ENTITY, CompactionType.MAJOR),
    "find_next_compact2": lambda client: client.find_next_compaction("worker", None, "1"),
    "open_txns": lambda client: client.open_compaction_txn(),
    "commit_txn": lambda client: client.commit(1),
}
UNUSABLE: dict[str, Answer] = {
    "no UTF-8": says(field(STRUCT, 1, field(TEXT, 1, text(b"\xff")) + STOP) + field(TEXT, 2, text(b"\xff")), type=3),
    "another call's": says(STOP, number=0),
    "garbage": says(b"\x7f\0\0"),
}


@pytest.mark.parametrize("unusable", UNUSABLE)
@pytest.mark.parametrize("call", SENT_ONCE)
def test_a_call_that_must_not_be_repeated_counts_as_perhaps_done(call: str, unusable: str) -> None:
    with (
        server(UNUSABLE[unusable]) as (address, asked),
        AcidMetastoreClient([address]) as client,
        pytest.raises(MetastoreUnavailableError, match=UNKNOWN),
    ):
        SENT_ONCE[call](client)
    assert [made.name.decode() for made in asked] == [call]


def reset(_: Asked, connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


FOREIGN: dict[str, tuple[Answer, str]] = {
    # Metastore 4.0.1 with metastore.use.SSL.
    "TLS of Java": (
        raw(b"\x15\x03\x03\x00\x02\x02\x0a"),
        "speaks TLS.*Remedy: set tls in the connection's extra, or name the port .*metastore.use.SSL=false",
    ),
    # OpenSSL's s_server, and metastore 4.0.1 with SASL; the latter also of framed and compact Thrift.
    "TLS of OpenSSL, SASL": (
        raw(b""),
        "read 0 bytes.*SASL .Kerberos, LDAP. or TLS.*Remedy: look at the metastore's log",
    ),
    # Python's ssl module.
    "TLS of Python": (reset, "SASL .Kerberos, LDAP. or TLS"),
    "HTTP": (raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "speaks HTTP.*Remedy: .*set http in the .*9083 by default"),
    # What Thrift's SASL transport says to a handshake that it understands and refuses.
    "SASL of Thrift": (
        raw(b"\x03" + text(b"Unsupported mechanism type")),
        "asks for SASL.*for Kerberos set kerberos_principal.*sasl.enabled=false",
    ),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_port_that_is_no_plain_metastores_is_named(foreign: str) -> None:
    answer, told = FOREIGN[foreign]
    with (
        server(answer) as (address, _),
        AcidMetastoreClient([address]) as client,
        pytest.raises(MetastoreUnavailableError, match=told),
    ):
        client.databases()


def test_an_error_of_the_server_is_shown_up_to_a_limit() -> None:
    told = field(TEXT, 1, text(b"x" * 2**20)) + STOP
    with (
        server(says(field(STRUCT, 1, told) + STOP)) as (address, _),
        AcidMetastoreClient([address]) as client,
        pytest.raises(AcidError, match="MetaException: xxx") as caught,
    ):
        client.databases()
    assert len(str(caught.value)) < 5000


def test_what_thrift_reserves_for_a_list_is_small_beside_an_answer() -> None:
    assert 8 * binary_protocol.MAX_ITEMS < transport.MAX_ANSWER_BYTES
