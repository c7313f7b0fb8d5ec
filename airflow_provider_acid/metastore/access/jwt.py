"""A token that says who the client is (a JWT, RFC 7519), for metastores that speak HTTP."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone

from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError

MAX_TOKEN_BYTES = 64 * 2**10
"""Jetty takes no more than 8 KiB of all headers unless it is told otherwise."""

_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


@dataclass(frozen=True)
class Jwt:
    """Where the token is.

    :param text: the token itself; is shown nowhere. None where it is in a file.
    :param file: is read for each call, so that a renewed token counts at once.
    """

    text: str | None = field(default=None, repr=False)
    file: str | None = None

    def token(self) -> str:
        """The token of this moment.

        :raises UnusableConnectionError: the file cannot be read, or what is there is no JWT.
        """
        text = self.text or self._read()
        if len(text) > MAX_TOKEN_BYTES or not _TOKEN.fullmatch(text):
            reason, remedy = f"{self._place} is no JWT", "give one, as HEADER.PAYLOAD.SIGNATURE"
            raise UnusableConnectionError(reason, remedy, is_final=self.file is None, was_sent=False)
        return text

    def refusal(self, token: str) -> UnusableConnectionError:
        """The server does not believe a token: what to say, without it. A file may soon have another one."""
        ends = _end_of(token)
        has_ended = ends is not None and ends <= datetime.now(timezone.utc)
        life = "names no end" if ends is None else f"{'ended' if has_ended else 'ends'} at {ends:%Y-%m-%d %H:%M:%S} UTC"
        return UnusableConnectionError(
            f"the server refuses the JWT in {self._place}, which {life}",
            "renew it"
            if has_ended
            else "give one that a key at the metastore's metastore.authentication.jwt.jwks.url "
            "has signed and that names a user (sub); look at the metastore's log",
            is_final=not (has_ended and self.file),
            was_sent=False,
        )

    @property
    def _place(self) -> str:
        return "the connection's password" if self.file is None else f"jwt_file {self.file}"

    def _read(self) -> str:
        try:
            with open(str(self.file), "rb") as file:
                return file.read(MAX_TOKEN_BYTES + 1).decode("ascii", "replace").strip()
        except OSError as error:
            reason = f"{self._place} cannot be read ({error.strerror})"
            remedy = "give a file with a JWT, which Airflow's user may read"
            raise UnusableConnectionError(reason, remedy, was_sent=False) from error


def _end_of(token: str) -> datetime | None:
    """When a token says that it ends; None where it says nothing that can be read."""
    payload = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims["exp"], timezone.utc)
    except (LookupError, TypeError, ValueError, ArithmeticError, OSError, RecursionError):
        return None
