"""What every write id did, in a file that all processes append to and read: the judge of every reading.

The rows of a snapshot are all changes that it sees, one after the other by write id. A change is written down before
its transaction commits, so that nobody reads rows that the ledger does not know; that it ended is written down after.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.acid_reader import Snapshot

Rows = dict[int, int]
"""Key to value; keys are never used twice."""

COMMITTED, ABORTED = "committed", "aborted"
HIVE_KEYS = 10**15
"""From this key on rows are a real Hive's, whose write ids nobody here knows; see :meth:`Ledger.hive_rows`."""


@dataclass(frozen=True)
class Change:
    """What one write id does to one partition, in the order of the fields.

    :param overwrites: whether all rows go first, as INSERT OVERWRITE does it.
    :param deleted: keys; those of updated rows are among them.
    :param inserted: new rows; updated ones are among them.
    """

    partition: str | None
    overwrites: bool = False
    deleted: tuple[int, ...] = ()
    inserted: Mapping[int, int] = field(default_factory=dict)

    def apply(self, rows: Rows) -> None:
        """Change rows."""
        if self.overwrites:
            rows.clear()
        for key in self.deleted:
            rows.pop(key, None)
        rows.update(self.inserted)

    def to_json(self) -> dict[str, object]:
        """The change as a small JSON object."""
        return {
            "partition": self.partition,
            "overwrites": self.overwrites,
            "deleted": list(self.deleted),
            "inserted": {str(key): value for key, value in self.inserted.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Change:
        """Read what :meth:`to_json` wrote."""
        partition, deleted, inserted = data["partition"], data["deleted"], data["inserted"]
        assert partition is None or isinstance(partition, str)
        assert isinstance(deleted, list)
        assert isinstance(inserted, dict)
        rows = {int(key): int(value) for key, value in inserted.items()}
        return cls(partition, bool(data["overwrites"]), tuple(deleted), rows)


@dataclass
class _Write:
    changes: tuple[Change, ...]
    begun_monotonic: float
    ended: str | None = None
    ended_monotonic: float = 0.0


class Ledger:
    """One thread's view of the file; what others appended is read when it is needed.

    :param path: the file; made by the first who writes to it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._writes: dict[str, dict[int, _Write]] = {}
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def will_write(self, table: str, write_id: int, txn: int, writer: str, changes: Iterable[Change]) -> None:
        """To be called before the commit."""
        described = [change.to_json() for change in changes]
        self._append(table=table, write_id=write_id, txn=txn, writer=writer, changes=described)

    def ended(self, table: str, write_id: int, how: str) -> None:
        """To be called after the transaction ended, as :data:`COMMITTED` or :data:`ABORTED`.

        A transaction that nobody will ever commit may be called aborted before the metastore aborts it.
        """
        self._append(table=table, write_id=write_id, ended=how)

    def note(self, what: str) -> None:
        """An event of which nothing follows, for whoever has to understand a failure."""
        self._append(note=what)

    def rows(self, table: str, partition: str | None, snapshot: Snapshot) -> Rows:
        """What a snapshot must read."""
        self._read_on()
        rows: Rows = {}
        for write_id, write in sorted(self._writes.get(table, {}).items()):
            if write.ended != ABORTED and snapshot.sees(write_id):
                for change in write.changes:
                    if change.partition == partition:
                        change.apply(rows)
        return rows

    def hive_rows(
        self, session: str, partition: str | None, asked_monotonic: float, taken_monotonic: float
    ) -> list[Rows]:
        """What a snapshot may read of the rows of a Hive session, which runs one statement after the other.

        :param session: written down like a table, with the numbers of its statements for write ids.
        :param asked_monotonic: statements that had ended by then are seen.
        :param taken_monotonic: statements that began after that are not.
        """
        self._read_on()
        states: list[Rows] = [{}]
        for _, write in sorted(self._writes.get(session, {}).items()):
            if write.ended == ABORTED or write.begun_monotonic > taken_monotonic:
                continue
            rows = dict(states[-1])
            for change in write.changes:
                if change.partition == partition:
                    change.apply(rows)
            is_seen = write.ended == COMMITTED and write.ended_monotonic < asked_monotonic
            states = [rows] if is_seen else [*states, rows]
        return states

    def unseen(self, table: str, snapshot: Snapshot, asked_monotonic: float) -> list[int]:
        """Write ids that were committed before a snapshot was asked for, and that it does not see."""
        self._read_on()
        return [
            write_id
            for write_id, write in self._writes.get(table, {}).items()
            if write.ended == COMMITTED and write.ended_monotonic < asked_monotonic and not snapshot.sees(write_id)
        ]

    def touched(self, table: str, write_ids: Iterable[int]) -> set[str | None]:
        """The partitions that some write ids changed."""
        self._read_on()
        writes = self._writes.get(table, {})
        return {change.partition for id in write_ids if id in writes for change in writes[id].changes}

    def history(self, table: str, keys: Iterable[int]) -> list[str]:
        """All that ever happened to some keys, for the report of a failure."""
        wanted = set(keys)
        found = []
        for write_id, write in sorted(self._writes.get(table, {}).items()):
            for change in write.changes:
                touched = wanted & {*change.deleted, *change.inserted}
                if touched or change.overwrites:
                    what = "overwrites" if change.overwrites else f"touches {sorted(touched)[:5]}"
                    found.append(f"write id {write_id} ({write.ended or 'not ended'}) {what} in {change.partition}")
        return found

    def _append(self, **line: object) -> None:
        text = json.dumps({"at": round(time.monotonic(), 3), **line}) + "\n"
        # One write at the file's end is never mixed up with another's.
        os.write(self._descriptor, text.encode())

    def _read_on(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._place)
            news = file.read()
        whole = news[: news.rfind(b"\n") + 1]
        self._place += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, line: Mapping[str, object]) -> None:
        if "note" in line:
            return
        writes = self._writes.setdefault(str(line["table"]), {})
        write_id, changes, at = line["write_id"], line.get("changes"), line["at"]
        assert isinstance(write_id, int)
        assert isinstance(at, (int, float))
        if isinstance(changes, list):
            writes[write_id] = _Write(tuple(map(Change.from_json, changes)), at)
        else:
            writes[write_id].ended, writes[write_id].ended_monotonic = str(line["ended"]), at
