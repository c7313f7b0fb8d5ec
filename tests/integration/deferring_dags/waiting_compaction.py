"""Sensor and cleaner that wait in the triggerer, however long; a task of the TaskFlow kind in between."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, Param, task

from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

with DAG(
    "waiting_compaction",
    schedule=None,
    params={"tables": Param([], type="array")},
    render_template_as_native_obj=True,
):
    due = AcidCompactionSensor(
        task_id="due",
        tables="{{ params.tables }}",
        delta_num_threshold=1,
        poke_interval=1,
        timeout=600,
        deferrable=True,
    )
    compact = AcidCompactionOperator.partial(task_id="compact").expand(partitions=due.output)

    @task
    def compacted(outcomes: list[list[dict[str, object]]]) -> list[dict[str, object]]:
        """The partitions of all batches, for one cleaner."""
        return [outcome for batch in outcomes for outcome in batch]

    AcidCleanerOperator(
        task_id="clean",
        partitions=compacted(compact.output),
        poll_seconds=1,
        cleaning_deadline_seconds=600,
        deferrable=True,
    )
