"""A look at the site once a day: metastore, tables, their stores, Spark's connection, health store.

It changes nothing but that it writes a small file where compactions exchange plans, on each store, and removes it.

The log of its task shows each finding with what was seen, why it matters, and what can safely be done. A problem fails
the task at once; the error is the report in brief, so that a notifier (on_failure_callback) has what to send.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG, Param

from airflow_provider_acid.installed_dags.form import arguments, form
from airflow_provider_acid.operators.doctor import AcidDoctorOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys

PARAMS = {
    **form(("tables", "exclude", "hive_acid_conn_id"), {}),
    "executors": Param(
        False,
        type="boolean",
        title="Ask the executors",
        description="Whether a Spark application of a second asks executors for their packages.",
    ),
}

with DAG(
    dag_id="acid_doctor",
    description="Look at Hive ACID tables and what compacts them",
    schedule=timedelta(days=1),
    max_active_runs=1,
    render_template_as_native_obj=True,
    doc_md=__doc__,
    **arguments(PARAMS),
) as dag:
    AcidDoctorOperator(
        task_id="look",
        tables="{{ params.tables }}",
        exclude="{{ params.exclude }}",
        executors="{{ params.executors }}",
        pre_execute=refuse_unknown_keys,
    )
