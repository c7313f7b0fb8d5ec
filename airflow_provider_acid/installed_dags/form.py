"""What the installed DAGs have in common: fields of their trigger forms, made of the options, and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

from airflow.providers.common.compat.sdk import Param

from airflow_provider_acid.config import option
from airflow_provider_acid.option import REQUIRED
from airflow_provider_acid.options import OPTIONS


def form(sections: Mapping[str, Sequence[str]], **defaults: object) -> dict[str, Param]:
    """The fields of a trigger form, each an option, which starts as ``[hive_acid]`` says.

    :param sections: names of options by the title of their section.
    :param defaults: what this DAG starts with instead.
    """
    return {name: _field(name, section, defaults) for section, names in sections.items() for name in names}


def _field(name: str, section: str, defaults: Mapping[str, object]) -> Param:
    found = OPTIONS[name]
    value = defaults[name] if name in defaults else option(name)
    schema: dict[str, Any] = {"title": found.title, "section": section, **found.kind.schema}
    if value is not REQUIRED:
        schema["default"] = _plain(value)
    return Param(description=found.description, **schema)


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def arguments(params: Mapping[str, Param], *shared: str) -> dict[str, Any]:
    """Arguments of each of the DAGs.

    :param shared: parameters that are given to every task that has them.
    """
    given = {name: f"{{{{ params.{name} }}}}" for name in ("hive_acid_conn_id", *shared)}
    return {
        "start_date": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "catchup": False,
        "params": dict(params),
        "default_args": {"retries": option("task_retries"), "retry_delay": timedelta(minutes=5), **given},
        "tags": ["hive", "acid", "compaction"],
    }
