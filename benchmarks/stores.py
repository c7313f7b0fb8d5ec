"""Warehouses to measure in: a folder of this machine, or servers that are started for it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs_calls import name_nodes
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from tests.harness.hdfs_server import HdfsServer
from tests.harness.libhdfs import libhdfs_environment
from tests.harness.s3_server import S3Server, minio_program

_FILLING_THREADS = 8


@dataclass(frozen=True)
class Warehouse:
    """Where tables lie, and what opens them.

    :param uri: of the directory that tables lie in.
    :param make: makes a delta at a path below it.
    """

    uri: str
    storages: Storages
    make: Callable[[str], object]

    def fill(self, deltas: Iterable[str]) -> None:
        """Make many deltas."""
        with ThreadPoolExecutor(_FILLING_THREADS) as threads:
            list(threads.map(self.make, deltas))


@contextmanager
def local() -> Iterator[Warehouse]:
    """A temporary folder; each delta holds a file of one byte."""
    with tempfile.TemporaryDirectory() as folder:

        def make(path: str) -> None:
            delta = Path(folder, path)
            delta.mkdir(parents=True)
            (delta / "bucket_00000").write_bytes(b"x")

        yield Warehouse(f"file:{folder}", Storages(), make)


@contextmanager
def webhdfs() -> Iterator[Warehouse]:
    """A NameNode and a DataNode, over HTTP; the deltas are empty directories."""
    with tempfile.TemporaryDirectory() as folder, HdfsServer(Path(folder)) as server:
        yield on_webhdfs(server)


def on_webhdfs(server: HdfsServer) -> Warehouse:
    """On a server that is there."""
    return _on_hdfs(server, HdfsOptions((server.web_address,), user=server.superuser))


@contextmanager
def libhdfs() -> Iterator[Warehouse]:
    """The same by libhdfs."""
    with tempfile.TemporaryDirectory() as folder, HdfsServer(Path(folder)) as server:
        os.environ.update(libhdfs_environment(server))
        yield _on_hdfs(server, HdfsOptions((server.web_address,), user=server.superuser, libhdfs=True))


def _on_hdfs(server: HdfsServer, options: HdfsOptions) -> Warehouse:
    nodes = name_nodes(options.web_addresses, replace(options, libhdfs=False))
    return Warehouse(
        f"{server.uri}/warehouse", Storages((options,)), lambda path: nodes.make_directories(f"/warehouse/{path}")
    )


@contextmanager
def s3() -> Iterator[Warehouse]:
    """MinIO; each delta holds an object of one byte."""
    with tempfile.TemporaryDirectory() as folder, S3Server(Path(folder), minio_program()) as server:
        yield on_s3(server)


def on_s3(server: S3Server) -> Warehouse:
    """On a server that is there."""
    key = S3Credentials(server.key.access_key, server.key.secret_key)
    # Of applications, which are told no key.
    os.environ.update(AWS_ACCESS_KEY_ID=key.access_key, AWS_SECRET_ACCESS_KEY=key.secret_key)
    options = S3Options(endpoint=server.endpoint, region=server.region, credentials=key)
    bucket, client = server.bucket(), server.client()
    return Warehouse(
        f"s3a://{bucket}/warehouse",
        Storages((options,)),
        lambda path: client.put_object(Bucket=bucket, Key=f"warehouse/{path}/bucket_00000", Body=b"x"),
    )


STORES = {"local": local, "webhdfs": webhdfs, "libhdfs": libhdfs, "s3": s3}
"""By the name they have on a command line."""
