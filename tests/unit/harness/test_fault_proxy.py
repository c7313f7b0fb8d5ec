"""The proxy passes on what it is not told to lose, and loses exactly the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from tests.harness import network_proxy
from tests.harness.fault_proxy import Exchange, FaultProxy

TIMEOUT_SECONDS = 30
BODY = bytes(range(256)) * 1024


class Handler(BaseHTTPRequestHandler):
    """Keeps the bodies it gets and sends them back; ``/redirected`` is elsewhere."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes]
    elsewhere: str

    def do_PUT(self) -> None:
        body = self._body()
        if self.path == "/unasked":
            self.send_response_only(100)
            self.end_headers()
        if self.path == "/redirected":
            self._answer(307, b"", {"Location": f"{self.elsewhere}/there"})
            return
        self.bodies.append(body)
        self._answer(200, body)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for start in range(0, len(BODY), 1000):
            part = BODY[start : start + 1000]
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            wanted = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(wanted)
            self.close_connection |= len(body) < wanted
            return body
        body = b""
        while size := int(self.rfile.readline() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Broken connections are what these tests are about: nothing to print."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class Servers:
    """Two that redirect to each other, and the proxy before them."""

    def __init__(self, first: Server, second: Server, bodies: list[bytes]) -> None:
        self.bodies = bodies
        self.addresses = [f"http://127.0.0.1:{server.server_port}" for server in (first, second)]
        self.proxy = FaultProxy(*self.addresses)
        self.session = requests.Session()

    @property
    def url(self) -> str:
        return self.proxy.addresses[self.addresses[0]]

    def put(self, path: str = "/file", data: bytes | Iterator[bytes] = BODY, **headers: str) -> requests.Response:
        return self.session.put(self.url + path, data=data, headers=headers, timeout=TIMEOUT_SECONDS)


@pytest.fixture
def servers() -> Iterator[Servers]:
    bodies: list[bytes] = []
    second = Server(("127.0.0.1", 0), type("Second", (Handler,), {"bodies": bodies}))
    elsewhere = f"http://127.0.0.1:{second.server_port}"
    first = Server(("127.0.0.1", 0), type("First", (Handler,), {"bodies": bodies, "elsewhere": elsewhere}))
    with first, second:
        for server in (first, second):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers = Servers(first, second, bodies)
        with servers.proxy, servers.session:
            yield servers
        for server in (first, second):
            server.shutdown()


def is_put(exchange: Exchange) -> bool:
    return exchange.method == "PUT"


def chunks() -> Iterator[bytes]:
    for start in range(0, len(BODY), 10_000):
        yield BODY[start : start + 10_000]


def test_what_is_not_to_be_lost_arrives_and_is_counted(servers: Servers) -> None:
    assert servers.put("/a%20b?c=%3D").content == BODY
    assert servers.put(data=chunks()).content == BODY
    assert servers.session.get(servers.url + "/x", timeout=TIMEOUT_SECONDS).content == BODY
    assert servers.session.head(servers.url + "/x", timeout=TIMEOUT_SECONDS).headers["Content-Length"] == "1000000"
    assert servers.bodies == [BODY, BODY]
    assert servers.proxy.exchanges == [
        Exchange("PUT", "/a b?c==", len(BODY), 200, len(BODY)),
        Exchange("PUT", "/file", len(BODY), 200, len(BODY)),
        Exchange("GET", "/x", 0, 200, len(BODY)),
        Exchange("HEAD", "/x", 0, 200, 0),
    ]


def test_a_client_that_waits_before_it_sends_the_body_is_told_to_go_on(servers: Servers) -> None:
    assert servers.put(Expect="100-continue").content == BODY


def test_a_server_that_says_continue_unasked_is_listened_to_further(servers: Servers) -> None:
    assert servers.put("/unasked").content == BODY
    assert servers.proxy.exchanges[0].status == 200


def test_redirects_stay_in_the_proxy(servers: Servers) -> None:
    answer = servers.put("/redirected")
    assert answer.url == servers.proxy.addresses[servers.addresses[1]] + "/there"
    assert [exchange.target for exchange in servers.proxy.exchanges] == ["/redirected", "/there"]
    assert servers.bodies == [BODY]


def test_a_lost_request_is_not_heard_of(servers: Servers) -> None:
    fault = servers.proxy.lose_request(is_put)
    with pytest.raises(requests.ConnectionError):
        servers.put()
    assert fault.has_happened
    assert servers.bodies == []
    assert servers.put().content == BODY


@pytest.mark.parametrize("after_bytes", [0, 1, 100_001])
def test_a_request_is_cut_after_so_many_bytes(servers: Servers, after_bytes: int) -> None:
    servers.proxy.cut_request(is_put, after_bytes)
    with pytest.raises(requests.ConnectionError):
        servers.put()
    assert servers.proxy.exchanges[0].request_bytes == after_bytes
    assert [len(body) for body in servers.bodies] in ([], [after_bytes])


@pytest.mark.parametrize("number", [1, 2])
def test_the_reply_to_one_request_is_lost_after_the_server_has_done_it(servers: Servers, number: int) -> None:
    fault = servers.proxy.lose_reply(is_put, number)
    for _ in range(1, number):
        servers.put()
        assert fault.has_happened is False
    with pytest.raises(requests.ConnectionError):
        servers.put()
    assert fault.has_happened
    assert servers.bodies == [BODY] * number
    servers.put()


def test_a_reply_is_cut_after_so_many_bytes(servers: Servers) -> None:
    servers.proxy.cut_reply(is_put, 100_001)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        servers.put()
    assert servers.proxy.exchanges[0].reply_bytes == 100_001


def test_something_happens_before_the_server_gets_the_request(servers: Servers) -> None:
    seen: list[int] = []
    servers.proxy.do_before(is_put, lambda: seen.append(len(servers.bodies)))
    servers.put()
    assert (seen, len(servers.bodies)) == ([0], 1)


def test_refused_connections_are_cut(servers: Servers) -> None:
    servers.put()
    servers.proxy.refuse(True)
    with pytest.raises(requests.ConnectionError):
        servers.put()
    servers.proxy.refuse(False)
    assert servers.put().ok


def test_nothing_gets_through_a_connection_that_is_not_cut_yet(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are cut one by one: who hears of the first at once tries another, which stands idle."""
    with requests.Session() as other:
        other.put(servers.url + "/file", data=b"", timeout=TIMEOUT_SECONDS)
        servers.put()
        monkeypatch.setattr(network_proxy, "close", lambda end: None)
        servers.proxy.refuse(True)
        for session in (servers.session, other):
            with pytest.raises(requests.ConnectionError):
                session.put(servers.url + "/file", data=b"late", timeout=TIMEOUT_SECONDS)
    assert b"late" not in servers.bodies
    servers.proxy.refuse(False)
