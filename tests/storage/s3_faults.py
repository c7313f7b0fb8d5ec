"""Requests of boto3 that go wrong in chosen ways, and processes that are asleep between signing and sending."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import botocore.auth
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session

Chosen = Callable[[str, str], bool]
"""Whether a request is meant, by method and URL."""


def is_put(method: str, url: str) -> bool:
    """A PUT of a whole object."""
    return method == "PUT" and "uploadId" not in url and "_acid_probe_" not in url


def is_completion(method: str, url: str) -> bool:
    """The request that makes an upload's object visible."""
    return method == "POST" and "uploadId=" in url


def is_part(method: str, url: str) -> bool:
    """A part of an upload, uploaded or copied."""
    return method == "PUT" and "partNumber=" in url


def is_deletion(method: str, url: str) -> bool:
    """The deletion of one object."""
    return method == "DELETE" and "uploadId=" not in url


class Requests:
    """Sees every request of boto3, and may do something before or after it.

    :ivar seen: methods and URLs.
    """

    def __init__(self, before: Callable[[str, str], None], after: Callable[[str, str], None]) -> None:
        self.seen: list[tuple[str, str]] = []
        self._before = before
        self._after = after
        self._send = URLLib3Session.send

    def send(self, session: URLLib3Session, request: Any) -> Any:
        """In place of the library's own."""
        self.seen.append((request.method, request.url))
        self._before(request.method, request.url)
        answer = self._send(session, request)
        self._after(request.method, request.url)
        return answer


def nothing(method: str, url: str) -> None:
    """Let it pass."""


@contextmanager
def watched(
    before: Callable[[str, str], None] = nothing, after: Callable[[str, str], None] = nothing
) -> Iterator[Requests]:
    """Do something before or after each request."""
    requests = Requests(before, after)
    with patch.object(URLLib3Session, "send", lambda session, request: requests.send(session, request)):
        yield requests


@contextmanager
def lost_answers(chosen: Chosen, times: int = 1) -> Iterator[Requests]:
    """The store does what it was asked, but the answer gets lost, the first few times."""
    left = [times]

    def lose(method: str, url: str) -> None:
        if chosen(method, url) and left[0] > 0:
            left[0] -= 1
            raise ConnectionClosedError(endpoint_url=url)

    with watched(after=lose) as requests:
        yield requests


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


@contextmanager
def answered(chosen: Chosen, status: int, content: bytes = b"", times: int = 1) -> Iterator[None]:
    """The store never hears of chosen requests, the first few times, and this is the answer to them."""
    left, send = [times], URLLib3Session.send
    headers: Any = {}

    def answer(session: URLLib3Session, request: Any) -> Any:
        if chosen(request.method, request.url) and left[0] > 0:
            left[0] -= 1
            return AWSResponse(request.url, status, headers, _Body(content))
        return send(session, request)

    with patch.object(URLLib3Session, "send", answer):
        yield


@contextmanager
def signed_long_ago(seconds: float, times: int = 100) -> Iterator[None]:
    """What is signed meanwhile, the first few times, is so old when it arrives: the process slept before it sent it."""
    left = [times]
    library: Any = botocore.auth
    now, sign = library.get_current_datetime, library.S3SigV4QueryAuth.add_auth

    def then(*args: Any, **kwargs: Any) -> Any:
        return now(*args, **kwargs) - datetime.timedelta(seconds=seconds)

    def add_auth(self: Any, request: Any) -> None:
        left[0] -= 1
        with patch.object(library, "get_current_datetime", then if left[0] >= 0 else now):
            sign(self, request)

    with patch.object(library.S3SigV4QueryAuth, "add_auth", add_auth):
        yield
