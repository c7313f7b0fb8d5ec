"""A fault in the Python workers of Spark's executors: a task waits in the middle of its file until it is killed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tests.harness.compaction_chain import wait_until

_FOLDER = Path(__file__).with_name("executor_path")


@dataclass(frozen=True)
class Fault:
    """What happens to the first task that writes a file; all others, also of the same file, are left alone.

    :param file: a pattern that is found in the file's name, its folder included.
    :param folder: an existing folder of this fault's own, for messages between test and task.
    :param moment: ``writing`` or ``written``: it waits before the file has its name, or after.
    """

    file: str
    folder: str
    moment: str

    @classmethod
    def at(cls, folder: Path, file: str, moment: str) -> Fault:
        """A fault with a new folder."""
        folder.mkdir()
        return cls(file, str(folder), moment)

    def wait_until_struck(self) -> None:
        """Until a task waits."""
        wait_until(Path(self.folder, "waits").exists)

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


def settings_of(fault: Fault) -> dict[str, str]:
    """Spark's settings by which the executors of an application get this fault."""
    return {
        "spark.executorEnv.PYTHONPATH": str(_FOLDER),
        "spark.executorEnv.ACID_FAULT": json.dumps(asdict(fault)),
    }


def _is_executor(process: psutil.Process) -> bool:
    return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
