"""Parameters of sensors and operators as they arrive: values from Python, or texts that a template or form gave."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import partial
from typing import TypeVar

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.exceptions import ConfigurationError

T = TypeVar("T")
W = TypeVar("W", bound=Enum)

_SHOWN_CHARACTERS = 2000

_MEMORY = re.compile(r"[1-9][0-9]{0,5}[mgtMGT][bB]?")

_TRUTH_VALUES = {"true": True, "false": False}


def _wrong(name: str, value: object, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"parameter {name}", f"is {_shown(value)}", remedy)


def _shown(value: object) -> str:
    """What an error says of a value, however deep or long it is."""
    return _text_of(value, repr)[:_SHOWN_CHARACTERS]


def _text_of(value: object, form: Callable[[object], str] = str) -> str:
    try:
        return form(value)
    except (RecursionError, ValueError):  # nested deeper than Python goes, or a number of thousands of digits
        return f"a value of type {type(value).__name__} that cannot be shown"


def as_names(name: str, value: object) -> list[str]:
    """A list of names, also from a text with commas or blanks, or from a list that a template turned into text.

    Empty names are left out: a form makes them of empty lines.

    :raises ConfigurationError: the value is neither a text nor a list of texts.
    """
    if isinstance(value, str):
        written = _written_list(value)
        value = value.replace(",", " ").split() if written is None else written
    if isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
        return [item for item in value if item.strip()]
    raise _wrong(name, value, "give a list of patterns, or a text with commas")


def _written_list(text: str) -> object | None:
    """The list that a text spells; None where the bracket belongs to a pattern such as ``[ab].orders``."""
    if not text.strip().startswith("["):
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return value


def as_due_partitions(name: str, value: object) -> list[DuePartition]:
    """Partitions to compact, given as objects.

    :raises ConfigurationError: the value is no list of such objects, or names a partition twice.
    """
    items = _parsed(name, value, DuePartition.from_json)
    for entity, count in Counter(item.entity for item in items).items():
        if count > 1:
            # The second would take the first for a dead attempt of the same task.
            raise ConfigurationError(f"parameter {name}", f"names {entity} {count} times", "name it once")
    return items


def as_entities(name: str, value: object) -> list[Entity]:
    """Tables or partitions, given as objects.

    :raises ConfigurationError: the value is no list of such objects.
    """
    return _parsed(name, value, partial(fields.read_as, Entity))


def _parsed(name: str, value: object, parse: Callable[[JsonObject], T]) -> list[T]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise _wrong(
            name, value, "give a list of objects; a template that makes one needs render_template_as_native_obj=True"
        )
    parsed: list[T] = []
    for item in value:
        if not isinstance(item, Mapping):
            raise _wrong(f"{name}: an item", item, "give objects with database, table and partition")
        try:
            parsed.append(parse(item))
        except (ConfigurationError, ValueError) as error:
            raise ConfigurationError(
                f"parameter {name}",
                f"holds {_shown(dict(item))} ({error})",
                "give database, table and partition as texts",
            ) from error
    return parsed


def as_number(name: str, value: object, *, minimum: float = 0.0) -> float:
    """A finite number from ``minimum`` on.

    :raises ConfigurationError: it is none.
    """
    number = _number(value)
    if number is None or number < minimum:
        raise _wrong(name, value, f"give a number from {minimum:g} on")
    return number


def as_integer(name: str, value: object, *, minimum: int = 1, maximum: int | None = None) -> int:
    """A whole number from ``minimum`` on, to ``maximum`` where there is one.

    :raises ConfigurationError: it is none.
    """
    number = _number(value)
    if number is None or not number.is_integer() or not minimum <= number <= (maximum or math.inf):
        raise _wrong(name, value, f"give a whole number from {minimum} {'on' if maximum is None else f'to {maximum}'}")
    return int(number)


def as_optional_number(name: str, value: object, *, minimum: float = 0.001) -> float | None:
    """A number from ``minimum`` on; None for None, or what a template or an empty field makes of it.

    :raises ConfigurationError: it is none.
    """
    return None if as_optional_text(value) is None else as_number(name, value, minimum=minimum)


def as_optional_text(value: object) -> str | None:
    """A text without blanks around it; None for None, or what a template or an empty field makes of it."""
    text = "" if value is None else _text_of(value).strip()
    return None if text in ("", "None") else text


def as_text(name: str, value: object) -> str:
    """A text without blanks around it.

    :raises ConfigurationError: there is none.
    """
    text = as_optional_text(value)
    if text is None:
        raise _wrong(name, value, "give a text")
    return text


def as_optional_memory(name: str, value: object) -> str | None:
    """Memory as ``spark-submit`` takes it, with its unit; None for None, or what an empty field makes of it.

    :raises ConfigurationError: it is none.
    """
    text = as_optional_text(value)
    if text is not None and not _MEMORY.fullmatch(text):
        raise _wrong(name, value, "give a number and its unit, e.g. 512m or 4g")
    return text


def as_spark_conf(name: str, value: object) -> dict[str, str]:
    """Properties of Spark, from an object or the text of one in JSON; nothing for an empty text.

    :raises ConfigurationError: it is no object of texts, numbers and truth values, or a name is none of Spark's. Values
        are not shown: some are secret.
    """
    remedy = 'give an object such as {"spark.yarn.jars": "local:/opt/spark/jars/*"}'
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"parameter {name}", "is no JSON object", remedy)
    for key, item in value.items():
        if not str(key).startswith("spark."):
            raise ConfigurationError(f"parameter {name}", f"has {_shown(key)}, which is no property of Spark's", remedy)
        if not isinstance(item, str | int | float):
            raise ConfigurationError(f"parameter {name}", f"has no text as {_shown(key)}", remedy)
    return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def as_time_window(name: str, value: object, zone: object) -> TimeWindow | None:
    """Hours of the day, in a time zone; None where there is no bound.

    :raises ConfigurationError: they cannot be read.
    """
    text = as_optional_text(value)
    if text is None:
        return None
    try:
        return TimeWindow.of(text, str(zone))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"parameter {name}", f"is {_shown(value)}: {error.subject} {error.reason}", error.remedy
        ) from error


def as_word(name: str, value: object, words: type[W]) -> W:
    """One of an enumeration's words.

    :raises ConfigurationError: it is none of them.
    """
    text = value.value if isinstance(value, Enum) else _text_of(value).strip().lower()
    for word in words:
        if word.value == text:
            return word
    raise _wrong(name, value, f"give {' or '.join(str(word.value) for word in words)}")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_boolean(name: str, value: object) -> bool:
    """True or false.

    :raises ConfigurationError: it is neither.
    """
    truth = value if isinstance(value, bool) else _TRUTH_VALUES.get(_text_of(value).strip().lower())
    if truth is None:
        raise _wrong(name, value, "give true or false")
    return truth


def refuse_unknown(
    subject: str, names: Iterable[str], known: Sequence[str], what: str = "no parameter of the DAG has that name"
) -> None:
    """Refuse names that would change nothing, and nobody would know.

    :param what: what is wrong with such names.
    :raises ConfigurationError: naming them, and what was perhaps meant.
    """
    unknown = sorted(set(names) - {*known})
    if unknown:
        remedies = dict.fromkeys(_nearest(name, known) for name in unknown)
        raise ConfigurationError(subject, f"{', '.join(map(repr, unknown))}: {what}", "; ".join(remedies))


def _nearest(name: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"write {nearest[0]!r} for {name!r}" if nearest else f"use some of {', '.join(known)}"
