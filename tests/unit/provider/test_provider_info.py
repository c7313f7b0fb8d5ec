"""What Airflow is told of the package: by its schema, with names that resolve; the same on Airflow 2.11 and 3."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator
from importlib import import_module, resources

import pytest
from jsonschema import Draft7Validator

PACKAGE = "airflow_provider_acid"


def provider_info() -> dict[str, object]:
    (entry_point,) = [
        entry
        for entry in importlib.metadata.distribution("airflow-provider-acid").entry_points
        if entry.group == "apache_airflow_provider"
    ]
    assert entry_point.name == "provider_info"
    info: dict[str, object] = entry_point.load()()
    return info


def dotted_paths(value: object) -> Iterator[str]:
    """Every name of this package anywhere in the provider info."""
    if isinstance(value, dict):
        for item in value.values():
            yield from dotted_paths(item)
    elif isinstance(value, list):
        for item in value:
            yield from dotted_paths(item)
    elif isinstance(value, str) and re.fullmatch(rf"{PACKAGE}(\.\w+)+", value):
        yield value


def resolve(dotted_path: str) -> object:
    """The module or attribute of this name."""
    module, _, attribute = dotted_path.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except AttributeError:
        return import_module(dotted_path)


def test_provider_info_follows_airflows_schema() -> None:
    schema = json.loads(resources.files("airflow").joinpath("provider_info.schema.json").read_text())
    errors = [error.message for error in Draft7Validator(schema).iter_errors(provider_info())]
    assert errors == []


def test_every_name_in_the_provider_info_can_be_imported() -> None:
    paths = set(dotted_paths(provider_info()))
    assert paths, "the provider info names nothing of this package"
    for path in paths:
        assert resolve(path) is not None


def test_an_unknown_name_in_the_provider_info_is_noticed() -> None:
    with pytest.raises(ModuleNotFoundError):
        resolve(f"{PACKAGE}.exceptions.NoSuchError")
