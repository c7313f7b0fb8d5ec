"""Child processes that never outlive this one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

STOP_SECONDS = 10

# Reads the group's id, waits for the end of its input, which only this Python process can write to, kills the group,
# and removes its folder, if any, once the group cannot write there any more.
_GUARD = 'read -r group && { read -r _; kill -KILL "-$group"; [ -z "$1" ] || { sleep 1; rm -rf "$1"; }; }'


@dataclass(frozen=True)
class ProcessGroup:
    """A process in a group of its own, so that exactly what was started here can be ended.

    When this Python process ends, however it ends, SIGKILL included, the whole group is killed.

    :param leader: the process that was asked for.
    """

    leader: subprocess.Popen[bytes]
    _guard: subprocess.Popen[bytes]

    def end(self, how: signal.Signals) -> None:
        """Signals the group, kills it where the leader has not ended after ``STOP_SECONDS``, and closes its pipes."""
        self._guard.kill()
        self._guard.wait()
        for signal_to_send in (how, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.leader.pid, signal_to_send)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.leader.wait(timeout=STOP_SECONDS)
                break
        for stream in (self._guard.stdin, self.leader.stdin, self.leader.stdout):
            if stream is not None:
                stream.close()


def start_group(
    command: Sequence[str],
    folder: Path,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes] = subprocess.STDOUT,
    environment: Mapping[str, str] | None = None,
    user: int | None = None,
    throw_away: Path | None = None,
) -> ProcessGroup:
    """Starts a process that never outlives this one.

    :param folder: its working directory.
    :param environment: added to that of this process.
    :param user: id of the user and the group that it runs as; None for this process's own.
    :param throw_away: a folder to remove where this process ends without having ended the group.
    """
    guard_command = ["sh", "-c", _GUARD, "guard", str(throw_away or "")]
    guard = subprocess.Popen(guard_command, stdin=subprocess.PIPE, start_new_session=True)
    assert guard.stdin is not None
    try:
        leader = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        guard.stdin.write(f"{leader.pid}\n".encode())
        guard.stdin.flush()
    except BaseException:
        guard.stdin.close()
        guard.wait()
        raise
    return ProcessGroup(leader, guard)
