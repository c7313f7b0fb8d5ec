"""Typed access to fields of a decoded JSON object: a wrong document fails here, by name, and not later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_acid.exceptions import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
W = TypeVar("W", bound=Enum)

JsonObject = Mapping[str, object]


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
    return value


def optional_integer(data: JsonObject, name: str) -> int | None:
    """The integer at ``name``; None where it is null or missing."""
    return None if data.get(name) is None else integer(data, name)


def number(data: JsonObject, name: str) -> float:
    """The number at ``name``, as a float."""
    value = data.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, "a number", value)
    return float(value)


def boolean(data: JsonObject, name: str) -> bool:
    """The truth value at ``name``."""
    value = data.get(name)
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def integers(data: JsonObject, name: str) -> tuple[int, ...]:
    """The list of integers at ``name``."""
    return tuple(integer({name: item}, name) for item in _list(data, name))


def texts(data: JsonObject, name: str) -> tuple[str, ...]:
    """The list of strings at ``name``."""
    return tuple(text({name: item}, name) for item in _list(data, name))


def child(data: JsonObject, name: str) -> JsonObject:
    """The object at ``name``."""
    return as_object(data.get(name), name)


def optional_child(data: JsonObject, name: str, decode: Callable[[JsonObject], T]) -> T | None:
    """The object at ``name``, decoded; None where it is null or missing."""
    return None if data.get(name) is None else decode(child(data, name))


def children(data: JsonObject, name: str, decode: Callable[[JsonObject], T]) -> tuple[T, ...]:
    """The list of objects at ``name``, each decoded."""
    return tuple(decode(as_object(item, name)) for item in _list(data, name))


def as_object(value: object, name: str) -> JsonObject:
    """``value`` as a JSON object; ``name`` says in the error what it was."""
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object", value)
    return value


def versioned(document: str, what: str, version: int) -> JsonObject:
    """A document that says which version of its format it has.

    :param what: how errors call it.
    :raises ConfigurationError: it is no JSON object of this version.
    """
    try:
        decoded = json.loads(document)
    except ValueError as error:
        raise ConfigurationError(what, f"is not JSON ({error})", "remove the run directory and start again") from error
    data = as_object(decoded, what)
    if data.get("format_version") != version:
        raise ConfigurationError(
            what,
            f"has format version {data.get('format_version')!r}, this package reads {version}",
            "run operator and Spark job from the same release of airflow-provider-acid",
        )
    return data


def versioned_document(value: DataclassInstance, version: int) -> str:
    """A value and the version of its format, as :func:`versioned` reads them."""
    return json.dumps({"format_version": version, **asdict(value)}, sort_keys=True)


def _list(data: JsonObject, name: str) -> list[object]:
    value = data.get(name)
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    return list(value)
