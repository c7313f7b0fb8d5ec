"""A run: makes the tables, lets the actors act in several processes, brings everything to its end, and reports."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.harness.concurrency.compactor import CleaningLoop, CompactionLoop, UndoLoop
from tests.harness.concurrency.ending import Ending
from tests.harness.concurrency.places import COLUMNS, PARTITION_KEYS, RunTable
from tests.harness.concurrency.reader import Habit, Reader
from tests.harness.concurrency.sandman import Sandman
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage
from tests.harness.concurrency.writer import Writer
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

TIMEOUT_SECONDS = 12
"""The time-out of transactions on a run's metastore: so long a dead writer holds back compactor and cleaner."""

MOST_OVERTIME = 4
"""So many times longer a run may take on a busy machine."""

_ALWAYS = (
    "transactions committed",
    "transactions aborted by their writers",
    "transactions silent for ever",
    "compactions (major) compacted",
    "compactors that overslept",
    "cleanings cleaned",
    "obsolete directories deleted",
    "undos refused",
    "snapshots of Hive readers",
    "snapshots of Trino readers",
)
_IN_THE_LONG_RUN = (
    "OVERWRITE committed",
    *(f"Hive {statement} committed" for statement in ("INSERT", "UPDATE", "DELETE", "MERGE")),
    "Hive SELECT",
    "snapshots of patient readers",
    "snapshots of patient Trino readers",
    "compactions (minor, 1 directories) compacted",
)

END_SECONDS = 60.0
"""How long actors may take to come to their end."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])

Role = Callable[[Stage], Actor]
"""Makes an actor in the process that it acts in."""


@dataclass(frozen=True)
class Run:
    """What is played.

    :param database: name of a new database in the metastore.
    :param partitions: of the partitioned table.
    :param seconds: how long; longer, though not without end, until everything that must happen has happened.
    :param cast: the actors, process by process.
    :param must_happen: names of figures.
    :param hive_partition: see :class:`~tests.harness.concurrency.places.RunTable`.
    :param insert_partition: see there.
    """

    database: str
    seconds: float
    seed: int
    partitions: tuple[str, ...]
    cast: tuple[tuple[Role, ...], ...]
    must_happen: tuple[str, ...]
    hive_partition: str | None = None
    insert_partition: str | None = None


def short_run(database: str, seed: int, seconds: float = 45.0) -> Run:
    """For every push: with the way to its end it takes about a minute."""
    hive = Habit("Hive", held_seconds=(0.0, 2.0), rest_seconds=(0.0, 0.5))
    trino = Habit("Trino", held_seconds=(0.0, 3.0), rest_seconds=(0.0, 1.0), trino=True)
    patient = Habit("patient", held_seconds=(8.0, 12.0), rest_seconds=(3.0, 6.0), everywhere=True)
    cast: tuple[tuple[Role, ...], ...] = (
        tuple(partial(Writer, number=number) for number in (1, 2, 3)),
        tuple(partial(Reader, number=number, habit=habit) for number, habit in enumerate((hive, trino, patient))),
        (partial(CompactionLoop, number=1), partial(CleaningLoop, number=1), partial(UndoLoop, number=1)),
        (partial(CompactionLoop, number=2, drowsy=True), partial(CleaningLoop, number=2)),
    )
    return Run(database, seconds, seed, ("p=A", "p=B"), cast, (*_ALWAYS, "snapshots of patient readers"))


def long_run(database: str, seed: int, seconds: float = 570.0) -> Run:
    """For the soak: more of everything, and readers that live through many compactions."""
    hive = Habit("Hive", held_seconds=(0.0, 5.0), rest_seconds=(0.0, 0.5))
    trino = Habit("Trino", held_seconds=(0.0, 8.0), rest_seconds=(0.0, 1.0), trino=True)
    patient = Habit("patient", held_seconds=(10.0, 60.0), rest_seconds=(10.0, 30.0), everywhere=True)
    patient_trino = replace(patient, name="patient Trino", trino=True)
    habits = (hive, hive, trino, patient, patient_trino)
    cast: tuple[tuple[Role, ...], ...] = (
        tuple(partial(Writer, number=number) for number in (1, 2)),
        tuple(partial(Writer, number=number) for number in (3, 4)),
        tuple(partial(Reader, number=number, habit=habit) for number, habit in enumerate(habits)),
        (partial(CompactionLoop, number=1), partial(CleaningLoop, number=1), partial(UndoLoop, number=1)),
        (partial(CompactionLoop, number=2, drowsy=True), partial(CleaningLoop, number=2)),
    )
    partitions = ("p=A", "p=B", "p=H", "p=I")
    return Run(database, seconds, seed, partitions, cast, (*_ALWAYS, *_IN_THE_LONG_RUN), "p=H", "p=I")


def play(run: Run, server: MetastoreServer, folder: Path, *roles_here: Role) -> Counter[str]:
    """Plays a run; the figures of what was done.

    :param folder: of the ledger and of the reports of failures; stays.
    :param roles_here: actors in this process.
    :raises RunFailedError: an actor saw what must not be, or the end is not as it should be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(
        host=server.host,
        port=server.port,
        database_url=server.server_database.url,
        tables=_make_tables(run, server),
        folder=folder,
        seed=run.seed,
        end_monotonic=time.monotonic() + run.seconds * MOST_OVERTIME,
        timeout_seconds=server.transaction_timeout_seconds,
    )
    processes = [_FORKS.Process(target=_act, args=(stage, roles), daemon=True) for roles in run.cast]
    for process in processes:
        process.start()
    actors: list[Actor] = [Sandman(stage, _pid(process)) for process in processes]
    actors += [role(stage) for role in roles_here]
    threads = [threading.Thread(target=actor.run) for actor in actors]
    for thread in threads:
        thread.start()
    _wait(run, stage, processes)
    for thread in threads:
        thread.join()
    if not stage.failures():
        stage.go_on()
        _act(replace(stage, end_monotonic=time.monotonic() + END_SECONDS), (Ending,))
    failures = stage.failures()
    if failures:
        raise RunFailedError(f"seed {run.seed}; all of it is in {folder}\n{failures[0].read_text()}")
    return stage.figures()


def missing(figures: Counter[str], run: Run) -> list[str]:
    """What must happen, but did not."""
    return [what for what in run.must_happen if not figures[what]]


def table_of(figures: Counter[str], run: Run) -> str:
    """The figures as a small table."""
    lines = [f"{name:<45} {count:>7}" for name, count in sorted(figures.items())]
    return "\n".join([f"concurrency run, seed {run.seed}, {run.seconds:.0f} s", *lines])


def _make_tables(run: Run, server: MetastoreServer) -> tuple[RunTable, ...]:
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(run.database)
        parted = admin.create_table(TableDefinition(run.database, "parted", COLUMNS, PARTITION_KEYS))
        for folder in admin.add_partitions(run.database, "parted", run.partitions):
            folder.mkdir(parents=True, exist_ok=True)
        whole = admin.create_table(TableDefinition(run.database, "whole", COLUMNS))
        whole.mkdir(parents=True, exist_ok=True)
    return (
        RunTable(run.database, "parted", parted, run.partitions, run.hive_partition, run.insert_partition),
        RunTable(run.database, "whole", whole, (None,)),
    )


def _wait(run: Run, stage: Stage, processes: Sequence[ForkServerProcess]) -> None:
    """Waits for the actors; kills those that do not end."""
    enough = time.monotonic() + run.seconds
    while not stage.is_over and all(process.is_alive() for process in processes):
        time.sleep(0.2)
        if time.monotonic() > enough and not missing(stage.figures(), run):
            stage.stop()
    deadline = time.monotonic() + END_SECONDS
    for process in processes:
        process.join(max(deadline - time.monotonic(), 0.1))
        if process.exitcode != 0:
            stage.fail("processes", RunFailedError(f"{process.name} ended with {process.exitcode}"))
            process.kill()


def _pid(process: ForkServerProcess) -> int:
    assert process.pid is not None
    return process.pid


def _act(stage: Stage, roles: Sequence[Role]) -> None:
    threads = [threading.Thread(target=role(stage).run) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
