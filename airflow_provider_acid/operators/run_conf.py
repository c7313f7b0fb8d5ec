"""The conf of a DAG run: keys that no parameter has would change nothing, and nobody would know."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.operators.permanent import failing_at_once

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

_OF_AIRFLOW = frozenset({"openlineage"})
"""Put there by TriggerDagRunOperator."""


@failing_at_once()
def refuse_unknown_keys(context: Context) -> None:
    """Refuse a run whose conf has a key that is no parameter of its DAG; ``pre_execute`` of the DAG's first task.

    :raises AirflowFailException: naming the key, and the parameter that was perhaps meant.
    """
    dag = context["dag"]
    known = sorted(dag.params)
    unknown = sorted(set(context["dag_run"].conf or {}) - {*known, *_OF_AIRFLOW})
    if unknown:
        remedies = dict.fromkeys(_remedy(key, known) for key in unknown)
        raise ConfigurationError(
            f"conf of the run of {dag.dag_id}",
            f"{', '.join(map(repr, unknown))}: no parameter of the DAG has that name",
            "; ".join(remedies),
        )


def _remedy(key: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(key.lower(), known, n=1, cutoff=0.5)
    return f"write {nearest[0]!r} for {key!r}" if nearest else f"use some of {', '.join(known)}"
