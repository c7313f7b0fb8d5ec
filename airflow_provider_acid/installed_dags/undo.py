"""The newest compaction of one table, or of one partition of it, taken back, because somebody asks for it.

That is possible for `keep_replaced_hours` after it. A dry run shows what would be taken back, or why that is refused.
Keep the table from being compacted again first: `ALTER TABLE … SET TBLPROPERTIES ('no_auto_compaction'='true')`.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG

from airflow_provider_acid.installed_dags.form import arguments, form
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.operators.undo import AcidUndoOperator

PARAMS = form(("database", "table", "partition", "decide_only", "hive_acid_conn_id"), {})

# Templates give text here, so that a table named 2026 stays one.
with DAG(
    dag_id="acid_undo",
    description="Take back the newest compaction of one Hive ACID table or partition",
    schedule=None,
    doc_md=__doc__,
    **arguments(PARAMS),
) as dag:
    AcidUndoOperator(
        task_id="undo",
        database="{{ params.database }}",
        table="{{ params.table }}",
        partition="{{ params.partition }}",
        decide_only="{{ params.decide_only }}",
        pre_execute=refuse_unknown_keys,
    )
