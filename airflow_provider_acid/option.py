"""What an option is: its values, and where it may be set. The table of all is :mod:`options`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from enum import Enum, Flag, auto
from functools import partial
from typing import Any

from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.parameters import (
    as_boolean,
    as_integer,
    as_names,
    as_number,
    as_optional_memory,
    as_optional_number,
    as_optional_text,
    as_spark_conf,
    as_text,
    as_time_window,
    as_word,
)

SECTION = "hive_acid"
"""Of Airflow's configuration."""

MOST_IN_RUN = 10_000
"""Partitions of one run: the XCom that names them, in all batches, has one to two megabytes then."""

MOST_IN_BATCH = 1000
"""Partitions of one Spark application."""

MOST_EXECUTORS = 10_000
"""Of one Spark application, and cores of them: who may start a run is not to ask a cluster for any number."""

REQUIRED = object()
"""The default of what has none."""


class Place(Flag):
    """Where an option may be set."""

    CONFIG = auto()
    SENSOR = auto()
    TABLE_PLAN = auto()
    COMPACTION = auto()
    CLEANER = auto()
    HOUSEKEEPING = auto()
    UNDO = auto()


@dataclass(frozen=True)
class Option:
    """One option.

    :param default: a value; :data:`REQUIRED` where there is none, and one of the settings has theirs.
    :param title: of its field in a form.
    :param hive: Hive's own property that means the same.
    :param since: the release of this package that brought it.
    """

    name: str
    kind: ValueKind
    description: str
    places: Place = Place.CONFIG
    default: object = REQUIRED
    title: str = ""
    hive: str = ""
    example: str | None = None
    since: str = "0.1.0"

    @property
    def default_text(self) -> str:
        """The default as people write it."""
        return "" if self.default is REQUIRED else text_of(self.default)


def with_defaults(options: Iterable[Option], *settings: Any) -> Iterator[Option]:
    """Options with the defaults of the settings of their names.

    :param settings: instances of dataclasses with nothing but defaults.
    """
    defaults = {field.name: getattr(some, field.name) for some in settings for field in fields(some)}
    for option in options:
        yield replace(option, default=defaults[option.name]) if option.name in defaults else option


def text_of(value: object) -> str:
    """A value as the configuration has it."""
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, Mapping):
        return json.dumps(dict(value)) if value else ""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


@dataclass(frozen=True)
class ValueKind:
    """The values that an option takes.

    :param airflow_type: of Airflow's configuration: ``integer``, ``float``, ``boolean`` or ``string``.
    :param schema: JSON schema of its field in a trigger form.
    :param words: the same for people.
    :param parse: makes a value of what Python, a form, a template or the configuration gives, or raises a
        :class:`ConfigurationError` by the name that it is given.
    """

    airflow_type: str
    schema: Mapping[str, object]
    words: str
    parse: Callable[[str, object], object]


def whole(minimum: int = 1, maximum: int | None = None) -> ValueKind:
    """Whole numbers."""
    bounds = {"minimum": minimum} if maximum is None else {"minimum": minimum, "maximum": maximum}
    words = f"integer from {minimum} on" if maximum is None else f"integer, {minimum} to {maximum}"
    parse = partial(as_integer, minimum=minimum, maximum=maximum)
    return ValueKind("integer", {"type": "integer", **bounds}, words, parse)


def or_empty(kind: ValueKind) -> ValueKind:
    """The same values, or none."""

    def parse(name: str, value: object) -> object:
        return None if as_optional_text(value) is None else kind.parse(name, value)

    return ValueKind("string", {**kind.schema, "type": [kind.schema["type"], "null"]}, f"{kind.words}, or empty", parse)


def word(words: type[Enum]) -> ValueKind:
    """The words of an enumeration."""
    values = [str(one.value) for one in words]
    shown = ", ".join(f"`{value}`" for value in values)
    return ValueKind("string", {"type": "string", "enum": values}, shown, partial(as_word, words=words))


def _patterns(name: str, value: object) -> tuple[str, ...]:
    names = as_names(name, value)
    with _naming(name):
        return TableSelection.of(names).include


def _no_or_patterns(name: str, value: object) -> tuple[str, ...]:
    return _patterns(name, value) if value is not None and as_names(name, value) else ()


def _time_window(name: str, value: object) -> str | None:
    as_time_window(name, value, "UTC")
    return as_optional_text(value)


def _time_zone(name: str, value: object) -> str:
    with _naming(name):
        TimeWindow.of("00:00-23:59", str(value))
    return str(value).strip()


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"parameter {name}", f"{error.subject} {error.reason}", error.remedy) from error


_LIST = {"type": "array", "items": {"type": "string"}}

NUMBER = ValueKind("float", {"type": "number", "minimum": 0}, "number from 0 on", as_number)
OPTIONAL_NUMBER = ValueKind(
    "string", {"type": ["number", "null"], "exclusiveMinimum": 0}, "number above 0, or empty", as_optional_number
)
TRUTH = ValueKind("boolean", {"type": "boolean"}, "true or false", as_boolean)
NAMES = ValueKind("string", _LIST, "list of texts", lambda name, value: tuple(as_names(name, value)))
PATTERNS = ValueKind("string", {**_LIST, "minItems": 1}, "list of texts", _patterns)
NO_OR_PATTERNS = ValueKind("string", {**_LIST, "type": ["array", "null"]}, "list of texts", _no_or_patterns)
TEXT = ValueKind("string", {"type": "string", "minLength": 1}, "text", as_text)
OPTIONAL_TEXT = ValueKind(
    "string", {"type": ["string", "null"]}, "text or empty", lambda name, value: as_optional_text(value)
)
MEMORY = ValueKind(
    "string",
    {"type": ["string", "null"], "pattern": r"^([1-9][0-9]{0,5}[mgtMGT][bB]?)?$"},
    "number and unit, e.g. `512m` or `4g`, or empty",
    as_optional_memory,
)
SPARK_CONF = ValueKind("string", {"type": "object"}, "JSON object of texts", as_spark_conf)
TIME_WINDOW = ValueKind(
    "string",
    {"type": ["string", "null"], "pattern": r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$"},
    "text or empty",
    _time_window,
)
TIME_ZONE = ValueKind("string", {"type": "string", "minLength": 1}, "text", _time_zone)
