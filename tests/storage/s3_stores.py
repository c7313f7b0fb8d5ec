"""S3 behind a proxy, with an administrator who goes around the storage."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.fault_proxy import Exchange, FaultProxy, Matching
from tests.harness.s3_server import S3Server
from tests.storage.stores import CUT_READ_BYTES, Call, Event, NetworkStore, Promises

TIMEOUT_SECONDS = 2.0
PARALLEL_FILES = 8


class S3Store(NetworkStore):
    """A prefix of a bucket of its own."""

    promises = Promises(atomic_publish=False, directories=False, rights=False, colons=True, short_replies=False)
    scheme = "s3a://"

    def __init__(self, server: S3Server, proxy: FaultProxy) -> None:
        self._server = server
        self._proxy = proxy
        self._bucket = server.bucket()
        self._client = server.client()
        self._prefix = f"warehouse/{uuid.uuid4().hex}/"
        self._options = S3Options(
            endpoint=proxy.addresses[server.endpoint], region=server.region, timeout_seconds=TIMEOUT_SECONDS
        )
        super().__init__(f"s3a://{self._bucket}/{self._prefix.rstrip('/')}")

    def open(self, below: str = "") -> Storage:
        """See :meth:`Store.open`."""
        credentials = S3Credentials(self._server.key.access_key, self._server.key.secret_key)
        return S3Storage(self.uri(below), self._options, credentials)

    def plant(self, files: Mapping[str, bytes]) -> None:
        """See :meth:`Store.plant`."""

        def put(path: str) -> None:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + path, Body=files[path])

        with ThreadPoolExecutor(PARALLEL_FILES) as threads:
            list(threads.map(put, files))

    def plant_directory(self, path: str) -> None:
        """See :meth:`Store.plant_directory`; a marker, as S3A makes them."""
        self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}{path}/", Body=b"")

    def take_away(self, path: str) -> None:
        """See :meth:`Store.take_away`."""
        for key in [f"{self._prefix}{name}" for name in self.names()]:
            if key == self._prefix + path or key.startswith(f"{self._prefix}{path}/"):
                self._client.delete_object(Bucket=self._bucket, Key=key)

    def names(self) -> set[str]:
        """See :meth:`Store.names`; directories are markers, and unfinished uploads count as files."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        objects = {found["Key"] for page in pages for found in page.get("Contents", ())}
        uploads = self._client.list_multipart_uploads(Bucket=self._bucket).get("Uploads", ())
        return {key.removeprefix(self._prefix) for key in objects | {found["Key"] for found in uploads}}

    def content(self, path: str) -> bytes:
        """See :meth:`Store.content`."""
        return self._client.get_object(Bucket=self._bucket, Key=self._prefix + path)["Body"].read()

    def fetched_bytes(self) -> int:
        """See :meth:`Store.fetched_bytes`."""
        return sum(exchange.reply_bytes for exchange in self._proxy.exchanges)

    def without_rights(self, path: str) -> AbstractContextManager[None]:
        """See :meth:`Store.without_rights`; rights are tested with a key that may only read."""
        raise NotImplementedError

    def lose_request(self, call: Call, name: str) -> Event:
        """See :meth:`NetworkStore.lose_request`."""
        return self._proxy.lose_request(self._matching(call, name))

    def lose_reply(self, call: Call, name: str, *, and_all_after_it: bool = False) -> Event:
        """See :meth:`NetworkStore.lose_reply`."""
        after = (lambda: self._proxy.refuse(True)) if and_all_after_it else None
        return self._proxy.lose_reply(self._matching(call, name), after=after)

    def do_before(self, call: Call, name: str, action: Callable[[], object]) -> Event:
        """See :meth:`NetworkStore.do_before`."""
        return self._proxy.do_before(self._matching(call, name), action)

    def cut_write(self, name: str) -> Event:
        """See :meth:`NetworkStore.cut_write`."""
        return self._proxy.cut_request(self._matching(Call.WRITE, name), after_bytes=1_000_000)

    def cut_read(self, name: str) -> Event:
        """See :meth:`NetworkStore.cut_read`."""
        return self._proxy.cut_reply(self._matching(Call.READ, name), after_bytes=CUT_READ_BYTES)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """See :meth:`NetworkStore.refusing`."""
        self._proxy.refuse(True)
        try:
            yield
        finally:
            self._proxy.refuse(False)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """See :meth:`NetworkStore.silent`."""
        self._server.suspend()
        try:
            yield
        finally:
            self._server.resume()

    def _matching(self, call: Call, name: str) -> Matching:
        # All of a table is listed at once, and what is deleted stands in the body.
        named = name if call not in (Call.LIST, Call.DELETE) else ""
        return lambda exchange: named in exchange.target and _CALLS[call](exchange)


def _makes_visible(exchange: Exchange) -> bool:
    """A PUT of a whole object, or the completion of an upload: what a rename is elsewhere."""
    is_put = exchange.method == "PUT" and "partNumber=" not in exchange.target
    return is_put or (exchange.method == "POST" and "uploadId=" in exchange.target)


def _is_listing(exchange: Exchange) -> bool:
    return exchange.method == "GET" and "list-type=2" in exchange.target


_CALLS: Mapping[Call, Matching] = {
    Call.WRITE: lambda exchange: exchange.method == "PUT",
    Call.RENAME: _makes_visible,
    Call.DELETE: lambda exchange: exchange.method == "POST" and exchange.target.endswith("?delete"),
    Call.MAKE_DIRECTORY: lambda exchange: False,
    Call.LIST: _is_listing,
    Call.READ: lambda exchange: exchange.method == "GET" and not _is_listing(exchange),
}
