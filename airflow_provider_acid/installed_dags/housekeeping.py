"""What no compaction does by itself: end claims of dead workers, remove what they left, clean what was forgotten.

The log of the first task shows what is stuck: the oldest open transaction, which holds all cleaning back, the cleaning
that waits longest, partitions whose compactions keep failing, and requests that nobody serves.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.common.compat.sdk import DAG, Param, XComArg

from airflow_provider_acid.config import configured_settings, task_retries
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys

PARAMS = {
    "tables": Param(
        ["*.*"],
        type="array",
        items={"type": "string"},
        minItems=1,
        title="Tables",
        description="Patterns of tables, one per line, e.g. sales.orders or web.*",
        section="What",
    ),
    "exclude": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Tables to leave out",
        description="Patterns of tables that are left out although they are included",
        section="What",
    ),
    "worker_timeout_hours": Param(
        configured_settings().worker_timeout_seconds / 3600,
        type="number",
        minimum=0,
        title="Silent claims (hours)",
        description="Claims that are silent for longer, and whose transaction is dead, are ended",
        section="How",
    ),
    "forgotten_after_hours": Param(
        6,
        type="number",
        minimum=0,
        title="Forgotten cleanings (hours)",
        description="Finished compactions that still wait to be cleaned after so long are cleaned here",
        section="How",
    ),
    "max_partitions": Param(
        1000,
        type="integer",
        minimum=1,
        title="Most partitions",
        description="Partitions that one run cleans at most; the others are left to the next run",
        section="How",
    ),
    "cleaning_deadline_hours": Param(
        0.5,
        type="number",
        minimum=0,
        title="Wait for readers (hours)",
        description="Longest wait for readers before directories are left to the next run",
        section="How",
    ),
    "hive_acid_conn_id": Param(
        "hive_acid_default",
        type="string",
        minLength=1,
        title="Connection",
        description="Airflow connection to the Hive metastore",
        section="How",
    ),
}

with DAG(
    dag_id="acid_housekeeping",
    description="Look after compactions of Hive ACID tables",
    schedule=timedelta(hours=1),
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    render_template_as_native_obj=True,
    default_args={"retries": task_retries(), "retry_delay": timedelta(minutes=5)},
    tags=["hive", "acid", "compaction"],
    doc_md=__doc__,
) as dag:
    housekeeping = AcidHousekeepingOperator(
        task_id="keep_house",
        tables="{{ params.tables }}",
        exclude="{{ params.exclude }}",
        worker_timeout_seconds="{{ params.worker_timeout_hours * 3600 }}",
        forgotten_after_seconds="{{ params.forgotten_after_hours * 3600 }}",
        max_partitions="{{ params.max_partitions }}",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        pre_execute=refuse_unknown_keys,
    )
    AcidCleanerOperator(
        task_id="clean_forgotten",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        partitions=XComArg(housekeeping, key="partitions"),
        deadline_seconds="{{ params.cleaning_deadline_hours * 3600 }}",
        deferrable=True,
    )
