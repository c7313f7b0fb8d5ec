"""One table, or one partition of it, compacted now, because somebody asks for it.

A dry run shows in the log of the task `plan` what would be compacted, and why or why not, and changes nothing.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_acid.installed_dags.form import arguments, form, spark_of_the_form
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator
from airflow_provider_acid.run_options import SPARK_SIZES

PARAMS = form(
    ("database", "table", "partition", "type", "decide_only", "hive_acid_conn_id"),
    {"Spark": SPARK_SIZES},
)

# Templates give text here, so that a table named 2026 stays one.
with DAG(
    dag_id="acid_compact_table",
    description="Compact one Hive ACID table or partition",
    schedule=None,
    doc_md=__doc__,
    **arguments(PARAMS),
) as dag:
    plan = AcidTablePlanOperator(
        task_id="plan",
        database="{{ params.database }}",
        table="{{ params.table }}",
        partition="{{ params.partition }}",
        type="{{ params.type }}",
        decide_only="{{ params.decide_only }}",
        pre_execute=refuse_unknown_keys,
    )
    compaction = AcidCompactionOperator.partial(task_id="compact", **spark_of_the_form()).expand(partitions=plan.output)
    # As in acid_compaction: a failed batch keeps no other from being cleaned, and fails the run.
    cleaning = AcidCleanerOperator.partial(
        task_id="clean",
        trigger_rule=TriggerRule.ALL_DONE,
        deferrable=True,
    ).expand(partitions=plan.output)
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    compaction >> cleaning
    [compaction, cleaning] >> done
