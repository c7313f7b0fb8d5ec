"""HDFS over HTTP and through libhdfs, with an administrator who goes around the storage."""

from __future__ import annotations

import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import quote, urlencode

import requests

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from tests.harness.fault_proxy import Exchange, FaultProxy, Matching
from tests.harness.hdfs_server import HdfsServer
from tests.harness.network_proxy import NetworkProxy
from tests.storage.stores import CUT_READ_BYTES, Call, Event, NetworkStore, Promises, read_by_this_process

USER = "hive"
"""Whom the storages act as: somebody whose rights are checked."""

TIMEOUT_SECONDS = 3.0
ADMINISTRATOR_SECONDS = 60
PARALLEL_FILES = 8


class Administrator:
    """The superuser, straight to the servers.

    :param root: absolute path that all others are relative to.
    """

    def __init__(self, server: HdfsServer, root: str) -> None:
        self._server = server
        self._root = root
        self._session = requests.Session()

    def call(
        self, method: str, path: str, operation: str, data: bytes = b"", user: str | None = None, **parameters: str
    ) -> requests.Response:
        """One call of WebHDFS.

        :raises requests.HTTPError: it was refused.
        """
        place = f"/webhdfs/v1{quote(self._root)}/{quote(path)}".rstrip("/")
        parameters = {"op": operation, "user.name": user or self._server.superuser, **parameters}
        address = self._server.web_address
        if operation in ("CREATE", "OPEN"):
            # Straight to where the NameNode would point to, had it not composed the letters of names: another name.
            address = self._server.datanode_web_address
            parameters["namenoderpcaddress"] = self._server.uri.removeprefix("hdfs://")
        return self._ask(method, f"{address}{place}?{urlencode(parameters)}", data)

    def _ask(self, method: str, url: str, data: bytes) -> requests.Response:
        answer = self._session.request(method, url, data=data, timeout=ADMINISTRATOR_SECONDS)
        if not answer.ok:
            raise requests.HTTPError(f"{method} {url}: {answer.status_code} {answer.text}", response=answer)
        return answer

    def make_directory(self, path: str) -> None:
        """Makes a directory, its parents too, that belongs to :data:`USER`."""
        self.call("PUT", path, "MKDIRS")
        while path:
            self.give_away(path)
            path = path.rpartition("/")[0]

    def give_away(self, path: str) -> None:
        """Makes something belong to :data:`USER`."""
        self.call("PUT", path, "SETOWNER", owner=USER)

    def write(self, path: str, data: bytes) -> None:
        """Writes a file that belongs to :data:`USER`."""
        self.call("PUT", path, "CREATE", data, user=USER, overwrite="true")

    def names(self, directory: str = "") -> set[str]:
        """All that is below; the paths of directories end in ``/``."""
        found: set[str] = set()
        for status in self.call("GET", directory, "LISTSTATUS").json()["FileStatuses"]["FileStatus"]:
            path = f"{directory}/{status['pathSuffix']}".lstrip("/")
            if status["type"] == "DIRECTORY":
                found |= {f"{path}/"} | self.names(path)
            else:
                found.add(path)
        return found


class HdfsStore(NetworkStore):
    """A directory of the tests' HDFS."""

    promises = Promises()
    scheme = "hdfs://"

    def __init__(self, server: HdfsServer, authority: str) -> None:
        root = f"/stores/{uuid.uuid4().hex}"
        super().__init__(f"hdfs://{authority}{root}")
        self._server = server
        self.administrator = Administrator(server, root)
        self.administrator.call("PUT", "", "MKDIRS")
        self.administrator.give_away("")

    def plant(self, files: Mapping[str, bytes]) -> None:
        """See :meth:`Store.plant`."""
        for directory in {path.rpartition("/")[0] for path in files} - {""}:
            self.administrator.make_directory(directory)
        with ThreadPoolExecutor(PARALLEL_FILES) as threads:
            list(threads.map(self.administrator.write, files.keys(), files.values()))

    def plant_directory(self, path: str) -> None:
        """See :meth:`Store.plant_directory`."""
        self.administrator.make_directory(path)

    def take_away(self, path: str) -> None:
        """See :meth:`Store.take_away`."""
        assert self.administrator.call("DELETE", path, "DELETE", recursive="true").json()["boolean"]

    def names(self) -> set[str]:
        """See :meth:`Store.names`."""
        return self.administrator.names()

    def content(self, path: str) -> bytes:
        """See :meth:`Store.content`."""
        return self.administrator.call("GET", path, "OPEN").content

    @contextmanager
    def without_rights(self, path: str) -> Iterator[None]:
        """See :meth:`Store.without_rights`."""
        self.administrator.call("PUT", path, "SETPERMISSION", permission="000")
        try:
            yield
        finally:
            self.administrator.call("PUT", path, "SETPERMISSION", permission="755")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """See :meth:`NetworkStore.refusing`."""
        self._refuse(True)
        try:
            yield
        finally:
            self._refuse(False)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """See :meth:`NetworkStore.silent`."""
        self._server.suspend()
        try:
            yield
        finally:
            self._server.resume()

    @abstractmethod
    def _refuse(self, is_refusing: bool) -> None:
        """Whether connections break as soon as they are made."""


class WebHdfsStore(HdfsStore):
    """Reached over HTTP, through a proxy before NameNode and DataNode."""

    _OPERATIONS = {
        Call.WRITE: "op=CREATE",
        Call.RENAME: "op=RENAME",
        Call.DELETE: "op=DELETE",
        Call.MAKE_DIRECTORY: "op=MKDIRS",
        Call.LIST: "op=LISTSTATUS",
        Call.READ: "op=OPEN",
    }

    def __init__(self, server: HdfsServer, proxy: FaultProxy, authority: str = "") -> None:
        self._proxy = proxy
        self._web_address = proxy.addresses[server.web_address]
        super().__init__(server, authority or self._web_address.removeprefix("http://"))

    def open(self, below: str = "") -> Storage:
        """See :meth:`Store.open`."""
        options = HdfsOptions((self._web_address,), user=USER, timeout_seconds=TIMEOUT_SECONDS)
        return WebHdfsStorage(self.uri(below), options)

    def fetched_bytes(self) -> int:
        """See :meth:`Store.fetched_bytes`."""
        return sum(exchange.reply_bytes for exchange in self._proxy.exchanges)

    def lose_request(self, call: Call, name: str) -> Event:
        """See :meth:`NetworkStore.lose_request`."""
        return self._proxy.lose_request(self._matching(call, name))

    def lose_reply(self, call: Call, name: str, *, and_all_after_it: bool = False) -> Event:
        """See :meth:`NetworkStore.lose_reply`."""
        after = (lambda: self._refuse(True)) if and_all_after_it else None
        return self._proxy.lose_reply(self._matching(call, name), after=after)

    def do_before(self, call: Call, name: str, action: Callable[[], object]) -> Event:
        """See :meth:`NetworkStore.do_before`."""
        return self._proxy.do_before(self._matching(call, name), action)

    def cut_write(self, name: str) -> Event:
        """See :meth:`NetworkStore.cut_write`."""

        def wait_until_begun() -> None:
            while not any(name in path for path in self.names()):
                time.sleep(0.05)

        return self._proxy.cut_request(self._matching(Call.WRITE, name), after_bytes=1_000_000, after=wait_until_begun)

    def cut_read(self, name: str) -> Event:
        """See :meth:`NetworkStore.cut_read`."""
        return self._proxy.cut_reply(self._matching(Call.READ, name), after_bytes=CUT_READ_BYTES)

    def _matching(self, call: Call, name: str) -> Matching:
        def matching(exchange: Exchange) -> bool:
            # Files are read and written on the DataNode, which the NameNode only points to.
            is_on_the_right_node = call not in (Call.READ, Call.WRITE) or "namenoderpcaddress" in exchange.target
            return is_on_the_right_node and self._OPERATIONS[call] in exchange.target and name in exchange.target

        return matching

    def _refuse(self, is_refusing: bool) -> None:
        self._proxy.refuse(is_refusing)


class LibhdfsStore(WebHdfsStore):
    """Read through Java's client in this process, by further proxies before the ports for that.

    Neither protocol shows the names of files.

    :param blocks: before the DataNode.
    :param calls: before the NameNode; names ``blocks`` in place of the DataNode.
    """

    _METHODS = {Call.LIST: b"getListing", Call.READ: b"getBlockLocations"}

    def __init__(self, server: HdfsServer, web_proxy: FaultProxy, calls: NetworkProxy, blocks: NetworkProxy) -> None:
        self._calls = calls
        self._blocks = blocks
        self._authority = f"{calls.host}:{calls.port}"
        super().__init__(server, web_proxy, self._authority)

    def open(self, below: str = "") -> Storage:
        """See :meth:`Store.open`."""
        options = HdfsOptions((self._web_address,), (self._authority,), user=USER, timeout_seconds=TIMEOUT_SECONDS)
        return ArrowHdfsStorage(self.uri(below), options)

    def fetched_bytes(self) -> int:
        """See :meth:`Store.fetched_bytes`."""
        return read_by_this_process()

    def lose_request(self, call: Call, name: str) -> Event:
        """See :meth:`NetworkStore.lose_request`."""
        if call not in self._METHODS:
            return super().lose_request(call, name)
        self._calls.lose_request(self._METHODS[call])
        return _CallEvent(self._calls)

    def do_before(self, call: Call, name: str, action: Callable[[], object]) -> Event:
        """See :meth:`NetworkStore.do_before`."""
        if call not in self._METHODS:
            return super().do_before(call, name, action)
        self._calls.do_before(self._METHODS[call], action)
        return _CallEvent(self._calls)

    def lose_reply(self, call: Call, name: str, *, and_all_after_it: bool = False) -> Event:
        """See :meth:`NetworkStore.lose_reply`."""
        if call not in self._METHODS:
            return super().lose_reply(call, name, and_all_after_it=and_all_after_it)
        self._calls.refuses_after_loss = and_all_after_it
        self._calls.lose_answer_to(self._METHODS[call])
        return _CallEvent(self._calls)

    def cut_read(self, name: str) -> Event:
        """See :meth:`NetworkStore.cut_read`."""
        self._blocks.cut_answer(CUT_READ_BYTES)
        return _CallEvent(self._blocks)

    def _refuse(self, is_refusing: bool) -> None:
        super()._refuse(is_refusing)
        self._calls.refuse(is_refusing)
        self._blocks.refuse(is_refusing)


def transfer_port(port: int) -> bytes:
    """The port of a DataNode as the NameNode tells it: field 4 of ``DatanodeIDProto``, and the tag of the next one."""
    assert port >= 1 << 14, "one byte shorter"
    return bytes([0x20, port & 0x7F | 0x80, port >> 7 & 0x7F | 0x80, port >> 14, 0x28])


class _CallEvent:
    def __init__(self, proxy: NetworkProxy) -> None:
        self._proxy = proxy

    @property
    def has_happened(self) -> bool:
        return self._proxy.is_done
