"""JSON that others may have written: a wrong document, or a wrong field of it, fails here, by name, and not later."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, TypeVar, get_args, get_origin, get_type_hints

from airflow_provider_acid.exceptions import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    D = TypeVar("D", bound=DataclassInstance)

W = TypeVar("W", bound=Enum)

JsonObject = Mapping[str, object]

MOST_NESTING = 100
"""Most objects and lists inside each other; what this package writes has five."""

LONG = range(-(2**63), 2**63)
"""Integers that Hive's files and metastore can hold."""


def decoded(document: str | bytes, what: str) -> JsonObject:
    """A JSON object, whatever it may hold; the one reader of all JSON that comes from a storage or a metastore.

    :param what: how errors call the document.
    :raises ConfigurationError: it is no JSON object, no UTF-8, or nested too deep.
    """
    try:
        value = json.loads(document if isinstance(document, str) else document.decode(), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        reason = "is nested too deep" if isinstance(error, RecursionError) else f"is not JSON ({error})"
        raise ConfigurationError(what, reason, "find out what wrote it and remove it") from error
    if _is_nested_too_deep(value):
        raise ConfigurationError(what, "is nested too deep", "find out what wrote it and remove it")
    return as_object(value, what)


def _refused(constant: str) -> object:
    """NaN and infinities are no JSON, and compare with nothing."""
    raise ValueError(f"{constant} is no number")


def _is_nested_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MOST_NESTING):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    """The objects and lists of which an object or list is made."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _wrong(name: str, expected: str, value: object) -> ConfigurationError:
    return ConfigurationError(
        f"JSON field {name!r}",
        f"expected {expected}, found {type(value).__name__}",
        "write and read plans and results with the same version of airflow-provider-acid",
    )


def text(data: JsonObject, name: str) -> str:
    """The string at ``name``."""
    value = data.get(name)
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _wrong(name, "text that can be encoded", value)
    return value


def optional_text(data: JsonObject, name: str) -> str | None:
    """The string at ``name``; None where it is null or missing."""
    return None if data.get(name) is None else text(data, name)


def word(data: JsonObject, name: str, words: type[W]) -> W:
    """The string at ``name``, one of the values of an enumeration."""
    value = text(data, name)
    for known in words:
        if known.value == value:
            return known
    raise ConfigurationError(
        f"JSON field {name!r}",
        f"{value!r} is none of {', '.join(str(known.value) for known in words)}",
        "write and read plans and results with the same version of airflow-provider-acid",
    )


def integer(data: JsonObject, name: str) -> int:
    """The integer at ``name``."""
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "an integer", value)
    if value not in LONG:
        raise _wrong(name, "an integer of 64 bits", value)
    return value


def number(data: JsonObject, name: str) -> float:
    """The number at ``name``, as a float."""
    value = data.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > sys.float_info.max:
        raise _wrong(name, "a finite number", value)
    return float(value)


def boolean(data: JsonObject, name: str) -> bool:
    """The truth value at ``name``."""
    value = data.get(name)
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def texts(data: JsonObject, name: str) -> tuple[str, ...]:
    """The list of strings at ``name``."""
    return tuple(text({name: item}, name) for item in _list(data, name))


def read_as(dataclass: type[D], data: JsonObject) -> D:
    """A frozen dataclass from its fields in JSON, as ``dataclasses.asdict`` makes them; other fields are passed over.

    Its fields may be text, integers, numbers, truth values, enumerations of words, tuples of one kind, and dataclasses;
    what may be None may be missing.

    :raises ConfigurationError: a field is missing, or of another kind.
    """
    return dataclass(**{name: read(data, name) for name, read in _readers(dataclass).items()})


@cache
def _readers(dataclass: type[DataclassInstance]) -> Mapping[str, Callable[[JsonObject, str], object]]:
    """What reads each of its fields: made once, for a plan has thousands of some."""
    kinds = get_type_hints(dataclass)
    return {field.name: _reader(kinds[field.name]) for field in fields(dataclass)}


_PLAIN: Mapping[object, Callable[[JsonObject, str], object]] = {str: text, int: integer, float: number, bool: boolean}


def _reader(kind: object) -> Callable[[JsonObject, str], object]:
    if kind in _PLAIN:
        return _PLAIN[kind]
    parts = get_args(kind)
    if NoneType in parts:
        (known,) = (_reader(part) for part in parts if part is not NoneType)
        return lambda data, name: None if data.get(name) is None else known(data, name)
    if get_origin(kind) is tuple:
        item = _reader(parts[0])
        return lambda data, name: tuple(item({name: value}, name) for value in _list(data, name))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda data, name: word(data, name, kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda data, name: read_as(kind, as_object(data.get(name), name))
    raise TypeError(f"no JSON is read as {kind}")


def as_object(value: object, name: str) -> JsonObject:
    """``value`` as a JSON object; ``name`` says in the error what it was."""
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object", value)
    return value


def versioned(document: str | bytes, what: str, version: int) -> JsonObject:
    """A document that says which version of its format it has.

    :param what: how errors call it.
    :raises ConfigurationError: it is no JSON object of this version.
    """
    data = decoded(document, what)
    if data.get("format_version") != version:
        raise ConfigurationError(
            what,
            f"has format version {data.get('format_version')!r}, this package reads {version}",
            "run operator and Spark job from the same release of airflow-provider-acid",
        )
    return data


def versioned_document(value: DataclassInstance, version: int) -> str:
    """A value and the version of its format, as :func:`versioned` reads them."""
    document = {"format_version": version, **_fields_of(value)}
    # Not asdict, which copies every leaf: an operator writes some documents for each partition.
    return json.dumps(document, sort_keys=True, default=_fields_of)


def _fields_of(value: DataclassInstance) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _list(data: JsonObject, name: str) -> list[object]:
    value = data.get(name)
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    return list(value)
