"""Faults in the Python workers of Spark's executors: a task that is slow, fails or dies when its file is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tests.harness.compaction_chain import wait_until

_FOLDER = Path(__file__).with_name("executor_path")


@dataclass(frozen=True)
class Fault:
    """What happens to the first task that writes a file; all others, also of the same file, are left alone.

    A second fault of the same file is for the second task that writes it.

    :param file: a pattern that is found in the file's name, its folder included.
    :param folder: an existing folder of this fault's own, for messages between test and task.
    :param moment: ``writing`` or ``written``: it waits for :meth:`go_on` before the file has its name, or after.
    :param then: what it does after the wait: ``answer``, ``fail`` or ``die``.
    """

    file: str
    folder: str
    moment: str
    then: str = "answer"

    @classmethod
    def at(cls, folder: Path, file: str, moment: str, then: str = "answer") -> Fault:
        """A fault with a new folder."""
        folder.mkdir()
        return cls(file, str(folder), moment, then)

    def wait_until_struck(self) -> None:
        """Until a task waits."""
        wait_until(Path(self.folder, "waits").exists)

    def is_over(self) -> bool:
        """Whether the task has waited, and its file has its name or could not get it."""
        return Path(self.folder, "over").exists()

    def go_on(self) -> None:
        """Ends the wait; also before it has begun."""
        Path(self.folder, "go").touch()

    def worker(self) -> psutil.Process:
        """The Python process of the task."""
        return psutil.Process(int(Path(self.folder, "first").read_text()))

    def worker_lives(self) -> bool:
        """Whether it has not ended."""
        try:
            return bool(self.worker().status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def executor(self) -> psutil.Process:
        """The executor that the task runs on."""
        (executor,) = [parent for parent in self.worker().parents() if _is_executor(parent)]
        return executor


def settings_of(faults: Sequence[Fault]) -> dict[str, str]:
    """Spark's settings by which the executors of an application get these faults."""
    return {
        "spark.executorEnv.PYTHONPATH": str(_FOLDER),
        "spark.executorEnv.ACID_FAULTS": json.dumps([asdict(fault) for fault in faults]),
    }


def _is_executor(process: psutil.Process) -> bool:
    return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
