"""A real Hive as one of the writers and readers: one session that runs one statement after the other.

Its rows have keys of their own, and lie in a partition that nobody overwrites: what they are after each statement is
known without knowing its write id.
"""

from __future__ import annotations

import itertools
import time

from tests.harness.concurrency.ledger import ABORTED, COMMITTED, HIVE_KEYS, Change, Rows
from tests.harness.concurrency.places import RunTable
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage
from tests.harness.hive_engine import HiveEngine, HiveStatementError
from tests.harness.hive_engine_program import HIVE_3

MOST_ROWS = 6
MOST_TRIES = 10
LOCK_SETTINGS = {
    "hive.lock.numretries": "400",
    "hive.lock.sleep.between.retries": "1s",
}
_STATEMENTS = {"INSERT": 30, "UPDATE": 20, "DELETE": 12, "MERGE": 18, "SELECT": 20}
_NOT_PLANNED = "FAILED: SemanticException"
_REST_SECONDS = (0.0, 1.0)


class HiveSession(Actor):
    """INSERT, UPDATE, DELETE, MERGE and SELECT.

    :param engine: runs on the run's metastore; belongs to this actor.
    """

    def __init__(self, stage: Stage, engine: HiveEngine) -> None:
        super().__init__(stage, "hive")
        self._engine = engine
        self._numbers = itertools.count(1)
        self._keys = itertools.count(HIVE_KEYS)
        self._rows: Rows = {}
        self._place = next(place for table in stage.tables for place in table.places if place.is_hives)

    @property
    def _table(self) -> RunTable:
        return self._place.table

    def act(self) -> None:
        self._engine.set(LOCK_SETTINGS)
        if self._engine.version == HIVE_3:
            # As a fetch task it would read after it gave its lock back, which no cleaner can respect.
            self._engine.set({"hive.fetch.task.conversion": "none"})
        while not self.stage.is_over:
            (kind,) = self.random.choices(list(_STATEMENTS), list(_STATEMENTS.values()))
            if kind == "SELECT" or not self._rows and kind != "INSERT":
                self._select()
            else:
                self._change(kind)
            self.pause(self.random.uniform(*_REST_SECONDS))

    def _change(self, kind: str) -> None:
        statement, change = self._statement(kind)
        number = next(self._numbers)
        self.ledger.will_write(self._table.hive_session, number, 0, f"Hive {kind}", [change])
        try:
            self._execute(statement)
        except HiveStatementError as error:
            self._settle(number, change, error)
            return
        self.ledger.ended(self._table.hive_session, number, COMMITTED)
        change.apply(self._rows)
        self.figures[f"Hive {kind} committed"] += 1

    def _settle(self, number: int, change: Change, error: HiveStatementError) -> None:
        """A statement that failed has done nothing, or all; the rows tell.

        :raises RunFailedError: Hive missed a file, or found something else that must not be.
        """
        if "FileNotFound" in str(error) or "does not exist" in str(error):
            raise RunFailedError(f"Hive missed a file: {error}")
        self.ledger.note(f"hive: {str(error)[:500]}")
        changed = dict(self._rows)
        change.apply(changed)
        found = self._read()
        if found not in (self._rows, changed):
            raise RunFailedError(f"after {error}\nHive reads {found} instead of {self._rows} or {changed}")
        done = found == changed and changed != self._rows
        self.ledger.ended(self._table.hive_session, number, COMMITTED if done else ABORTED)
        self._rows = found
        self.figures["Hive statements that failed"] += 1

    def _select(self) -> None:
        found = self._read()
        if found != self._rows:
            differing = sorted(key for key in {*found, *self._rows} if found.get(key) != self._rows.get(key))
            history = self.ledger.history(self._table.hive_session, differing)
            raise RunFailedError("\n".join([f"Hive reads other rows than it wrote: {differing}", *history]))
        self.figures["Hive SELECT"] += 1

    def _read(self) -> Rows:
        """Its own rows; those of others are read, too, and must not be doubled."""
        begun = time.monotonic()
        lines = self._execute(f"select k, v from {self._name} where {self._partition}")
        pairs = [(int(key), int(value)) for key, value in (line.split("\t") for line in lines)]
        if len(dict(pairs)) != len(pairs):
            raise RunFailedError(f"Hive reads a key twice: {sorted(pairs)}")
        self.figures["longest SELECT of Hive, seconds"] = max(
            self.figures["longest SELECT of Hive, seconds"], round(time.monotonic() - begun)
        )
        return {key: value for key, value in pairs if key >= HIVE_KEYS}

    def _execute(self, statement: str) -> list[str]:
        """Runs a statement, again where Hive 4 did not get to run it.

        To plan a statement Hive 4 adds up the sizes of all files below a partition, and gives up where one of them, or
        a hidden or obsolete directory, goes meanwhile. Its own Cleaner disturbs it in the same way.
        """
        for _ in range(MOST_TRIES - 1):
            try:
                return self._engine.execute(statement)
            except HiveStatementError as error:
                if _NOT_PLANNED not in str(error):
                    raise
            self.figures["Hive statements planned again"] += 1
        return self._engine.execute(statement)

    def _statement(self, kind: str) -> tuple[str, Change]:
        partition = self._place.partition
        chosen = sorted(self.random.sample(sorted(self._rows), min(len(self._rows), self.random.randint(1, MOST_ROWS))))
        keys = ", ".join(map(str, chosen))
        added = {next(self._keys): self._value() for _ in range(self.random.randint(1, MOST_ROWS))}
        where = f"{self._partition} and k in ({keys})"
        if kind == "INSERT":
            values = ", ".join(f"({key}, {value})" for key, value in added.items())
            change = Change(partition, inserted=added)
            return f"insert into {self._name} partition ({self._partition}) values {values}", change
        if kind == "DELETE":
            return f"delete from {self._name} where {where}", Change(partition, deleted=tuple(chosen))
        if kind == "UPDATE":
            value = self._value()
            change = Change(partition, deleted=tuple(chosen), inserted=dict.fromkeys(chosen, value))
            return f"update {self._name} set v = {value} where {where}", change
        rows = {**{key: self._value() for key in chosen}, **added}
        return self._merge(rows), Change(partition, deleted=tuple(chosen), inserted=rows)

    def _merge(self, rows: Rows) -> str:
        structs = ", ".join(f"struct({key}L, {value}L)" for key, value in rows.items())
        value = self._partition.partition("=")[2]
        return (
            f"merge into {self._name} t using (select inline(array({structs})) as (k, v)) s on t.k = s.k "
            "when matched then update set v = s.v "
            f"when not matched then insert values (s.k, s.v, {value})"
        )

    def _value(self) -> int:
        return self.random.randrange(10**6)

    @property
    def _name(self) -> str:
        return f"{self._table.database}.{self._table.name}"

    @property
    def _partition(self) -> str:
        name, _, value = (self._place.partition or "").partition("=")
        return f"{name}='{value}'"
