"""Thrift inside HTTP: what a server, a proxy or neither may answer, and what is sent."""

from __future__ import annotations

import base64
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import jwt
import pytest

from airflow_provider_acid.exceptions import MetastoreAccessError, MetastoreError, MetastoreUnavailableError
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.http import Http
from airflow_provider_acid.metastore.access.jwt import MAX_TOKEN_BYTES, Jwt
from airflow_provider_acid.metastore.thrift import transport
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.unit.metastore import hostile_server
from tests.unit.metastore.hostile_server import LIST, STOP, TEXT, Asked, list_of
from tests.unit.metastore.test_tls import listening

TIMEOUT_SECONDS = 1.0
UNKNOWN = "whether the metastore carried the call out is unknown"
KEY = "a key of thirty-two bytes, or more"


def token(**claims: object) -> str:
    return jwt.encode({"sub": "airflow", **claims}, KEY, algorithm="HS256")


TOKEN = token()


@dataclass
class Server:
    """What it got.

    :ivar connections: how many.
    :ivar requests: heads, as they arrived.
    """

    connections: int = 0
    requests: list[str] = field(default_factory=list)

    def client(self, port: int, http: Http) -> AcidMetastoreClient:
        address = transport.MetastoreAddress("127.0.0.1", port)
        return AcidMetastoreClient(
            [address], transport_factory=MetastoreAccess(http=http), timeout_seconds=TIMEOUT_SECONDS
        )


Answer = Callable[[socket.socket, bytes], bool]
"""Sends what a test chose to a request with this Thrift call in it; whether the connection stays."""


@contextmanager
def serving(answer: Answer, http: Http = Http(jwt=Jwt(TOKEN))) -> Iterator[tuple[AcidMetastoreClient, Server]]:  # noqa: B008
    """A client of a server that answers so."""
    server = Server()

    def converse(connection: socket.socket) -> None:
        server.connections += 1
        with connection.makefile("rb") as received:
            while line := received.readline():
                head = line
                while (line := received.readline()) != b"\r\n":
                    head += line
                server.requests.append(head.decode())
                (length,) = (int(line[15:]) for line in head.splitlines() if line.startswith(b"Content-Length"))
                if not answer(connection, received.read(length)):
                    return

    with listening(converse) as address, server.client(address.port, http) as client:
        yield client, server


def databases(call: bytes, names: Sequence[bytes] = ()) -> bytes:
    """A metastore's answer to the question for its databases."""
    (length,) = struct.unpack("!i", call[4:8])
    (number,) = struct.unpack("!i", call[8 + length : 12 + length])
    found = list_of(TEXT, len(names), b"".join(map(hostile_server.text, names)))
    return Asked(call[8 : 8 + length], number).head() + hostile_server.field(LIST, 0, found) + STOP


def says(status: str, body: bytes = b"", *headers: str) -> Answer:
    """An answer of this kind, whatever was asked."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]

    def answer(connection: socket.socket, call: bytes) -> bool:
        connection.sendall("\r\n".join(lines).encode() + body)
        return True

    return answer


def raw(data: bytes) -> Answer:
    """Sends this and hangs up."""

    def answer(connection: socket.socket, call: bytes) -> bool:
        connection.sendall(data)
        return False

    return answer


def metastore(connection: socket.socket, call: bytes) -> bool:
    return says("200 OK", databases(call, [b"sales"]))(connection, call)


def in_chunks(connection: socket.socket, call: bytes) -> bool:
    body = databases(call, [b"sales"])
    parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:], b""))
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts)
    return True


def closing(connection: socket.socket, call: bytes) -> bool:
    """Says that it will hang up, and takes its time to do so."""
    return says("200 OK", databases(call, [b"sales"]), "Connection: close")(connection, call)


@pytest.mark.parametrize(("answer", "connections"), [(metastore, 1), (in_chunks, 1), (closing, 2)])
def test_calls_share_a_connection_unless_the_server_says_that_it_ends(answer: Answer, connections: int) -> None:
    with serving(answer) as (client, server):
        assert client.databases() == client.databases() == ["sales"]
    assert server.connections == connections
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("http", "line", "header", "left_out"),
    [
        (Http(jwt=Jwt(TOKEN)), "POST /metastore HTTP/1.1", f"Authorization: Bearer {TOKEN}", "x-actor-username"),
        (Http("/a/b/", user="etl"), "POST /a/b HTTP/1.1", "x-actor-username: etl", "Authorization"),
    ],
)
def test_the_server_is_told_who_asks(http: Http, line: str, header: str, left_out: str) -> None:
    with serving(metastore, http) as (client, server):
        client.databases()
    [head] = server.requests
    assert head.splitlines()[0] == line
    assert header in head.splitlines()
    assert "Content-Type: application/x-thrift" in head.splitlines()
    assert left_out not in head


def test_without_another_name_the_user_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "worker")
    with serving(metastore, Http()) as (client, server):
        client.databases()
    assert "x-actor-username: worker" in server.requests[0].splitlines()


def test_a_token_in_a_file_is_read_for_each_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = [token(number=number) for number in range(3)]
    with serving(metastore, Http(jwt=Jwt(file=str(file)))) as (client, server):
        for each in tokens:
            file.write_text(f"{each}\n")
            client.databases()
    assert server.connections == 1
    assert [each in head for each, head in zip(tokens, server.requests, strict=True)] == [True] * 3


ANSWERS: dict[str, tuple[Answer, str, bool, bool]] = {
    # By name: an answer, what is told, whether that is final, and whether the call may have been carried out.
    "this token not wanted": (
        says("401 Unauthorized", b"<p>"),
        r"refuses the JWT in the connection's password, which",
        True,
        False,
    ),
    "forbidden": (
        says("403 Forbidden"),
        r"refuses the JWT .* names no end.*Remedy: give one that a key at",
        True,
        False,
    ),
    "another path": (
        says("404 Not Found"),
        r"no metastore at /metastore \(HTTP status 404\).*Remedy: set http_pa",
        True,
        False,
    ),
    "no servlet": (says("405 Method Not Allowed"), r"no metastore at /metastore \(HTTP status 405\)", True, False),
    "moved": (
        says("302 Found", b"", "Location: http://127.0.0.1:1/"),
        "answered by HTTP status 302 in pl",
        False,
        True,
    ),
    "failed": (says("500 Server Error", b"<html>"), "status 500 .*Remedy: look at the metastore's log", False, True),
    "a proxy": (says("504 Gateway Timeout", b"<html>"), "HTTP status 504 .* and at that of a proxy", False, True),
    "no Thrift": (says("200 OK", b"<html>"), "the answer begins with b'<htm'", False, True),
    "nothing": (says("200 OK"), "the HTTP answer ends in the middle of Thrift's", False, True),
    "half of it": (
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\x80\x01\0\x02"),
        "ends in the middle of",
        False,
        True,
    ),
    "half a chunk": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n\x80"),
        r"does not speak HTTP \(IncompleteRead\)",
        False,
        True,
    ),
    "a chunk of less than nothing": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n\x80"),
        r"does not speak HTTP \((ValueError|IncompleteRead)\)",
        False,
        True,
    ),
    "hung up": (raw(b""), "hung up instead of speaking HTTP, as ports do that speak plain Thrift", False, True),
    "TLS of Java": (raw(b"\x15\x03\x03\x00\x02\x02\x0a"), "this port speaks TLS.*Remedy: set tls in", True, True),
    "plain Thrift": (raw(b"\x80\x01\0\x03"), r"does not speak HTTP \(BadStatusLine\)", False, True),
    "an endless line": (raw(b"HTTP/1.1 200 " + b"x" * 2**17), r"does not speak HTTP \(LineTooLong\)", False, True),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_no_answer_is_told_once_and_without_the_token(case: str) -> None:
    answer, told, is_final, is_fate_unknown = ANSWERS[case]
    with serving(answer) as (client, server), pytest.raises(MetastoreUnavailableError, match=told) as caught:
        client.open_compaction_txn()
    assert len(server.requests) == 1, "a call that must not be repeated is sent once"
    assert isinstance(caught.value, MetastoreAccessError) == is_final
    assert (UNKNOWN in str(caught.value)) == is_fate_unknown
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("line", ["HTTP/1.1 {}", "{}", "HTTP/1.1 401 {}"])
def test_a_server_that_repeats_the_token_does_not_get_it_into_errors(line: str) -> None:
    data = line.format(TOKEN).encode() + b"\r\n" + TOKEN.encode()
    with serving(raw(data)) as (client, _), pytest.raises(MetastoreUnavailableError) as caught:
        client.databases()
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


def test_an_answer_that_says_it_is_endless_costs_neither_memory_nor_time() -> None:
    with (
        serving(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999\r\n\r\n\x80")) as (client, _),
        pytest.raises(MetastoreUnavailableError, match="ends in the middle"),
    ):
        client.databases()


def test_an_answer_over_the_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 4096)
    with (
        serving(says("200 OK", b"x" * 8192)) as (client, _),
        pytest.raises(MetastoreUnavailableError, match="the answer has more than 4096 bytes"),
    ):
        client.databases()


def test_a_server_that_sends_a_byte_now_and_then_is_given_up_in_time() -> None:
    def slowly(connection: socket.socket, call: bytes) -> bool:
        for _ in count():
            connection.sendall(b"H")
            time.sleep(TIMEOUT_SECONDS / 10)
        return True

    with (
        serving(slowly) as (client, _),
        pytest.raises(MetastoreUnavailableError, match="no complete answer within 1 s"),
    ):
        client.open_compaction_txn()


def test_a_server_that_hung_up_later_is_no_stranger() -> None:
    answers = iter([metastore, raw(b"")])
    with serving(lambda connection, call: next(answers)(connection, call)) as (client, _):
        client.databases()
        with pytest.raises(MetastoreUnavailableError, match=f"the server hung up without an answer.*{UNKNOWN}"):
            client.open_compaction_txn()


@pytest.mark.parametrize(
    ("claims", "told", "is_final"),
    [
        ({"exp": 1_000_000_000}, "ended at 2001-09-09 01:46:40 UTC.*Remedy: renew it", False),
        ({"exp": 4_000_000_000}, "ends at 2096-10-02 07:06:40 UTC.*Remedy: give one that a key at", True),
        ({"exp": 10**30}, "names no end", True),
    ],
)
def test_a_refused_token_says_when_it_ends(
    tmp_path: Path, claims: dict[str, object], told: str, is_final: bool
) -> None:
    file = tmp_path / "token"
    file.write_text(token(**claims))
    with (
        serving(says("401 Unauthorized"), Http(jwt=Jwt(file=str(file)))) as (client, _),
        pytest.raises(MetastoreUnavailableError, match=f"refuses the JWT in jwt_file {file}, which {told}") as caught,
    ):
        client.databases()
    assert caught.value.is_permanent == is_final


@pytest.mark.parametrize("payload", ["x", "W10", "e30", "bnVsbA", base64.b64encode(b"[" * 60_000).decode()])
def test_a_token_of_another_kind_names_no_end(payload: str) -> None:
    told = Jwt(f"a.{payload}.c").refusal(f"a.{payload}.c")
    assert "which names no end" in str(told)


@pytest.mark.parametrize(
    ("content", "told", "is_final"),
    [
        (None, "cannot be read .No such file or directory.*Remedy: give a file with a JWT", True),
        (b"", "is no JWT.*Remedy: give one", False),
        (b"sesame", "is no JWT", False),
        (b"a.b.c\r\nx-actor-username: root", "is no JWT", False),
        (b"a.b.\xff", "is no JWT", False),
        (b"a.b." + b"c" * MAX_TOKEN_BYTES + b" ", "is no JWT", False),
    ],
)
def test_a_file_without_a_token_is_named_and_nothing_is_sent(
    tmp_path: Path, content: bytes | None, told: str, is_final: bool
) -> None:
    """A file that is written while it is read may be empty for a moment."""
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with (
        serving(metastore, Http(jwt=Jwt(file=str(file)))) as (client, server),
        pytest.raises(MetastoreUnavailableError, match=f"jwt_file {file} {told}") as caught,
    ):
        client.open_compaction_txn()
    assert server.requests == []
    assert caught.value.is_permanent == is_final
    assert UNKNOWN not in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("jwt", [Jwt(file="/dev/zero"), Jwt("\xe4.b.c")])
def test_what_can_be_no_token_is_not_sent(jwt: Jwt) -> None:
    with (
        serving(metastore, Http(jwt=jwt)) as (client, server),
        pytest.raises(MetastoreUnavailableError, match="is no JWT"),
    ):
        client.databases()
    assert server.requests == []


def test_without_a_token_the_server_that_wants_one_is_told_of() -> None:
    with (
        serving(says("401 Unauthorized"), Http()) as (client, _),
        pytest.raises(
            MetastoreAccessError, match="wants a JWT .HTTP status 401.*Remedy: enter one as the connection's"
        ),
    ):
        client.databases()


def test_a_waiting_call_can_be_ended_by_another_thread() -> None:
    def ending(connection: socket.socket, call: bytes) -> bool:
        client.interrupt()
        return bool(connection.recv(1))

    with serving(ending) as (client, _), pytest.raises(MetastoreError):
        client.databases()


def test_a_token_is_shown_nowhere() -> None:
    access = MetastoreAccess(http=Http(jwt=Jwt(TOKEN)))
    assert TOKEN not in repr(access) + str(access)
