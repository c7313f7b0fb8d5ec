"""What is done to a table with Hive: SQL, SQL that is rolled back, and Hive 3's streaming API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.harness.hive_engine import HiveEngine


@dataclass(frozen=True)
class Aborted:
    """A statement that does its work and is rolled back."""

    sql: str


@dataclass(frozen=True)
class Streamed:
    """A call of ``StreamingWriter``."""

    arguments: tuple[str, ...]


@dataclass(frozen=True)
class WriterDied:
    """Open transactions are aborted, as the metastore does with those of a writer that it hears no more of.

    Bytes after those that ``_flush_length`` says are committed are not made up here: Hive 3 cannot update such a table.
    """


Settings = Sequence[tuple[str, str, str]]
"""Name, value and default value of each."""


@dataclass(frozen=True)
class With:
    """A statement under settings of its own."""

    settings: Settings
    sql: str


Statement = str | Aborted | Streamed | WriterDied | With


def streamed(*arguments: str) -> Streamed:
    """A call of ``StreamingWriter``."""
    return Streamed(arguments)


@contextmanager
def under(hive: HiveEngine, settings: Settings) -> Iterator[None]:
    """The session has these settings inside the block, and after it their default values again."""
    hive.execute(*(f"set {name}={value}" for name, value, _ in settings))
    try:
        yield
    finally:
        hive.execute(*(f"set {name}={default}" for name, _, default in settings))


def run(hive: HiveEngine, table: str, statement: Statement) -> None:
    """Runs one statement; ``{t}`` in it is the table, ``{warehouse}`` the folder of its database."""
    match statement:
        case Aborted(sql):
            with hive.aborting():
                run(hive, table, sql)
        case Streamed(arguments):
            hive.call("StreamingWriter", *(_filled(hive, table, argument) for argument in arguments))
        case WriterDied():
            listed = [line.split("\t") for line in hive.execute("show transactions")]
            hive.execute("abort transactions " + " ".join(columns[0] for columns in listed if "OPEN" in columns))
        case With(settings, sql):
            with under(hive, settings):
                run(hive, table, sql)
        case sql:
            hive.execute(_filled(hive, table, sql))


def _filled(hive: HiveEngine, table: str, text: str) -> str:
    database, _, name = table.partition(".")
    warehouse = hive.metastore.warehouse / f"{database}.db"
    for key, value in {"{t}": table, "{db}": database, "{table}": name, "{warehouse}": str(warehouse)}.items():
        text = text.replace(key, value)
    return text
