"""Scheduled compaction of Hive ACID tables: find what is due, compact it with Spark, clean up behind it.

Every setting is a parameter of the DAG, so that the trigger form of Airflow's UI can override it for one run. What the
form starts with, and what scheduled runs do, is what the DAG file says, and else the section [hive_acid] of Airflow's
configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow.providers.common.compat.sdk import DAG, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_acid.config import checked_schedule, schedule
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.installed_dags.form import arguments, form, spark_of_the_form
from airflow_provider_acid.installed_dags.spark_arguments import SPARK_ARGUMENTS, spark_arguments
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.run_conf import refuse_unknown_keys
from airflow_provider_acid.options import OPTIONS
from airflow_provider_acid.parameters import refuse_unknown
from airflow_provider_acid.run_options import SPARK_SIZES
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

CONFIGURED = object()
"""In place of a schedule: that of ``[hive_acid]``."""

_FIRST = ("tables", "exclude", "decide_only", "fail_on_unmatched_patterns", "hive_acid_conn_id")
_SECTIONS = {
    "What is due": ("delta_num_threshold", "delta_pct_threshold", "candidates", "override_no_auto_compaction"),
    "Time and budget": ("time_window", "time_zone", "max_partitions", "max_gib"),
    "Spark": (*SPARK_SIZES, "batch_partitions"),
    "Locks and cleaning": ("minor_lock_wait_seconds", "minor_lock_timeout_action", "cleaning_deadline_seconds"),
}
_SETTINGS = sorted({*_FIRST, *(name for names in _SECTIONS.values() for name in names)} - {*SPARK_SIZES})


def acid_compaction_dag(
    dag_id: str,
    *,
    schedule: object = CONFIGURED,
    spark: Mapping[str, object] | None = None,
    tags: Sequence[str] = (),
    default_args: Mapping[str, object] | None = None,
    **settings: object,
) -> DAG:
    """A DAG that compacts what is due in some tables; several of them work beside each other.

    :param schedule: a cron expression in UTC, or anything else that Airflow's DAGs take; None for only by hand;
        default: ``[hive_acid] schedule``.
    :param spark: arguments of Spark's operator by their names there, e.g. ``conn_id``, ``num_executors`` or ``conf``,
        besides ``max_active_partitions``, ``run_directory``, ``idle_timeout_seconds`` and ``ship_package`` of
        :class:`~airflow_provider_acid.operators.compaction.AcidCompactionOperator`. Its ``conf`` is put over that of
        ``[hive_acid]``, key by key.
    :param tags: besides those that all these DAGs have.
    :param default_args: of all its tasks, e.g. ``pool``, ``owner``, ``retries`` or ``on_failure_callback``.
    :param settings: parameters of the DAG by name (docs/dags.md), with which its form starts; default: as
        ``[hive_acid]`` says.
    :raises ConfigurationError: a name or a value cannot be used: Airflow shows it as an import error of the DAG file.
    """
    sizes, submission = spark_arguments(dag_id, spark or {})
    params = form(_FIRST, _SECTIONS, **_checked(dag_id, settings), **sizes)
    for name in params.keys() & (default_args or {}).keys():
        raise ConfigurationError(
            f"default_args of {dag_id}",
            f"have {name!r}, a field of the form",
            f"give {name} to acid_compaction_dag itself",
        )
    with DAG(
        dag_id=dag_id,
        description="Compact Hive ACID tables with Spark",
        schedule=_schedule(dag_id, schedule),
        max_active_runs=1,
        render_template_as_native_obj=True,
        doc_md=__doc__,
        **arguments(params, "time_window", "time_zone", tags=tags, default_args=default_args or {}),
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
            **spark_of_the_form(),
            **submission,
        ).expand(partitions=due.output)
        # Mapped over what was due, not over what was compacted: a failed batch must not keep the others from being
        # cleaned.
        cleaning = AcidCleanerOperator.partial(
            task_id="clean",
            trigger_rule=TriggerRule.ALL_DONE,
            cleaning_deadline_seconds="{{ params.cleaning_deadline_seconds }}",
            deferrable=True,
        ).expand(partitions=due.output)
        # A run is judged by its last tasks. The cleaning succeeds also after a failed compaction, so it cannot be the
        # last.
        done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
        compaction >> cleaning
        [compaction, cleaning] >> done
    return dag


def _checked(dag_id: str, settings: Mapping[str, object]) -> dict[str, object]:
    subject = f"acid_compaction_dag({dag_id!r})"
    of_spark = sorted(settings.keys() & {*SPARK_ARGUMENTS})
    if of_spark:
        raise ConfigurationError(
            subject, f"{', '.join(map(repr, of_spark))}: arguments of Spark's operator", "give them in spark={…}"
        )
    refuse_unknown(subject, settings, [*_SETTINGS, "schedule", "spark", "tags", "default_args"])
    return {name: OPTIONS[name].kind.parse(f"{name} of {dag_id}", value) for name, value in settings.items()}


def _schedule(dag_id: str, given: object) -> object:
    if given is CONFIGURED:
        return schedule()
    return checked_schedule(f"schedule of {dag_id}", given) if isinstance(given, str) else given
