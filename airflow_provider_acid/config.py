"""The ``[hive_acid]`` section of Airflow's configuration, read when it is needed and never at import.

The defaults of :mod:`options` are given to every look-up, because a task's process need not have read what the
providers say about themselves.
"""

from __future__ import annotations

import os
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from airflow.exceptions import AirflowTimetableInvalid
from airflow.providers.common.compat.sdk import conf

from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.option import SECTION, Place
from airflow_provider_acid.options import OPTIONS, parameters_of
from airflow_provider_acid.plan.thresholds import Thresholds

_FORMER_NAMES = {
    "check_interval": "check_interval_seconds",
    "worker_timeout": "worker_timeout_seconds",
    "cleaner_retention_time": "cleaner_retention_seconds",
}
"""Of 0.1.0. Airflow writes all options with their defaults into the airflow.cfg that it makes, where they stay."""

_OF_THRESHOLDS = {field.name for field in fields(Thresholds)}
_OF_SETTINGS = {field.name for field in fields(CompactionSettings)} | _OF_THRESHOLDS


def option(name: str, given: object = None) -> Any:
    """The value of an option: what is given, else what is configured, else its default.

    :param given: from Python, a form or a template; None: nothing.
    :raises ConfigurationError: it cannot be used.
    """
    found = OPTIONS[name]
    if given is not None:
        return found.kind.parse(name, given)
    text = conf.get(SECTION, name, fallback=None) if Place.CONFIG in found.places else None
    return found.default if text is None else found.kind.parse(f"[{SECTION}] {name}", text)


def configured_settings(**given: object) -> CompactionSettings:
    """The settings: those that are given, by the names of their options, and the configured ones elsewhere.

    One rule for tasks and their triggers, so that both mean the same by "due".

    :raises ConfigurationError: an option has a value that cannot be used, or ``[hive_acid]`` has a name that is none.
    """
    _check_names()
    values = {name: option(name, given.get(name)) for name in OPTIONS if name in _OF_SETTINGS}
    thresholds = Thresholds(**{name: values.pop(name) for name in _OF_THRESHOLDS})
    return CompactionSettings(thresholds=thresholds, **values)


def check_options() -> None:
    """Read all options, whoever needs them: Airflow shows what cannot be used as an import error of the DAG file.

    :raises ConfigurationError: an option has a value that cannot be used, or ``[hive_acid]`` has a name that is none.
    """
    _check_names()
    for name in parameters_of(Place.CONFIG):
        option(name)


def _check_names() -> None:
    """A name that is misspelt would change nothing, and nobody would know."""
    known = parameters_of(Place.CONFIG)
    # Airflow 2 does not look into the environment for a section that no file has.
    prefix = f"AIRFLOW__{SECTION.upper()}__"
    of_environment = {
        name.removeprefix(prefix).lower(): value for name, value in os.environ.items() if name.startswith(prefix)
    }
    for name, value in (of_environment | (conf.getsection(SECTION) or {})).items():
        former = OPTIONS.get(_FORMER_NAMES.get(name, ""))
        if former is not None and former.kind.parse(name, value) == former.default:
            continue
        if name not in known:
            nearest = get_close_matches(name, known, n=1) if former is None else [former.name]
            remedy = f"write {nearest[0]}, or take it out" if nearest else "take it out; docs/options.md has all"
            raise ConfigurationError(f"[{SECTION}] {name}", "is no option", remedy)


def most_batches() -> int:
    """Batches that Airflow maps a task over; more would fail the task that finds them, after all its work."""
    most: int = conf.getint("core", "max_map_length", fallback=1024)
    return most


def schedule() -> str | None:
    """When ``acid_compaction`` runs: a cron expression or preset; None for only by hand.

    :raises ConfigurationError: it is neither: Airflow shows it as an import error.
    """
    text: str | None = option("schedule")
    return None if text is None else checked_schedule(f"[{SECTION}] schedule", text)


def checked_schedule(name: str, text: str) -> str:
    """A cron expression or preset.

    :raises ConfigurationError: it is neither.
    """
    # Only DAG files need it, and it is no light import.
    from airflow.timetables.trigger import CronTriggerTimetable

    try:
        CronTriggerTimetable(text, timezone="UTC").validate()
    except AirflowTimetableInvalid as error:
        raise ConfigurationError(
            name, f"is {text!r} ({error})", "write a cron expression, e.g. 30 1 * * *, or None"
        ) from error
    return text
