"""The folder of one run: logs, warehouse and databases; kept until the next run, for looking into."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
RUNS = REPOSITORY / ".cache" / "quickstart"

_LOCK = "lock"


@contextmanager
def work_folder(runs: Path = RUNS) -> Iterator[Path]:
    """A fresh folder; those of runs that have ended are removed first, those of runs going on are left alone."""
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / _LOCK).open("w") as all_runs:
        fcntl.flock(all_runs, fcntl.LOCK_EX)
        for old in runs.iterdir():
            if old.is_dir() and not _in_use(old):
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=runs))
        own = (folder / _LOCK).open("w")
        fcntl.flock(own, fcntl.LOCK_EX)
    with own:
        yield folder


def _in_use(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
