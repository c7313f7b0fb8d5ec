"""Who signs JWTs for the clients of a metastore that speaks HTTP, and tells it the key; what that metastore needs."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.harness.jars import JarList, distribution
from tests.harness.ports import HOST
from tests.harness.startable import Startable

OVER_HTTP = {"metastore.server.thrift.transport.mode": "http"}
"""Settings of a metastore; it listens on all interfaces then, whatever it is told."""

_ALGORITHM = "ES256"


def http_jars(version: str) -> Sequence[Path]:
    """What a metastore, 4.0.1 or 4.2.1, needs beside its other jars to speak HTTP."""
    name = f"metastore-http-{version}"
    wanted = JarList(f"hive-{name}", Path(__file__).with_name(f"{name}.sha256"))
    return sorted((distribution(wanted) / "jars").glob("*.jar"))


class TokenIssuer(Startable):
    """Signs tokens, and once it is started serves the key by which they are checked."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._key_id = secrets.token_hex(8)
        key = json.loads(ECAlgorithm.to_jwk(self._key.public_key()))
        self._keys = json.dumps({"keys": [{**key, "kid": self._key_id, "use": "sig", "alg": _ALGORITHM}]}).encode()
        self._server: ThreadingHTTPServer | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Of a metastore that speaks HTTP and takes the tokens of this issuer, which is started."""
        assert self._server is not None
        return {
            **OVER_HTTP,
            "metastore.authentication": "JWT",
            "metastore.authentication.jwt.jwks.url": f"http://{HOST}:{self._server.server_port}/keys",
        }

    def token(self, user: str = "airflow", seconds: float = 3600) -> str:
        """One that ends so many seconds from now."""
        claims = {"sub": user, "exp": int(time.time() + seconds), "jti": secrets.token_hex(16)}
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id})

    def start(self) -> None:
        """Serves the key."""
        keys = self._keys

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the library's name
                self.send_response(200)
                self.send_header("Content-Length", str(len(keys)))
                self.end_headers()
                self.wfile.write(keys)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer((HOST, 0), Keys)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Serves it no more."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
