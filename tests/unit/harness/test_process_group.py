"""A child process of the harness ends with the Python process that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.harness.process_group import start_group

DEATH_SECONDS = 10
_PARENT = """
import subprocess, sys
from pathlib import Path
from tests.harness.process_group import start_group

command = ["sh", "-c", "sleep 600 & echo $$ $!; wait"]
group = start_group(command, Path("."), stdout=subprocess.PIPE, stderr=None, throw_away=Path(sys.argv[1]))
print(group.leader.stdout.readline().decode(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, None], ids=["SIGTERM", "SIGKILL", "end of program"])
def test_neither_a_group_nor_what_it_throws_away_outlives_its_starter(
    how: signal.Signals | None, tmp_path: Path
) -> None:
    thrown_away = tmp_path / "thrown away"
    thrown_away.mkdir()
    command = [sys.executable, "-c", _PARENT, str(thrown_away)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        group = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        try:
            assert len(group) == 2
            assert all(process.is_running() for process in group)
            if how is None:
                parent.stdin.close()
            else:
                parent.send_signal(how)
            assert parent.wait(DEATH_SECONDS) == (0 if how is None else -how)
            _, alive = psutil.wait_procs(group, DEATH_SECONDS)
            assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
            deadline = time.monotonic() + DEATH_SECONDS
            while thrown_away.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            assert not thrown_away.exists()
        finally:
            parent.kill()
            for process in group:
                if process.is_running():
                    process.kill()


def test_ending_a_group_leaves_neither_process_nor_guard(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    group = start_group(["sleep", "600"], tmp_path, stdout=subprocess.DEVNULL)
    assert len({child.pid for child in psutil.Process().children()} - before) == 2
    group.end(signal.SIGTERM)
    assert group.leader.returncode == -signal.SIGTERM
    assert {child.pid for child in psutil.Process().children()} <= before
    with pytest.raises(ProcessLookupError):
        os.killpg(group.leader.pid, 0)


def test_a_command_that_cannot_be_started_leaves_no_guard(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(FileNotFoundError):
        start_group(["no-such-command"], tmp_path, stdout=subprocess.DEVNULL)
    assert {child.pid for child in psutil.Process().children()} <= before
