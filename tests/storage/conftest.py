"""The stores: each test gets those that promise what it is about, each at a fresh location.

A further kind is a fixture of the name in :data:`KINDS`.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.database_server import NOBODY
from tests.harness.fault_proxy import FaultProxy
from tests.harness.hdfs_server import HdfsServer
from tests.harness.libhdfs import libhdfs_environment
from tests.harness.network_proxy import NetworkProxy
from tests.harness.ports import HOST
from tests.harness.s3_server import S3Server, has_minio
from tests.storage.hdfs_stores import LibhdfsStore, WebHdfsStore, transfer_port
from tests.storage.s3_stores import S3Store
from tests.storage.stores import LocalStore, Store

KINDS: dict[str, type[Store]] = {
    "local_store": LocalStore,
    "mounted_store": LocalStore,
    "webhdfs_store": WebHdfsStore,
    "libhdfs_store": LibhdfsStore,
    "s3_store": S3Store,
}
"""By the name of the fixture."""


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line("markers", "promise(name, ...): only on stores that promise this; see stores.Promises")
    config.addinivalue_line("markers", "needs_minio: about what moto does not check")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps files together, but for what runs on several stores: each store's tests are kept together.

    Leaves out what moto cannot show, where MinIO is not to be had.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if not has_minio():
        left_out = [item for item in items if item.get_closest_marker("needs_minio")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test on every store that promises what its marks name."""
    if "store" not in metafunc.fixturenames:
        return
    needed = {str(name) for mark in metafunc.definition.iter_markers("promise") for name in mark.args}
    kinds = [
        pytest.param(name, marks=pytest.mark.xdist_group(name), id=name.removesuffix("_store"))
        for name, kind in KINDS.items()
        if all(getattr(kind.promises, promise) for promise in needed)
    ]
    metafunc.parametrize("store", kinds, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    """A store of the kind asked for."""
    store: Store = request.getfixturevalue(request.param)
    assert store.storage.location.startswith(KINDS[request.param].scheme)
    return store


@pytest.fixture
def local_store() -> Iterator[LocalStore]:
    """A directory that others may reach, other than pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="acid-store-"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield LocalStore(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mounted_store(local_store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """A directory of a file system without hard links, as CIFS and most FUSE mounts are."""

    def refuse(*names: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    return local_store


@pytest.fixture
def webhdfs_store(hdfs: HdfsServer) -> Iterator[WebHdfsStore]:
    """HDFS over HTTP."""
    with FaultProxy(hdfs.web_address, hdfs.datanode_web_address) as proxy:
        yield WebHdfsStore(hdfs, proxy)


@pytest.fixture(scope="session")
def libhdfs(hdfs: HdfsServer) -> Iterator[None]:
    """The environment that libhdfs starts its JVM with, in this process; the JVM stays until its end."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in libhdfs_environment(hdfs).items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def libhdfs_store(hdfs: HdfsServer, libhdfs: None) -> Iterator[LibhdfsStore]:
    """HDFS read by libhdfs."""
    with FaultProxy(hdfs.web_address, hdfs.datanode_web_address) as web, NetworkProxy(HOST, hdfs.data_port) as blocks:
        told_instead = {transfer_port(hdfs.data_port): transfer_port(blocks.port)}
        with NetworkProxy(HOST, hdfs.port, told_instead) as calls:
            yield LibhdfsStore(hdfs, web, calls, blocks)


@pytest.fixture
def s3_store(s3: S3Server) -> Iterator[S3Store]:
    """A bucket."""
    with FaultProxy(s3.endpoint) as proxy:
        yield S3Store(s3, proxy)


@pytest.fixture
def no_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """No boto3 is installed, as on most Spark executors."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "boto3" else find_spec(name))
