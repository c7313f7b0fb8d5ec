"""Scheduled compaction of Hive ACID tables: find what is due, compact it with Spark, clean up behind it.

Every setting is a parameter of the DAG, so that the trigger form of Airflow's UI can override it for one run. What the
form starts with, and what scheduled runs do, comes from the section [hive_acid] of Airflow's configuration.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_acid.config import schedule
from airflow_provider_acid.installed_dags.form import arguments, form
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

PARAMS = form(
    {
        "What": ("tables", "exclude", "fail_on_unmatched_patterns", "decide_only"),
        "What is due": ("delta_num_threshold", "delta_pct_threshold", "candidates", "override_no_auto_compaction"),
        "Budget of a run": ("time_window", "time_zone", "max_partitions", "max_gib"),
        "How": (
            "batch_partitions",
            "minor_lock_wait_seconds",
            "minor_lock_timeout_action",
            "cleaning_deadline_seconds",
            "hive_acid_conn_id",
        ),
    }
)

with DAG(
    dag_id="acid_compaction",
    description="Compact Hive ACID tables with Spark",
    schedule=schedule(),
    max_active_runs=1,
    render_template_as_native_obj=True,
    doc_md=__doc__,
    **arguments(PARAMS, "time_window", "time_zone"),
) as dag:
    due = AcidCompactionSensor(
        task_id="find_due_partitions",
        tables="{{ params.tables }}",
        exclude="{{ params.exclude }}",
        delta_num_threshold="{{ params.delta_num_threshold }}",
        delta_pct_threshold="{{ params.delta_pct_threshold }}",
        candidates="{{ params.candidates }}",
        override_no_auto_compaction="{{ params.override_no_auto_compaction }}",
        max_partitions="{{ params.max_partitions }}",
        max_gib="{{ params.max_gib }}",
        decide_only="{{ params.decide_only }}",
        fail_on_unmatched_patterns="{{ params.fail_on_unmatched_patterns }}",
        batch_partitions="{{ params.batch_partitions }}",
        skip_when_nothing_due=True,
        pre_execute=refuse_unknown_keys,
    )
    compaction = AcidCompactionOperator.partial(
        task_id="compact",
        minor_lock_wait_seconds="{{ params.minor_lock_wait_seconds }}",
        minor_lock_timeout_action="{{ params.minor_lock_timeout_action }}",
    ).expand(partitions=due.output)
    # Mapped over what was due, not over what was compacted: a failed batch must not keep the others from being cleaned.
    cleaning = AcidCleanerOperator.partial(
        task_id="clean",
        trigger_rule=TriggerRule.ALL_DONE,
        cleaning_deadline_seconds="{{ params.cleaning_deadline_seconds }}",
        deferrable=True,
    ).expand(partitions=due.output)
    # A run is judged by its last tasks. The cleaning succeeds also after a failed compaction, so it cannot be the last.
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    compaction >> cleaning
    [compaction, cleaning] >> done
