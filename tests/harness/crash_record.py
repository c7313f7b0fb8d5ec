"""What came of each case of the crash matrix, collected in a file for ``tools/crash-table``."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

RECORDS = Path(__file__).parents[2] / ".cache" / "crash-matrix.json"
PASSED = "passed"
FAILED = "FAILED"


class Successor(str, Enum):
    """Who finds what a dead process left."""

    NEXT_TRY = "next try"
    ANOTHER_RUN = "another run"
    AFTER_REAPER = "another run after the reaper"
    BESIDE_REAPER = "next try beside the reaper"


@dataclass
class CrashRecord:
    """One case.

    :param metastore: version and database.
    :param table: fixture, with the version of the Hive that wrote it.
    :param kind: of compaction.
    :param step: after which the process was killed.
    :param successor: who came then.
    :param found: what it found.
    :param did: what it did about that.
    :param result: whether all that is promised held.
    """

    metastore: str
    table: str
    kind: str
    step: str
    successor: str
    found: str = ""
    did: str = ""
    result: str = FAILED

    @property
    def case(self) -> tuple[str, ...]:
        """What tells it from other cases."""
        return self.metastore, self.table, self.kind, self.step, self.successor


@contextmanager
def recorded(record: CrashRecord) -> Iterator[None]:
    """Stores the record when the case has ended, as failed where that was by an error."""
    try:
        yield
        record.result = PASSED
    finally:
        store(record)


def store(record: CrashRecord, path: Path = RECORDS) -> None:
    """Adds a record, or replaces an older one of the same case; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        records = {known.case: known for known in _parse(file.read())}
        records[record.case] = record
        file.seek(0)
        file.truncate()
        file.write(json.dumps([asdict(known) for known in records.values()], indent=1))


def load(path: Path = RECORDS) -> list[CrashRecord]:
    """All records, in the order in which the cases were first run."""
    return _parse(path.read_text(encoding="utf-8"))


def _parse(text: str) -> list[CrashRecord]:
    records: Iterable[dict[str, str]] = json.loads(text) if text else []
    return [CrashRecord(**record) for record in records]
