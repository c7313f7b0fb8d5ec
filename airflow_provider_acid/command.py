"""The command ``airflow-acid``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.status import Status
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.doctor.diagnosis import diagnose
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.doctor.picture import show
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.plan.thresholds import CompactionDecision

DATABASE_VARIABLE = "AIRFLOW_ACID_DATABASE_URL"
"""Holds a password, so that it is no argument, which everybody on the machine could read."""

WELL, UNWELL, MISUSED = 0, 1, 2


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
    """Look, and say what was found.

    :returns: 0 where there is no problem, 1 where there is one, 2 where an argument cannot be used.
    """
    logging.basicConfig(level=logging.ERROR)
    given = _parser().parse_args(arguments)
    try:
        endpoint = _endpoint(given.metastore, given.extra)
        selection = TableSelection.of(given.tables or ["*.*"], given.exclude or [])
    except AcidError as error:
        print(error, file=sys.stderr)
        return MISUSED
    settings = CompactionSettings(storages=endpoint.storages)
    with Console(stderr=True).status("looking at the metastore") as status:
        diagnosis = diagnose(endpoint, selection, settings, _Counting(status), given.health_location)
    if given.json:
        print(json.dumps(diagnosis.to_json(), indent=2))
    else:
        show(diagnosis, Console())
    return UNWELL if diagnosis.worst is Severity.PROBLEM else WELL


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="airflow-acid", description="Compaction of Hive ACID tables.")
    doctor = parser.add_subparsers(dest="command", required=True).add_parser(
        "doctor",
        help="look at a metastore and its tables, say what is wrong and what is due, change nothing",
        epilog=f"With Hive 3.1, {DATABASE_VARIABLE} holds the SQLAlchemy URL of the metastore's database.",
    )
    doctor.add_argument("metastore", help="thrift://HOST:PORT; several are separated by commas")
    doctor.add_argument("--tables", action="append", metavar="PATTERN", help="e.g. sales.*; default: all tables")
    doctor.add_argument("--exclude", action="append", metavar="PATTERN", help="tables to leave out")
    doctor.add_argument(
        "--extra",
        type=Path,
        help="JSON file with what the Airflow connection's extra would have: storage, TLS, Kerberos, HTTP",
    )
    doctor.add_argument("--health-location", metavar="URI", help="[hive_acid] health_location, to look at it, too")
    doctor.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    return parser


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
