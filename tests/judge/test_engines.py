"""The processes of an engine: they listen on the loopback interface only, and never outlive who started them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.harness.hive_engine_program import HIVE_3, HIVE_4
from tests.judge.conftest import StartHive

VERSIONS = [
    pytest.param(version, id=f"hive_{version[0]}", marks=pytest.mark.xdist_group(version))
    for version in (HIVE_3, HIVE_4)
]
LOOPBACK = ("127.", "::1", "::ffff:127.")
DEATH_SECONDS = 10
_STARTER = """
import sys, time
from pathlib import Path
from tests.harness.hive_engine import HiveEngine

with HiveEngine(sys.argv[1], Path(sys.argv[2])) as hive:
    print(hive.pid, hive.metastore.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_engine_and_metastore_listen_on_the_loopback_interface_only(start_hive: StartHive, version: str) -> None:
    hive = start_hive(version)
    hive.execute("create table if not exists default.listening (id int)", "insert into default.listening values (1)")
    assert hive.metastore.pid is not None
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for pid in (hive.pid, hive.metastore.pid)
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert hive.metastore.port in {port for _, port in listening}
    assert all(address.startswith(LOOPBACK) for address, _ in listening), listening


# Each starts its own, so that any process can run them.
@pytest.mark.xdist_group("started for one test")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
@pytest.mark.parametrize("version", [HIVE_3, HIVE_4])
def test_no_java_outlives_the_python_that_started_it(version: str, how: signal.Signals, tmp_path: Path) -> None:
    with _starter(version, tmp_path) as (python, java):
        assert [process.name() for process in java] == ["java", "java"]
        python.send_signal(how)
        assert python.wait(DEATH_SECONDS) == -how
        _, alive = psutil.wait_procs(java, DEATH_SECONDS)
        assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@contextmanager
def _starter(version: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    command = [sys.executable, "-c", _STARTER, version, str(folder)]
    root = Path(__file__).parents[2]
    java: list[psutil.Process] = []
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as python:
        try:
            assert python.stdout is not None
            java = [psutil.Process(int(pid)) for pid in python.stdout.readline().split()]
            yield python, java
        finally:
            python.kill()
            for process in java:
                if process.is_running():
                    process.kill()
