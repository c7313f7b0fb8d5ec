"""One table, or one partition of it, compacted now, because somebody asks for it.

A dry run shows in the log of the task `plan` what would be compacted, and why or why not, and changes nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.common.compat.sdk import DAG, Param, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_acid.config import task_retries
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator

PARAMS = {
    "database": Param(
        "default",
        type="string",
        minLength=1,
        title="Database",
        description="The table's database",
        section="What",
    ),
    "table": Param(
        type="string",
        minLength=1,
        title="Table",
        description="The table's name, without the database",
        section="What",
    ),
    "partition": Param(
        None,
        type=["string", "null"],
        title="Partition",
        description="One partition as SHOW PARTITIONS spells it, e.g. ds=2026-01-01/region=eu; empty for all "
        "partitions, or for a table that has none",
        section="What",
    ),
    "type": Param(
        "auto",
        type="string",
        enum=["auto", "minor", "major"],
        title="Type",
        description="auto: by the thresholds; minor or major: so, whatever the thresholds say",
        section="How",
    ),
    "dry_run": Param(
        False,
        type="boolean",
        title="Dry run",
        description="Only show the decisions in the log of the task plan; nothing is changed",
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

# Templates give text here, so that a table named 2026 stays one.
with DAG(
    dag_id="acid_compact_table",
    description="Compact one Hive ACID table or partition",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    params=PARAMS,
    default_args={"retries": task_retries(), "retry_delay": timedelta(minutes=5)},
    tags=["hive", "acid", "compaction"],
    doc_md=__doc__,
) as dag:
    plan = AcidTablePlanOperator(
        task_id="plan",
        database="{{ params.database }}",
        table="{{ params.table }}",
        partition="{{ params.partition }}",
        type="{{ params.type }}",
        decide_only="{{ params.dry_run }}",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        pre_execute=refuse_unknown_keys,
    )
    compaction = AcidCompactionOperator.partial(
        task_id="compact",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
    ).expand(partitions=plan.output)
    # As in acid_compaction: a failed batch keeps no other from being cleaned, and fails the run.
    cleaning = AcidCleanerOperator.partial(
        task_id="clean",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        trigger_rule=TriggerRule.ALL_DONE,
        deferrable=True,
    ).expand(partitions=plan.output)
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    compaction >> cleaning
    [compaction, cleaning] >> done
