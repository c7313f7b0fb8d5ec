"""The command ``airflow-acid``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.status import Status
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.demand import DemandedType
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.diagnosis import diagnose
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.doctor.picture import show
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.metastore import database
from airflow_provider_acid.plan.thresholds import CompactionDecision
from airflow_provider_acid.table_commands import clean, compact, plan, undo

DATABASE_VARIABLE = "AIRFLOW_ACID_DATABASE_URL"
"""Holds a password, so that it is no argument, which everybody on the machine could read."""

WELL, UNWELL, MISUSED, INTERRUPTED = 0, 1, 2, 130

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class _Counting:
    """Says how many partitions were looked at; an :class:`~..evaluate.initiator.EvaluationObserver`."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._count = 0

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        """One more."""
        self._add(seen.place.entity)

    def passed_over(self, entity: Entity, reason: str) -> None:
        """One more."""
        self._add(entity)

    def _add(self, entity: Entity) -> None:
        self._count += 1
        self._status.update(f"{self._count} partitions looked at, last of {entity.full_table_name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for, and say what was found.

    :returns: 0 where there is no problem, 1 where there is one, 2 where an argument cannot be used, 130 where somebody
        interrupted it.
    """
    logging.basicConfig(level=logging.ERROR)
    # It logs what its errors say, which are shown.
    logging.getLogger("thrift").setLevel(logging.CRITICAL)
    given = _parser().parse_args(arguments)
    if given.command == "grants":
        print((files(database) / f"grants-{given.database}.sql").read_text(encoding="utf-8"), end="")
        return WELL
    try:
        endpoint = _endpoint(given.metastore, given.extra)
        settings = CompactionSettings(storages=endpoint.storages)
        if given.command == "doctor":
            return _doctor(endpoint, settings, given)
        with Supervised(given.command):
            commands = {"plan": plan, "compact": compact, "clean": clean, "undo": undo}
            is_done = commands[given.command](endpoint, settings, given)
    except KeyboardInterrupt:
        print(f"{given.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except AcidError as error:
        print(error, file=sys.stderr)
        return MISUSED if isinstance(error, ConfigurationError) else UNWELL
    return WELL if is_done else UNWELL


def _doctor(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: argparse.Namespace) -> int:
    selection = TableSelection.of(given.tables or ["*.*"], given.exclude or [])
    with Console(stderr=True).status("looking at the metastore") as status:
        counting, health_location = _Counting(status), given.health_location
        diagnosis = diagnose(endpoint, selection, settings, counting, health_location, try_storage=given.try_storage)
    if given.json:
        print(json.dumps(diagnosis.to_json(), indent=2))
    else:
        show(diagnosis, Console())
    return UNWELL if diagnosis.worst is Severity.PROBLEM else WELL


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="airflow-acid", description="Compaction of Hive ACID tables.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = _command(
        commands,
        "doctor",
        "look at a metastore and its tables, say what is wrong and what is due; change nothing unless told to",
    )
    doctor.add_argument("--tables", action="append", metavar="PATTERN", help="e.g. sales.*; default: all tables")
    doctor.add_argument("--exclude", action="append", metavar="PATTERN", help="tables to leave out")
    doctor.add_argument("--health-location", metavar="URI", help="[hive_acid] health_location, to look at it, too")
    doctor.add_argument(
        "--try-storage",
        action="store_true",
        help="on each store, write a small file where compactions exchange plans, read, publish and remove it",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    _add_demand(_command(commands, "plan", "show what a compaction of one table would do, and why; change nothing"))
    work = _command(commands, "compact", "compact one table, or what is due of it, with Spark started from here")
    _add_demand(work)
    work.add_argument("--dry-run", action="store_true", help="as plan: change nothing")
    work.add_argument(
        "--spark-submit",
        default="spark-submit",
        metavar="COMMAND",
        help="with its options, e.g. 'spark-submit --master yarn --num-executors 8'; default: spark-submit",
    )
    work.add_argument(
        "--run-directory", metavar="URI", help="[hive_acid] run_directory: where plans and results are exchanged"
    )
    cleaning = _command(commands, "clean", "delete what compactions of one table replaced, once no reader can need it")
    _add_table(cleaning)
    cleaning.add_argument("--dry-run", action="store_true", help="say what would be cleaned, change nothing")
    cleaning.add_argument("--no-wait", action="store_true", help="look once; default: wait up to six hours for readers")
    for name, meaning in (
        ("keep_replaced_hours", "for so long after a compaction an undo is possible, and nothing deleted"),
        ("retention_seconds", "cleaner_retention_seconds: so long all is kept for readers without a transaction"),
    ):
        flag = f"--{name.replace('_', '-')}"
        cleaning.add_argument(flag, required=True, help=f"as [hive_acid] has it, 0 where it is not set; {meaning}")
    take_back = _command(commands, "undo", "take back the newest compaction of one table or partition")
    _add_table(take_back)
    take_back.add_argument("--dry-run", action="store_true", help="say what would be taken back, change nothing")
    grants = commands.add_parser("grants", help="print what a login to the metastore's database needs, as SQL")
    grants.add_argument("database", choices=["postgresql", "mysql"])
    return parser


def _command(commands: Commands, name: str, told: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=told,
        description=told,
        epilog=f"{DATABASE_VARIABLE} holds the SQLAlchemy URL of the metastore's database, where that is needed.",
    )
    command.add_argument("metastore", help="thrift://HOST:PORT; several are separated by commas")
    command.add_argument(
        "--extra",
        type=Path,
        help="JSON file with what the Airflow connection's extra would have: storage, TLS, Kerberos, HTTP",
    )
    return command


def _add_demand(command: argparse.ArgumentParser) -> None:
    _add_table(command)
    types = [one.value for one in DemandedType]
    command.add_argument("--type", choices=types, default="auto", help="auto (the default): by the thresholds")


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument("table", help="the table with its database, e.g. sales.orders")
    command.add_argument("--partition", help="as SHOW PARTITIONS spells it; default: none, or for plan and compact all")


def _endpoint(hosts: str, file: Path | None) -> MetastoreEndpoint:
    subject = "arguments" if file is None else f"file {file}"
    values: object = {}
    if file is not None:
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(subject, f"cannot be read as JSON ({error})", "correct --extra") from error
    if not isinstance(values, dict):
        raise ConfigurationError(subject, "is no JSON object", 'write e.g. {"tls": true}')
    return MetastoreEndpoint.of(ConnectionExtra.checked(subject, values), hosts, database_url=_database_url())


def _database_url() -> URL | None:
    text = os.environ.get(DATABASE_VARIABLE)
    try:
        return make_url(text) if text else None
    except ArgumentError:
        raise ConfigurationError(
            f"environment variable {DATABASE_VARIABLE}",
            "is no URL",
            "write postgresql+psycopg2://USER:PASSWORD@HOST/DB",
        ) from None
