"""Measures what deltas cost Hive's readers, and what compaction saves: ``python -m tests.judge.read_cost``.

Prints the tables of ``docs/read-cost.md``: processor time that Hive's JVM takes for a query, which depends little on
what else the machine does. Takes some minutes.
Versions may be named: ``python -m tests.judge.read_cost 4.0.1``.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4, engine_program, hive_3_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.judge.compactors import Compactor, compactor_for

ROWS = 500_000
ROWS_PER_CHANGE = 5_000
REPETITIONS = 5
DATABASE = "cost"
ROW_MODE, VECTORISED = "false", "true"


@dataclass(frozen=True)
class State:
    """A state of a table.

    :param deletes: number of delete deltas, each of ``ROWS_PER_CHANGE`` rows.
    :param inserts: number of insert deltas, each of ``ROWS_PER_CHANGE`` rows.
    """

    name: str
    deletes: int
    inserts: int


STATES = (
    State("base", 0, 0),
    State("base + 1 delete delta", 1, 0),
    State("base + 1 delete delta + 1 insert delta", 1, 1),
    State("base + 5 delete deltas", 5, 0),
    State("base + 5 delete deltas + 5 insert deltas", 5, 5),
)


def main() -> None:
    """Measures both versions and prints a Markdown table for each."""
    for version in sys.argv[1:] or (HIVE_3, HIVE_4):
        with tempfile.TemporaryDirectory(prefix="read-cost-") as folder, _started(version, Path(folder)) as hive:
            print(f"\nHive {version}, milliseconds of processor time\n")
            print("| state | row mode | vectorised | after: row mode | after: vectorised |\n|---|--:|--:|--:|--:|")
            _measure_all(hive)


@contextmanager
def _started(version: str, folder: Path) -> Iterator[HiveEngine]:
    """An engine whose metastore has a compaction queue for us; that of Hive 3 lies in a database on a server."""
    with ExitStack() as stack:
        metastore = None
        if version == HIVE_3:
            database = ServerDatabase(stack.enter_context(PostgresServer()), "read_cost")
            program = hive_3_metastore_program(engine_program(version, folder / "program"))
            metastore = MetastoreServer(folder / "metastore", reaper=True, program=program, database=database)
            stack.enter_context(metastore)
        yield stack.enter_context(HiveEngine(version, folder, metastore))


def _measure_all(hive: HiveEngine) -> None:
    hive.execute(
        f"create database {DATABASE}",
        f"use {DATABASE}",
        "set hive.fetch.task.conversion=none",
        "create table flat (id int, v bigint, s string) stored as orc tblproperties ('transactional' = 'false')",
        f"insert into flat select {_row('i')} from (select posexplode(split(space({ROWS - 1}), ' ')) as (i, x)) n",
    )
    _print("flat ORC table, no ACID", _cost(hive, "flat"), None)
    with compactor_for(hive, DATABASE) as compactor:
        for number, state in enumerate(STATES):
            table = f"t{number}"
            _make(hive, compactor, table, state)
            before = _cost(hive, table)
            if state.deletes + state.inserts == 0:
                _print(state.name, before, None)
                continue
            _compact(compactor, table)
            _print(state.name, before, _cost(hive, table))


def _make(hive: HiveEngine, compactor: Compactor, table: str, state: State) -> None:
    hive.execute(
        f"create table {table} (id int, v bigint, s string) stored as orc "
        "tblproperties ('transactional' = 'true', 'no_auto_compaction' = 'true')",
        f"insert into {table} select * from flat where id < {ROWS // 2}",
        f"insert into {table} select * from flat where id >= {ROWS // 2}",
    )
    _compact(compactor, table)
    step = ROWS // ROWS_PER_CHANGE
    for number in range(state.deletes):
        hive.execute(f"delete from {table} where id % {step} = {number}")
    for number in range(state.inserts):
        hive.execute(f"insert into {table} select id + {ROWS}, v, s from flat where id % {step} = {number}")


def _row(number: str) -> str:
    return f"{number}, cast({number} as bigint) * 7919 % 1000003, concat('value ', {number} % 1000)"


def _compact(compactor: Compactor, table: str) -> None:
    done = compactor.compact(Entity(DATABASE, table), CompactionType.MAJOR)
    assert done.targets, done
    compactor.clean(Entity(DATABASE, table))


def _cost(hive: HiveEngine, table: str) -> tuple[int, int]:
    """Milliseconds of processor time in row mode and vectorised."""
    row_mode, vectorised = (_median_milliseconds(hive, table, mode) for mode in (ROW_MODE, VECTORISED))
    return row_mode, vectorised


def _median_milliseconds(hive: HiveEngine, table: str, vectorised: str) -> int:
    hive.execute(f"set hive.vectorized.execution.enabled={vectorised}")
    taken = []
    for _ in range(REPETITIONS + 1):
        begun = hive.cpu_seconds
        hive.execute(f"select count(*), sum(v), max(s) from {table}")
        taken.append(hive.cpu_seconds - begun)
    return round(1000 * statistics.median(taken[1:]))


def _print(name: str, before: tuple[int, int], after: tuple[int, int] | None) -> None:
    cells = [name, *map(str, before), *(map(str, after) if after else ("", ""))]
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
