"""What a piece of work costs: time, processor time, memory and bytes, of whole trees of processes. Linux only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

Processes = Callable[[], Sequence[psutil.Process]]
"""The processes that do a work, those that it starts included, as of now."""


@dataclass(frozen=True)
class Cost:
    """What a work took.

    :param cpu_seconds: processor time, user and system, of all its processes.
    :param peak_bytes: most resident memory over that at the start; of several processes the sum of their own peaks.
    :param read_bytes: bytes read by system calls, from files, caches and pipes alike.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class _Reading:
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    resident_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0


class Meter:
    """Measures what happens inside :meth:`running`.

    :param processes: whose work it is.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.costs: list[Cost] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """What the block costs is added to :attr:`costs` when it ends."""
        for process in self._processes():
            # The kernel counts the highest resident size from here on.
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        before = self._read()
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        after = self._read()
        began = {pid: before.get(pid, _Reading()) for pid in after}
        self.costs.append(
            Cost(
                seconds=seconds,
                cpu_seconds=sum(after[pid].cpu_seconds - began[pid].cpu_seconds for pid in after),
                peak_bytes=sum(max(after[pid].peak_bytes - began[pid].resident_bytes, 0) for pid in after),
                read_bytes=sum(after[pid].read_bytes - began[pid].read_bytes for pid in after),
                written_bytes=sum(after[pid].written_bytes - began[pid].written_bytes for pid in after),
            )
        )

    def _read(self) -> dict[int, _Reading]:
        readings = {}
        for process in self._processes():
            with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                readings[process.pid] = _reading(process)
        return readings


def this_process() -> Sequence[psutil.Process]:
    """This process without those that it has started."""
    return [psutil.Process()]


def tree_of(pid: int) -> Processes:
    """A process and all below it."""

    def processes() -> Sequence[psutil.Process]:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]

    return processes


def _reading(process: psutil.Process) -> _Reading:
    times = process.cpu_times()
    moved = _numbers(process.pid, "io")
    memory = _numbers(process.pid, "status")
    return _Reading(
        cpu_seconds=times.user + times.system + times.children_user + times.children_system,
        peak_bytes=1024 * memory.get("VmHWM", 0),
        resident_bytes=1024 * memory.get("VmRSS", 0),
        read_bytes=moved.get("rchar", 0),
        written_bytes=moved.get("wchar", 0),
    )


def _numbers(pid: int, file: str) -> dict[str, int]:
    """The lines ``name: number`` of a file that the kernel keeps about a process."""
    lines = (line.partition(":") for line in Path(f"/proc/{pid}/{file}").read_text().splitlines())
    return {name: int(value.split()[0]) for name, _, value in lines if value.split() and value.split()[0].isdigit()}
