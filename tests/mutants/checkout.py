"""A copy of the repository in which a file can be spoilt, and in which pytest runs as it does in the repository."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.process_group import start_group
from tests.mutants.mutant import ROOT, Mutant

MOST_SECONDS = 900
"""Who runs for longer hangs."""

TESTS_FAILED = 1
"""The exit code of pytest where tests ran, and some failed."""

_NO_KILLS = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError")
"""Errors of which a mutant dies that is no program."""


@dataclass(frozen=True)
class TestRun:
    """How some tests went, up to the first that failed.

    :param exit_code: of pytest; None where they hung.
    :param error: what the failure says; empty where there is none.
    """

    __test__ = False

    exit_code: int | None
    error: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether all ran and passed."""
        return self.exit_code == 0

    @property
    def failed(self) -> bool:
        """Whether it ran and noticed something; a test that cannot be collected, or hangs, notices nothing."""
        return self.exit_code == TESTS_FAILED and bool(self.error) and not self.error.startswith(_NO_KILLS)

    def __str__(self) -> str:
        return f"{'hung' if self.exit_code is None else f'exit code {self.exit_code}'}: {self.error or 'no failure'}"


class Checkout:
    """The tracked files, and those about to be, in a directory of their own.

    :param place: where; what is there is removed.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        shutil.rmtree(place, ignore_errors=True)
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split("\0")
        for name in sorted(set(names)):
            if name and (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)

    @contextmanager
    def spoilt_by(self, mutant: Mutant) -> Iterator[None]:
        """With the mistake in its file."""
        path = self.place / mutant.file
        path.write_text(mutant.applied_to(path.read_text()))
        try:
            yield
        finally:
            shutil.copy2(ROOT / mutant.file, path)

    def imported(self, modules: Sequence[str]) -> list[Path]:
        """The files that a process in the copy imports modules from, wherever it was started."""
        program = "import importlib, sys; [print(importlib.import_module(name).__file__) for name in sys.argv[1:]]"
        return [Path(line) for line in self.printed_by(program, *modules).split()]

    def printed_by(self, program: str, *arguments: str) -> str:
        """What a Python program prints that imports from the copy, wherever it was started."""
        command = [sys.executable, "-c", program, *arguments]
        environment = {**os.environ, **self._environment, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd="/", env=environment).stdout

    def run(self, *tests: str, writes_bytecode: bool = False) -> TestRun:
        """Run tests in a process of their own.

        :param writes_bytecode: for a file that is not spoilt: else its bytecode, of the same size and second, could be
            taken for that of the next mistake in it.
        """
        report = self.place / ".cache" / "report.xml"
        report.unlink(missing_ok=True)
        options = ["-q", "-x", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = self._environment if writes_bytecode else {**self._environment, "PYTHONDONTWRITEBYTECODE": "1"}
        started = time.monotonic()
        group = start_group(command, self.place, stdout=subprocess.DEVNULL, environment=environment)
        try:
            code: int | None = group.leader.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            group.end(signal.SIGKILL)
        return TestRun(code, _first_failure(report), time.monotonic() - started)

    @property
    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.place)}


def _first_failure(report: Path) -> str:
    if not report.is_file():
        return ""
    found = ElementTree.parse(report).iter()
    messages = (element.get("message", "") for element in found if element.tag in ("failure", "error"))
    return next(messages, "")
