"""The conf of a DAG run: keys that no parameter has would change nothing, and nobody would know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.parameters import refuse_unknown

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
    given = {*(context["dag_run"].conf or {})} - _OF_AIRFLOW
    refuse_unknown(f"conf of the run of {dag.dag_id}", given, sorted(dag.params))
