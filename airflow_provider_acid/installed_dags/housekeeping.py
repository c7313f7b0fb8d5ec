"""What no compaction does by itself: end claims of dead workers, remove what they left, clean what was forgotten.

The log of the first task shows what is stuck: the oldest open transaction, which holds all cleaning back, the cleaning
that waits longest, partitions whose compactions keep failing, requests that nobody serves, and pairs of results of one
range, whose rows are read twice. With repair_twins that one of such a pair is removed which the other contains.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG, XComArg

from airflow_provider_acid.installed_dags.form import arguments, form
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys

PARAMS = form(
    ("tables", "exclude", "repair_twins", "hive_acid_conn_id"),
    {
        "Times and amounts": (
            "worker_timeout_seconds",
            "forgotten_after_seconds",
            "max_partitions",
            "cleaning_deadline_seconds",
        )
    },
    tables=["*.*"],
    exclude=[],
    max_partitions=1000,
    cleaning_deadline_seconds=1800.0,
)

with DAG(
    dag_id="acid_housekeeping",
    description="Look after compactions of Hive ACID tables",
    schedule=timedelta(hours=1),
    max_active_runs=1,
    render_template_as_native_obj=True,
    doc_md=__doc__,
    **arguments(PARAMS),
) as dag:
    housekeeping = AcidHousekeepingOperator(
        task_id="keep_house",
        tables="{{ params.tables }}",
        exclude="{{ params.exclude }}",
        worker_timeout_seconds="{{ params.worker_timeout_seconds }}",
        forgotten_after_seconds="{{ params.forgotten_after_seconds }}",
        max_partitions="{{ params.max_partitions }}",
        repair_twins="{{ params.repair_twins }}",
        pre_execute=refuse_unknown_keys,
    )
    AcidCleanerOperator(
        task_id="clean_forgotten",
        partitions=XComArg(housekeeping, key="partitions"),
        cleaning_deadline_seconds="{{ params.cleaning_deadline_seconds }}",
        deferrable=True,
    )
