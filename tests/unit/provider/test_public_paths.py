"""docs/operators.md names every class that people import, under a path that works."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook, BaseOperator
from airflow.triggers.base import BaseTrigger

from airflow_provider_acid.get_provider_info import get_provider_info

ROOT = Path(__file__).parents[3]
KINDS = (BaseOperator, BaseHook, BaseTrigger)


def documented() -> set[str]:
    table = (ROOT / "docs" / "operators.md").read_text().partition("\n## ")[0]
    return set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE))


def offered() -> set[str]:
    """The classes of the modules that the provider info names."""
    info: dict[str, Any] = get_provider_info()
    rooms = ("hooks", "operators", "sensors", "triggers")
    modules = [name for room in rooms for entry in info[room] for name in entry["python-modules"]]
    return {
        f"{module}.{name}"
        for module in modules
        for name, value in vars(import_module(module)).items()
        if isinstance(value, type) and issubclass(value, KINDS) and value.__module__ == module
    }


def test_the_table_names_every_class_and_no_other() -> None:
    assert documented() == offered()
    assert len(documented()) >= 7
