"""What the installed DAGs have in common: fields of their trigger forms, made of the options, and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any

from airflow.providers.common.compat.sdk import Param

from airflow_provider_acid.config import check_options, option
from airflow_provider_acid.option import REQUIRED
from airflow_provider_acid.options import OPTIONS
from airflow_provider_acid.run_options import SPARK_SIZES


def form(first: Sequence[str], sections: Mapping[str, Sequence[str]], **defaults: object) -> dict[str, Param]:
    """The fields of a trigger form, each an option, which starts as ``[hive_acid]`` says.

    :param first: names of options in the section that Airflow shows open: its own, of fields that name none.
    :param sections: names of options by the title of their section, letters and blanks: Airflow 2 makes an id of it.
    :param defaults: what this DAG starts with instead.
    :raises ConfigurationError: an option of ``[hive_acid]`` cannot be used, be it in the form or not.
    """
    check_options()
    return {
        **{name: _field(name, {}, defaults) for name in first},
        **{name: _field(name, {"section": title}, defaults) for title, names in sections.items() for name in names},
    }


def _field(name: str, section: Mapping[str, str], defaults: Mapping[str, object]) -> Param:
    found = OPTIONS[name]
    value = defaults[name] if name in defaults else option(name)
    schema: dict[str, Any] = {"title": found.title, **section, **found.kind.schema}
    if value is not REQUIRED:
        schema["default"] = _plain(value)
    return Param(description=found.description, **schema)


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def spark_of_the_form() -> dict[str, str]:
    """Arguments of an operator that starts Spark: its sizes."""
    # An empty field is none, and not what [hive_acid] says: the form began with that.
    return {name: f"{{{{ params.{name} or '' }}}}" for name in SPARK_SIZES}


def arguments(
    params: Mapping[str, Param],
    *shared: str,
    tags: Sequence[str] = (),
    default_args: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, Any]:
    """Arguments of each of the DAGs.

    :param shared: parameters that are given to every task that has them.
    :param tags: besides those of all.
    :param default_args: of its tasks, instead of those of all.
    """
    given = {name: f"{{{{ params.{name} }}}}" for name in ("hive_acid_conn_id", *shared)}
    retrying = {"retries": option("task_retries"), "retry_delay": timedelta(minutes=5)}
    return {
        "start_date": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "catchup": False,
        "params": dict(params),
        "default_args": {**retrying, **default_args, **given},
        "tags": ["hive", "acid", "compaction", *tags],
    }
