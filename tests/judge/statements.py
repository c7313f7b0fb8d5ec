"""What is done to a table with Hive: SQL, SQL that is rolled back, and Hive 3's streaming API."""

from __future__ import annotations

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
class With:
    """A statement under a setting of its own.

    :param setting: ``name=value``, and the value that comes after it.
    """

    name: str
    value: str
    afterwards: str
    sql: str


Statement = str | Aborted | Streamed | With


def streamed(*arguments: str) -> Streamed:
    """A call of ``StreamingWriter``."""
    return Streamed(arguments)


def run(hive: HiveEngine, table: str, statement: Statement) -> None:
    """Runs one statement; ``{t}`` in it is the table, ``{warehouse}`` the folder of its database."""
    match statement:
        case Aborted(sql):
            with hive.aborting():
                run(hive, table, sql)
        case Streamed(arguments):
            hive.call("StreamingWriter", *(_filled(hive, table, argument) for argument in arguments))
        case With(name, value, afterwards, sql):
            hive.execute(f"set {name}={value}")
            try:
                run(hive, table, sql)
            finally:
                hive.execute(f"set {name}={afterwards}")
        case sql:
            hive.execute(_filled(hive, table, sql))


def _filled(hive: HiveEngine, table: str, text: str) -> str:
    database, _, name = table.partition(".")
    warehouse = hive.metastore.warehouse / f"{database}.db"
    for key, value in {"{t}": table, "{db}": database, "{table}": name, "{warehouse}": str(warehouse)}.items():
        text = text.replace(key, value)
    return text
