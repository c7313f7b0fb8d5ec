"""The HDFS of the tests is a real one, and does what tests of outages need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import requests

from tests.harness.hdfs_server import HdfsServer
from tests.harness.libhdfs import libhdfs_environment

TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def own_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """One that nobody else uses, as its tests stop it."""
    with HdfsServer(tmp_path_factory.mktemp("own-hdfs")) as server:
        yield server


def call(server: HdfsServer, method: str, path: str, user: str = "hive", data: bytes = b"") -> requests.Response:
    operation, _, path = path.partition(" ")
    url = f"{server.web_address}/webhdfs/v1{path}"
    parameters = {"op": operation, "user.name": user}
    return requests.request(method, url, params=parameters, data=data, timeout=TIMEOUT_SECONDS)


def read(server: HdfsServer, path: str, user: str = "hive") -> bytes:
    answer = call(server, "GET", f"OPEN {path}", user)
    assert answer.ok, answer.text
    return answer.content


def is_running(pid: int) -> bool:
    return Path("/proc", str(pid)).exists()


def test_a_file_is_written_and_read(own_hdfs: HdfsServer) -> None:
    answer = call(own_hdfs, "PUT", "CREATE /a%20b", user=own_hdfs.superuser, data=b"rows")
    assert answer.status_code == 201
    assert answer.url.startswith(own_hdfs.datanode_web_address)
    assert read(own_hdfs, "/a%20b") == b"rows"


def test_permissions_are_checked(own_hdfs: HdfsServer) -> None:
    answer = call(own_hdfs, "PUT", "MKDIRS /not-for-hive")
    assert answer.status_code == 403
    assert "Permission denied: user=hive" in answer.text


def test_clients_find_the_namenode_in_their_configuration(own_hdfs: HdfsServer) -> None:
    root = ElementTree.parse(own_hdfs.client_configuration / "core-site.xml").getroot()
    assert root.findtext("property[name='fs.defaultFS']/value") == own_hdfs.uri
    assert own_hdfs.class_path.split(os.pathsep)[0] == str(own_hdfs.client_configuration)


def test_the_namenode_forgets_nothing_when_it_is_started_again(own_hdfs: HdfsServer) -> None:
    call(own_hdfs, "PUT", "CREATE /before", user=own_hdfs.superuser, data=b"kept")
    own_hdfs.stop_namenode()
    with pytest.raises(requests.ConnectionError):
        read(own_hdfs, "/before")
    own_hdfs.start_namenode()
    # The DataNode keeps a connection per user to the NameNode that is gone: that user's first read would be answered
    # with 403 and an EOFException.
    assert read(own_hdfs, "/before", user="somebody-new") == b"kept"


def test_a_suspended_server_takes_connections_and_answers_when_it_is_resumed(own_hdfs: HdfsServer) -> None:
    own_hdfs.suspend()
    try:
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{own_hdfs.web_address}/jmx", timeout=0.5)
    finally:
        own_hdfs.resume()
    assert call(own_hdfs, "GET", "GETFILESTATUS /").json()["FileStatus"]["type"] == "DIRECTORY"


def test_a_failing_block_leaves_no_process_behind_not_even_a_suspended_one(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail() -> None:
        with HdfsServer(tmp_path) as server:
            pids.extend(server.pids().values())
            assert all(map(is_running, pids))
            server.suspend()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(pids) == 2
    assert not any(map(is_running, pids))


LIBHDFS_PROGRAM = """
import os, signal, sys
from pyarrow.fs import HadoopFileSystem

client = HadoopFileSystem("localhost", int(sys.argv[1]), user="somebody")
assert client.get_file_info("/").is_file is False
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_libhdfs_connects_and_leaves_the_signals_to_python(hdfs: HdfsServer) -> None:
    program = [sys.executable, "-c", LIBHDFS_PROGRAM, str(hdfs.port)]
    done = subprocess.run(
        program, env={**os.environ, **libhdfs_environment(hdfs)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGTERM, done.stderr
