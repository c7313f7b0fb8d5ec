"""Scheduled compaction of Hive ACID tables: find what is due, compact it with Spark, clean up behind it.

Every setting is a parameter of the DAG, so that the trigger form of Airflow's UI can override it for one run. What the
form starts with, and what scheduled runs do, comes from the section [hive_acid] of Airflow's configuration.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.common.compat.sdk import DAG, Param, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_acid.config import (
    MOST_PARTITIONS,
    configured_settings,
    fails_on_unmatched_patterns,
    sweep_options,
    task_retries,
)
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

WHAT, WHEN, BUDGET, HOW = "What", "What is due", "Budget of a run", "How"
"""Sections of the trigger form."""

SETTINGS, SWEEP = configured_settings(), sweep_options()

PARAMS = {
    "tables": Param(
        list(SWEEP.tables),
        type="array",
        items={"type": "string"},
        minItems=1,
        title="Tables",
        description="Patterns of tables, one per line, e.g. sales.orders or web.*",
        section=WHAT,
    ),
    "exclude": Param(
        list(SWEEP.exclude),
        type="array",
        items={"type": "string"},
        title="Tables to leave out",
        description="Patterns of tables that are left out although they are included",
        section=WHAT,
    ),
    "fail_on_unmatched_patterns": Param(
        fails_on_unmatched_patterns(),
        type="boolean",
        title="Fail on unmatched patterns",
        description="Fail where a pattern matches no table, or leaves none out, instead of a warning in the log",
        section=WHAT,
    ),
    "dry_run": Param(
        False,
        type="boolean",
        title="Dry run",
        description="Only show the decisions in the log of the task find_due_partitions; nothing is changed",
        section=WHAT,
    ),
    "delta_num_threshold": Param(
        SETTINGS.thresholds.delta_count,
        type="integer",
        minimum=0,
        title="Deltas",
        description="Compact partitions with more deltas than this",
        section=WHEN,
    ),
    "delta_pct_threshold": Param(
        SETTINGS.thresholds.delta_size_ratio,
        type="number",
        minimum=0,
        title="Delta share",
        description="Compact partitions whose deltas have more than this share of the base's bytes",
        section=WHEN,
    ),
    "candidates": Param(
        SETTINGS.candidates.value,
        type="string",
        enum=["all", "written"],
        title="Partitions looked at",
        description="All of the tables, or only those to which the metastore's database has writes on record since "
        "they were last cleaned; written needs that database, and what it passes over is compacted later",
        section=WHEN,
    ),
    "override_no_auto_compaction": Param(
        False,
        type="boolean",
        title="Override no_auto_compaction",
        description="Evaluate tables that are named without wildcards although no_auto_compaction is set",
        section=WHEN,
    ),
    "time_window": Param(
        SWEEP.time_window,
        type=["string", "null"],
        pattern=r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$",
        title="Time window",
        description="Hours in which compactions begin, e.g. 22:00-06:00; what is in work at the end is finished; "
        "empty: at any time",
        section=BUDGET,
    ),
    "time_zone": Param(
        SWEEP.time_zone,
        type="string",
        minLength=1,
        title="Time zone",
        description="Of the time window, e.g. Europe/Berlin",
        section=BUDGET,
    ),
    "max_partitions": Param(
        SWEEP.max_partitions,
        type="integer",
        minimum=1,
        maximum=MOST_PARTITIONS,
        title="Most partitions",
        description="Partitions of one run, those first whose deltas cost readers most; the next run takes the others",
        section=BUDGET,
    ),
    "max_gib": Param(
        SWEEP.max_gib,
        type=["number", "null"],
        exclusiveMinimum=0,
        title="Most data (GiB)",
        description="Input of all compactions of one run; the first partition is taken although it has more; empty: no "
        "bound",
        section=BUDGET,
    ),
    "batch_partitions": Param(
        SWEEP.batch_partitions,
        type="integer",
        minimum=1,
        maximum=MOST_PARTITIONS,
        title="Batch",
        description="Partitions in one Spark application",
        section=HOW,
    ),
    "minor_lock_wait_seconds": Param(
        SETTINGS.publish_lock_wait_seconds,
        type="number",
        minimum=0,
        title="Wait for the lock (seconds)",
        description="Longest wait for the EXCLUSIVE lock under which a minor compaction of inserts and deletes is "
        "published; new queries wait behind it",
        section=HOW,
    ),
    "minor_lock_timeout_action": Param(
        SETTINGS.publish_lock_timeout_action.value,
        type="string",
        enum=["major", "refuse"],
        title="Without the lock",
        description="What follows when that lock is not granted in time: a major compaction, or a failed task",
        section=HOW,
    ),
    "cleaning_deadline_hours": Param(
        SWEEP.cleaning_deadline_hours,
        type="number",
        minimum=0,
        title="Wait for readers (hours)",
        description="Longest wait for readers before directories are left to the next run",
        section=HOW,
    ),
    "hive_acid_conn_id": Param(
        "hive_acid_default",
        type="string",
        minLength=1,
        title="Connection",
        description="Airflow connection to the Hive metastore",
        section=HOW,
    ),
}

with DAG(
    dag_id="acid_compaction",
    description="Compact Hive ACID tables with Spark",
    schedule=SWEEP.schedule,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    render_template_as_native_obj=True,
    default_args={"retries": task_retries(), "retry_delay": timedelta(minutes=5)},
    tags=["hive", "acid", "compaction"],
    doc_md=__doc__,
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
        max_bytes="{{ (params.max_gib * 2 ** 30) | int if params.max_gib else none }}",
        time_window="{{ params.time_window }}",
        time_zone="{{ params.time_zone }}",
        decide_only="{{ params.dry_run }}",
        fail_on_unmatched_patterns="{{ params.fail_on_unmatched_patterns }}",
        batch_partitions="{{ params.batch_partitions }}",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        skip_when_nothing_due=True,
        pre_execute=refuse_unknown_keys,
    )
    compaction = AcidCompactionOperator.partial(
        task_id="compact",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        time_window="{{ params.time_window }}",
        time_zone="{{ params.time_zone }}",
        minor_lock_wait_seconds="{{ params.minor_lock_wait_seconds }}",
        minor_lock_timeout_action="{{ params.minor_lock_timeout_action }}",
    ).expand(partitions=due.output)
    # Mapped over what was due, not over what was compacted: a failed batch must not keep the others from being cleaned.
    cleaning = AcidCleanerOperator.partial(
        task_id="clean",
        hive_acid_conn_id="{{ params.hive_acid_conn_id }}",
        trigger_rule=TriggerRule.ALL_DONE,
        deadline_seconds="{{ params.cleaning_deadline_hours * 3600 }}",
        deferrable=True,
    ).expand(partitions=due.output)
    # A run is judged by its last tasks. The cleaning succeeds also after a failed compaction, so it cannot be the last.
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    compaction >> cleaning
    [compaction, cleaning] >> done
