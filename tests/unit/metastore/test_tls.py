"""TLS to a metastore: files that cannot be used, a server that asks who comes, and a server that went away."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import MetastoreAccessError, MetastoreUnavailableError
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.tls import Tls
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.certificates import CertificateAuthority
from tests.unit.metastore.hostile_server import LIST, STOP, TEXT, Asked, field, list_of

HOST = "localhost"
Conversation = Callable[[socket.socket], object]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@contextmanager
def listening(conversation: Conversation) -> Iterator[MetastoreAddress]:
    """A server that has this conversation with everybody."""

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            conversation(connection)

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        try:
            yield MetastoreAddress(HOST, listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def metastore(authority: CertificateAuthority, calls: int = 1, *, asks_who_comes: bool = False) -> Conversation:
    """Inside TLS; answers so many calls with no database, and hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.pair(HOST))
    if asks_who_comes:
        context.load_verify_locations(authority.file)
        context.verify_mode = ssl.CERT_REQUIRED

    def converse(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inside:
            for _ in range(calls):
                data = inside.recv(1 << 16)
                if not data:
                    return
                (length,) = struct.unpack("!i", data[4:8])
                (number,) = struct.unpack("!i", data[8 + length : 12 + length])
                asked = Asked(data[8 : 8 + length], number)
                inside.sendall(asked.head() + field(LIST, 0, list_of(TEXT, 0)) + STOP)

    return converse


def client_of(address: MetastoreAddress, tls: Tls) -> AcidMetastoreClient:
    return AcidMetastoreClient([address], transport_factory=MetastoreAccess(tls), timeout_seconds=10)


def test_a_server_that_asks_who_comes_gets_the_clients_certificate(authority: CertificateAuthority) -> None:
    certificate, key = authority.pair("airflow")
    tls = Tls(str(authority.file), str(certificate), str(key))
    with listening(metastore(authority, asks_who_comes=True)) as address, client_of(address, tls) as client:
        assert client.databases() == []


def test_without_a_certificate_the_refusal_names_the_extra_to_set(authority: CertificateAuthority) -> None:
    with (
        listening(metastore(authority, asks_who_comes=True)) as address,
        client_of(address, Tls(str(authority.file))) as client,
        pytest.raises(MetastoreUnavailableError, match=f"TLS.*localhost:{address.port}.*tls_certificate_file"),
    ):
        client.databases()


def test_a_server_that_went_away_between_two_calls_is_noticed(authority: CertificateAuthority) -> None:
    """A call that must not be repeated would else be sent to nobody, and its fate be unknown."""
    tls = Tls(str(authority.file))
    with listening(metastore(authority, calls=2)) as address, client_of(address, tls) as client:
        client.databases()
        assert client._transport is not None
        assert client._transport.is_open()
        client.databases()
        deadline = time.monotonic() + 10
        while client._transport.is_open():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_interrupting_ends_a_read(authority: CertificateAuthority) -> None:
    done = threading.Event()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.pair(HOST))

    def never_answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inside, contextlib.suppress(OSError):
            while inside.recv(1 << 16):
                pass
        done.set()

    with listening(never_answer) as address, client_of(address, Tls(str(authority.file))) as client:
        threading.Timer(0.3, client.interrupt).start()
        with pytest.raises(MetastoreUnavailableError):
            client.databases()
        assert done.wait(10)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("no authority", r"tls_ca_file /nowhere/ca.pem cannot be used .No such file.*Remedy: give a PEM file"),
        ("an authority that is none", r"tls_ca_file .*\.txt cannot be used"),
        ("no certificate", r"tls_certificate_file /nowhere/me.pem with tls_key_file None cannot be used .No such file"),
        ("another's key", r"tls_certificate_file .*airflow.pem with tls_key_file .*other.key cannot be used"),
        ("a key with a password", r"tls_key_file .*locked.key cannot be used .*which has no password"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_extra(
    authority: CertificateAuthority, tmp_path: Path, broken: str, told: str
) -> None:
    text = tmp_path / "words.txt"
    text.write_text("no certificate")
    mine, other = authority.pair("airflow"), authority.pair("other")
    locked = authority.pair("locked", password="sesame")
    ca = str(authority.file)
    tls = {
        "no authority": Tls("/nowhere/ca.pem"),
        "an authority that is none": Tls(str(text)),
        "no certificate": Tls(ca, "/nowhere/me.pem"),
        "another's key": Tls(ca, str(mine[0]), str(other[1])),
        "a key with a password": Tls(ca, str(locked[0]), str(locked[1])),
    }[broken]
    with (
        listening(metastore(authority)) as address,
        client_of(address, tls) as client,
        pytest.raises(MetastoreAccessError, match=told),
    ):
        client.databases()


def test_a_port_that_answers_without_tls_is_named(authority: CertificateAuthority) -> None:
    def web_server(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with (
        listening(web_server) as address,
        client_of(address, Tls(str(authority.file))) as client,
        pytest.raises(MetastoreAccessError, match="does not speak TLS.*take tls out"),
    ):
        client.databases()


def test_a_port_that_says_nothing_is_given_up_in_time(authority: CertificateAuthority) -> None:
    held = threading.Event()
    with (
        listening(lambda connection: held.wait(10)) as address,
        AcidMetastoreClient(
            [address], transport_factory=MetastoreAccess(Tls(str(authority.file))), timeout_seconds=0.2
        ) as client,
        pytest.raises(MetastoreUnavailableError, match=r"no complete answer within 0\.2 s"),
    ):
        client.databases()
    held.set()


def test_one_address_that_may_answer_later_keeps_the_error_from_being_permanent(
    authority: CertificateAuthority,
) -> None:
    tls = MetastoreAccess(Tls("/nowhere/ca.pem"))
    with (
        listening(metastore(authority)) as address,
        pytest.raises(MetastoreAccessError) as refused,
        AcidMetastoreClient([address], transport_factory=tls, timeout_seconds=5) as client,
    ):
        client.databases()
    assert refused.value.is_permanent
    trusted = MetastoreAccess(Tls(str(authority.file)))
    with (
        listening(metastore(authority)) as address,
        AcidMetastoreClient(
            [MetastoreAddress("127.0.0.1", address.port), MetastoreAddress(HOST, 1)],
            transport_factory=trusted,
            timeout_seconds=5,
        ) as client,
        pytest.raises(MetastoreUnavailableError, match=r"another host's.*; localhost:1: ") as mixed,
    ):
        client.databases()
    assert not mixed.value.is_permanent
