"""What a DAG file says literally is checked when it is read; the task itself checks what comes otherwise.

That is what a template, another task or a form gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_acid.compaction.evaluate.demand import as_name, as_partitions
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.options import OPTIONS
from airflow_provider_acid.parameters import as_optional_text

OF_ONE_TABLE: Mapping[str, Callable[[str, object], object]] = {
    "database": as_name,
    "table": as_name,
    "partition": lambda name, value: as_partitions(name, as_optional_text(value) or ""),
}
"""How the names of one table, and of partitions of it, are read."""

_TEMPLATES = ("{{", "{%", "{#")


@failing_at_once()
def refuse_wrong_literals(task: BaseOperator, **others: Callable[[str, object], object]) -> None:
    """Refuse a task that could only fail; comes last in its ``__init__``.

    Airflow shows it as an import error of the DAG file. A mapped task is made when it runs: it is not tried again.

    :param others: how templated fields that are no options are read, by their names.
    :raises AirflowFailException: in the words in which the task would be refused.
    """
    for name in task.template_fields:
        value = getattr(task, name)
        if value is None or not _is_literal(value):
            continue
        if name in others:
            others[name](name, value)
        elif name in OPTIONS:
            OPTIONS[name].kind.parse(name, value)


def _is_literal(value: object) -> bool:
    if isinstance(value, str) and not isinstance(value, Enum):
        return not any(mark in value for mark in _TEMPLATES)
    if isinstance(value, Mapping):
        return all(map(_is_literal, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, bool | int | float | Enum)
