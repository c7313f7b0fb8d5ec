"""The DAGs that come with this package, for a DAG file of one line that imports them, and what makes more of them.

Each is made when it is asked for: Airflow registers every DAG that is made while a DAG file is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import DAG

    from airflow_provider_acid.installed_dags.sweep import acid_compaction_dag

    acid_compact_table: DAG
    acid_compaction: DAG
    acid_doctor: DAG
    acid_housekeeping: DAG
    acid_undo: DAG

__all__ = [
    "acid_compact_table",
    "acid_compaction",
    "acid_compaction_dag",
    "acid_doctor",
    "acid_housekeeping",
    "acid_undo",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "acid_compaction_dag":
        return import_module(f"{__name__}.sweep").acid_compaction_dag
    return import_module(f"{__name__}.{name.removeprefix('acid_')}").dag
