"""No two servers of the tests are given the same port, whichever processes start them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ports
from tests.harness.ports import free_port

_OTHER_PROCESS = """
import sys
from tests.harness import ports

ports._quiet_port = lambda: int(sys.argv[1])
try:
    print(ports.free_port(), flush=True)
except OSError:
    print("none", flush=True)
sys.stdin.read()
"""


def other_process(port: int) -> subprocess.Popen[str]:
    """A process that wants a port, and lives until its input ends."""
    command = [sys.executable, "-c", _OTHER_PROCESS, str(port)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(ports, "_quiet_port", lambda: port)
    with pytest.raises(OSError, match="no free port"):
        free_port()
    with other_process(port) as other:
        assert answer(other) == "none"
        other.communicate()


def test_a_port_is_free_again_when_the_process_that_it_was_given_to_has_ended() -> None:
    port = ports._bound_port(ports._quiet_port())
    assert port is not None
    with other_process(port) as first:
        assert answer(first) == str(port)
        with other_process(port) as second:
            assert answer(second) == "none"
            second.communicate()
        first.communicate()
    with other_process(port) as third:
        assert answer(third) == str(port)
        third.communicate()
