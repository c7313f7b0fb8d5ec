"""A program in the place of ``spark-submit`` that is at work for long."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import psutil

START_SECONDS = 60
END_SECONDS = 10


class SlowSpark:
    """A spark-submit that says that it has begun and then does nothing for long."""

    def __init__(self, folder: Path) -> None:
        self.pid_file = folder / "pid"
        self.folder = folder / "bin"
        self.folder.mkdir()
        program = self.folder / "spark-submit"
        program.write_text(
            f"#!/bin/sh\necho $$ > {self.pid_file}.new\nmv {self.pid_file}.new {self.pid_file}\nexec sleep 600\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def wait_until_started(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.pid_file.exists():
            assert time.monotonic() < deadline, "spark-submit was not started"
            time.sleep(0.05)

    def ends(self) -> bool:
        """Whether it has ended, or does so in good time: a signal has been sent when a task is done, not yet obeyed."""
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            deadline = time.monotonic() + END_SECONDS
            while process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.05)
        except psutil.NoSuchProcess:
            pass
        return True
