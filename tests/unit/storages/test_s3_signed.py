"""What an answer to a signed request says, and what one does not say that ends too early."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_acid.storages.s3.connection import S3Connection
from airflow_provider_acid.storages.s3.errors import NoAnswerError, RefusedByStoreError
from airflow_provider_acid.storages.s3.location import S3Location
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.signed import SignedRequests

BODY = b"<CompleteMultipartUpload/>"
PROLOGUE = b'<?xml version="1.0" encoding="UTF-8"?>\n'
DONE = PROLOGUE + b'   <CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>'
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\n"
"""How an answer begins that ends where the connection does: nginx asks its upstream so unless it is told otherwise."""


@contextmanager
def store(answer: bytes) -> Iterator[SignedRequests]:
    """A store that gives one answer and closes the connection."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            asked = b""
            # A connection that is closed before all was read breaks, and does not end.
            while not asked.endswith(BODY if asked.startswith(b"POST") else b"\r\n\r\n"):
                asked += connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        options = S3Options(endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_seconds=5)
        connection = S3Connection(options, S3Credentials("key", "secret"))
        yield SignedRequests(connection, S3Location.parse("s3a://bucket/table"))
        thread.join()


def complete(answer: bytes) -> None:
    with store(answer) as requests:
        requests.send(requests.completion("table/base_5/bucket_00000", "upload"), BODY)


@pytest.mark.parametrize(
    "answer",
    [
        UNTIL_CLOSED,
        UNTIL_CLOSED + PROLOGUE + b"   ",
        UNTIL_CLOSED + DONE[:-2],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n   \r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
    ],
    ids=["empty", "begun", "cut", "blanks in chunks", "a proxy's own"],
)
def test_a_completion_that_nobody_says_was_done_may_be_done_or_not(answer: bytes) -> None:
    with pytest.raises(NoAnswerError, match="an answer without CompleteMultipartUploadResult"):
        complete(answer)


def test_a_completion_is_done_where_the_store_says_so() -> None:
    complete(UNTIL_CLOSED + DONE)


def test_an_error_is_heard_behind_blanks() -> None:
    error = b"<Error><Code>InvalidPart</Code><Message>No such part.</Message></Error>"
    with pytest.raises(RefusedByStoreError, match="InvalidPart No such part"):
        complete(UNTIL_CLOSED + b"  \n" + PROLOGUE + error)


def test_of_a_deletion_the_status_says_that_it_was_done() -> None:
    with store(b"HTTP/1.1 204 No Content\r\n\r\n") as requests:
        requests.send(requests.deletion("table/base_5/bucket_00000", '"etag"'))
