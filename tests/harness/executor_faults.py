"""Faults in the Python workers of Spark's executors: a task waits in the middle of its file, or fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from tests.harness.compaction_chain import wait_until

_FOLDER = Path(__file__).with_name("executor_path")


@dataclass(frozen=True)
class Fault:
    """What happens to the first tasks that write a file; all others, also of the same file, are left alone.

    :param file: a pattern that is found in the file's name, its folder included.
    :param folder: an existing folder of this fault's own, for messages between test and tasks.
    :param moment: ``writing`` or ``written``: it strikes before the file has its name, or after.
    :param tasks: how many it strikes.
    :param fails: they fail; otherwise they wait until they are killed or released.
    """

    file: str
    folder: str
    moment: str
    tasks: int = 1
    fails: bool = False

    @classmethod
    def at(cls, folder: Path, file: str, moment: str, tasks: int = 1, fails: bool = False) -> Fault:
        """A fault with a new folder."""
        folder.mkdir()
        return cls(file, str(folder), moment, tasks, fails)

    @property
    def has_struck(self) -> bool:
        """Whether all tasks that it is for wait, or have failed."""
        return self._has_told("struck")

    def wait_until_struck(self) -> None:
        """Until it has."""
        wait_until(lambda: self.has_struck)

    def release(self) -> None:
        """Let those that wait go on, and wait until they have done with the file, in one way or the other."""
        self.let_go()
        wait_until(lambda: self._has_told("ended"))

    def let_go(self) -> None:
        """Let those that wait go on, of which some may be dead."""
        Path(self.folder, "released").touch()

    def worker(self) -> psutil.Process:
        """The Python process of the first task."""
        return psutil.Process(int(Path(self.folder, "begun-0").read_text()))

    def a_worker_lives(self) -> bool:
        """Whether the Python process of one of the tasks has not ended."""
        return any(_lives(int(begun.read_text())) for begun in Path(self.folder).glob("begun-*"))

    def executor(self) -> psutil.Process:
        """The executor that the first task runs on."""
        (executor,) = [parent for parent in self.worker().parents() if _is_executor(parent)]
        return executor

    def _has_told(self, what: str) -> bool:
        return len(list(Path(self.folder).glob(f"{what}-*"))) == self.tasks


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def settings_of(*faults: Fault) -> dict[str, str]:
    """Spark's settings by which the executors of an application get these faults, of which a file has the first."""
    return {
        "spark.executorEnv.PYTHONPATH": str(_FOLDER),
        "spark.executorEnv.ACID_FAULTS": _quoted(faults),
    }


def local_settings_of(*faults: Fault) -> dict[str, str]:
    """Environment by which an application of one machine gets them, driver and workers alike."""
    return {"PYTHONPATH": str(_FOLDER), "ACID_FAULTS": _quoted(faults)}


def _quoted(faults: Sequence[Fault]) -> str:
    return quote(json.dumps([asdict(fault) for fault in faults]))


def _is_executor(process: psutil.Process) -> bool:
    # On YARN its name has a prefix.
    return any(word.endswith("CoarseGrainedExecutorBackend") for word in process.cmdline())
