"""Writers: INSERT, UPDATE, DELETE, statements of MERGE, INSERT OVERWRITE; they commit, abort, or fall silent for ever.

The order is that of Hive's driver: open, look at the transactions, get a write id, lock, take the snapshot, write. As
the lock may have been waited for, whoever changes rows then looks whether others wrote meanwhile, and begins anew.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.harness.acid_reader import NotEnoughHistoryError, RowId, Snapshot
from tests.harness.concurrency.judge import View, check_rows, check_snapshot
from tests.harness.concurrency.ledger import ABORTED, COMMITTED, Change, Rows
from tests.harness.concurrency.places import Place, base_name, by_key, delta_name
from tests.harness.concurrency.session import GONE_ERRORS, Access, LockPatienceError, Session
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage

KEYS_PER_WRITER = 10**9
CROWDED_ROWS = 60
"""From so many rows on in a partition more are deleted than inserted."""

MOST_ROWS = 6
_REST_SECONDS = (0.0, 0.25)


class Statement(Enum):
    """What a transaction does; by the lock it takes."""

    INSERT = Access.INSERT
    UPDATE = Access.UPDATE
    DELETE = Access.DELETE
    MERGE = "merge"
    OVERWRITE = Access.OVERWRITE

    @property
    def access(self) -> Access:
        """What its lock is for."""
        return self.value if isinstance(self.value, Access) else Access.UPDATE


class Ending(Enum):
    """How a transaction ends."""

    COMMIT = "committed"
    ABORT = "aborted by their writers"
    SILENCE = "silent for ever"


_STATEMENTS = {
    Statement.INSERT: 40,
    Statement.UPDATE: 22,
    Statement.DELETE: 14,
    Statement.MERGE: 20,
    Statement.OVERWRITE: 2,
}
_ENDINGS = {Ending.COMMIT: 86, Ending.ABORT: 12, Ending.SILENCE: 2}


class OutdatedSnapshotError(Exception):
    """Others wrote before the lock was granted; the transaction has to be aborted."""


@dataclass(frozen=True)
class _Transaction:
    id: int
    write_id: int
    places: tuple[Place, ...]
    view: View
    heard_monotonic: float


class Writer(Actor):
    """One session that writes one transaction after the other.

    :param number: unique among the run's writers.
    """

    def __init__(self, stage: Stage, number: int) -> None:
        super().__init__(stage, f"writer-{number}")
        self._keys = itertools.count(number * KEYS_PER_WRITER)
        self._session: Session

    def act(self) -> None:
        with self.stage.session() as self._session:
            while not self.stage.is_over:
                self._write()
                self.pause(self.random.uniform(*_REST_SECONDS))

    def _write(self) -> None:
        (statement,) = self.random.choices(list(_STATEMENTS), list(_STATEMENTS.values()))
        places = self._choose(statement)
        (txn,) = self._session.open_transactions()
        try:
            begun = self._begin(txn, places, statement)
            changes = [self._change(begun, place, statement) for place in places]
            self._end(begun, statement, [change for change in changes if change is not None])
        except LockPatienceError:
            self._session.abort(txn)
            self.figures["transactions given up without a lock"] += 1
        except OutdatedSnapshotError:
            self._session.abort(txn)
            self.figures["transactions begun anew after a lock"] += 1
        except NotEnoughHistoryError:
            if not self._session.is_hive_3:
                raise
            self._session.abort(txn)
            self.figures["listings refused because of a first base"] += 1
        except GONE_ERRORS:
            self.figures["transactions aborted by the metastore"] += 1

    def _choose(self, statement: Statement) -> tuple[Place, ...]:
        table = self.random.choice(self.stage.tables)
        places = [place for place in table.places if _takes(place, statement)]
        most = len(places) if statement in (Statement.MERGE, Statement.INSERT) else 1
        return tuple(self.random.sample(places, self.random.randint(1, most)))

    def _begin(self, txn: int, places: tuple[Place, ...], statement: Statement) -> _Transaction:
        table = places[0].table
        asked = time.monotonic()
        txns = self._session.transactions()
        taken = time.monotonic()
        write_id = self._session.allocate_write_ids(table.database, table.name, [txn])[txn]
        self._session.take_lock(txn, places, statement.access, overwrites_exclusively=self.random.random() < 0.5)
        heard = time.monotonic()
        snapshot = self._session.snapshot(table, txns)
        if statement is not Statement.INSERT:
            self._check_up_to_date(places, snapshot)
        return _Transaction(txn, write_id, places, View(snapshot, asked, taken), heard)

    def _check_up_to_date(self, places: tuple[Place, ...], snapshot: Snapshot) -> None:
        table = places[0].table
        now = self._session.snapshot(table, self._session.transactions())
        meanwhile = [
            other for other in range(1, now.high_water_mark + 1) if now.sees(other) and not snapshot.sees(other)
        ]
        if self.ledger.touched(table.name, meanwhile) & {place.partition for place in places}:
            raise OutdatedSnapshotError

    def _change(self, begun: _Transaction, place: Place, statement: Statement) -> Change | None:
        """Writes the files; None where there is nothing to change."""
        if statement is Statement.INSERT:
            return self._insert(begun, place, self._new_rows())
        if statement is Statement.OVERWRITE:
            rows = self._new_rows()
            place.write_rows(base_name(begun.write_id), begun.write_id, 0, self._in_buckets(rows))
            return Change(place.partition, overwrites=True, inserted=rows)
        check_snapshot(self.ledger, place, begun.view)
        found = place.read(begun.view.snapshot)
        rows = check_rows(self.ledger, place, begun.view, found)
        updated = () if statement is Statement.DELETE else self._some(rows)
        left = [key for key in rows if key not in updated]
        deleted = self._some(left, len(left) // 2 if len(rows) > CROWDED_ROWS else MOST_ROWS)
        new = self._new_rows() if statement is Statement.MERGE else {}
        row_ids = by_key(found)
        if statement is Statement.UPDATE:
            return self._statements(begun, place, row_ids, updated, (), {})
        return self._statements(begun, place, row_ids, updated, deleted, new)

    def _insert(self, begun: _Transaction, place: Place, rows: Rows) -> Change:
        place.write_rows(delta_name(begun.write_id, 0), begun.write_id, 0, self._in_buckets(rows))
        return Change(place.partition, inserted=rows)

    def _statements(
        self,
        begun: _Transaction,
        place: Place,
        row_ids: Mapping[int, RowId],
        updated: Collection[int],
        deleted: Collection[int],
        new: Rows,
    ) -> Change | None:
        numbers = itertools.count()
        changed = {key: self.random.randrange(10**6) for key in updated}
        if not changed and not deleted and not new:
            return None
        for doomed, rows in ((updated, changed), (deleted, new)):
            if doomed:
                place.write_deletes(begun.write_id, next(numbers), [row_ids[key] for key in doomed])
            if rows:
                statement = next(numbers)
                directory = delta_name(begun.write_id, statement)
                place.write_rows(directory, begun.write_id, statement, self._in_buckets(rows))
        return Change(place.partition, deleted=(*updated, *deleted), inserted={**changed, **new})

    def _end(self, begun: _Transaction, statement: Statement, changes: list[Change]) -> None:
        table = begun.places[0].table.name
        (ending,) = self.random.choices(list(_ENDINGS), list(_ENDINGS.values()))
        if statement is Statement.OVERWRITE and ending is Ending.SILENCE:
            ending = Ending.ABORT  # its lock would keep everybody out
        if time.monotonic() - begun.heard_monotonic > self.stage.timeout_seconds:
            raise RunFailedError("this machine is too slow for the metastore's time-out: a writer without heartbeats")
        self.ledger.will_write(table, begun.write_id, begun.id, f"{self.name} {statement.name}", changes)
        if ending is Ending.COMMIT:
            ending = self._commit(begun, table)
        else:
            self.ledger.ended(table, begun.write_id, ABORTED)
            if ending is Ending.ABORT:
                self._session.abort(begun.id)
        self.figures[f"transactions {ending.value}"] += 1
        if ending is Ending.COMMIT:
            self.figures[f"{statement.name} committed"] += 1

    def _commit(self, begun: _Transaction, table: str) -> Ending:
        try:
            self._session.commit(begun.id)
        except GONE_ERRORS:
            self.ledger.ended(table, begun.write_id, ABORTED)
            raise
        self.ledger.ended(table, begun.write_id, COMMITTED)
        return Ending.COMMIT

    def _new_rows(self) -> Rows:
        count = self.random.randint(1, MOST_ROWS)
        return {next(self._keys): self.random.randrange(10**6) for _ in range(count)}

    def _some(self, keys: Collection[int], most: int = MOST_ROWS) -> tuple[int, ...]:
        count = self.random.randint(min(1, len(keys)), max(min(most, len(keys)), min(1, len(keys))))
        return tuple(sorted(self.random.sample(sorted(keys), count)))

    def _in_buckets(self, rows: Rows) -> list[Rows]:
        """As one or two writing tasks would do it, each of which makes a file, be it empty."""
        return list(self._split(rows, self.random.choice((1, 1, 2))))

    def _split(self, rows: Rows, files: int) -> Iterator[Rows]:
        for place in range(files):
            yield {key: value for key, value in rows.items() if key % files == place}


def _takes(place: Place, statement: Statement) -> bool:
    if statement is Statement.OVERWRITE:
        return not place.is_hives
    return statement is Statement.INSERT or not place.is_for_inserts
