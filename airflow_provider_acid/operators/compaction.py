"""An operator that compacts a batch of partitions with one Spark application."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run.application import (
    DEFAULT_CONF,
    application_arguments,
    check_deploy_mode,
    check_program,
    watch_application,
    write_key_file,
    write_package_archive,
)
from airflow_provider_acid.compaction.run.run_directory import IDLE_TIMEOUT_SECONDS, RunDirectory
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.connected_batch import (
    DEFAULT_MAX_ACTIVE_PARTITIONS,
    MAX_SMALL_PARTITIONS,
    connected_batch,
)
from airflow_provider_acid.hooks.health import record_task_history, renew_figures
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.hooks.spark import conf_of_kubernetes, spark_connection
from airflow_provider_acid.links.compaction import PAGE_LINKS, SparkUiLink
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.operators.batch_name import NamedByPartitions, application_name
from airflow_provider_acid.operators.configured_spark import ConfiguredSparkOperator
from airflow_provider_acid.operators.literals import refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place
from airflow_provider_acid.options import parameters_of
from airflow_provider_acid.parameters import as_due_partitions, as_integer, as_number, as_spark_conf, as_time_window
from airflow_provider_acid.shipped_files import shipped_file
from airflow_provider_acid.signals.asset_events import fill_asset_events
from airflow_provider_acid.signals.lineage import lineage_of
from airflow_provider_acid.signals.measurements import of_outcomes
from airflow_provider_acid.signals.stats import send

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, XComArg
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_acid.operators.submission import Submission

FAILURES_NAMED = 5
"""Failed partitions that a task's error names; the log has all."""

_LOOKED_AT = (OutcomeState.COMPACTED, OutcomeState.NOTHING_TO_MERGE)
"""Whose partitions are other than what the evaluation saw that found them due."""

STOP_SECONDS = 60.0
"""How long a killed task waits for its partitions to be given back."""


class AcidCompactionOperator(NamedByPartitions, ConfiguredSparkOperator):
    """Compacts partitions of Hive ACID tables, as Hive's Worker does, with one Spark application for all of them.

    Each partition is claimed in the metastore's queue, protected by a transaction with heartbeats and a lock,
    merged by Spark, verified, and published by one rename, or in several steps under an EXCLUSIVE lock, independent of
    the others.

    :param partitions: what to compact: objects with ``database``, ``table``, and ``partition`` where the table has
        partitions, as the sensor returns them. (templated)
    :param hive_acid_conn_id: the metastore's connection. (templated)
    :param conn_id: the Spark connection; default: ``[hive_acid] spark_conn_id``.
    :param max_active_partitions: partitions in work at the same time; default 4, or twice the task slots that
        ``num_executors`` and ``executor_cores`` or ``total_executor_cores`` ask for; by default up to 64 while
        what is being merged is less than 1 GiB in all. (templated)
    :param run_directory: URI of a directory that Airflow and the Spark driver reach, for plans and results; default:
        in the user's home directory on the first table's store (of S3, in the bucket). (templated)
    :param idle_timeout_seconds: the application ends itself after so long without a sign of life of this task.
        (templated)
    :param ship_package: send this package's pure part along with the application, so that executors need only
        pyarrow, pyorc and protobuf.

    The others are options (docs/options.md), all templated, which default to ``[hive_acid]``. Partitions are begun in
    the hours of ``time_window`` alone; what is in work at its end is finished. All else is a parameter of
    ``SparkSubmitOperator``; ``application``, ``application_args`` and ``name`` are set here, and ``durable`` is always
    off.
    """

    template_fields: Sequence[str] = (
        *ConfiguredSparkOperator.template_fields,
        *("partitions", "max_active_partitions", "run_directory", "idle_timeout_seconds"),
        *(name for name in parameters_of(Place.COMPACTION) if name not in ConfiguredSparkOperator.template_fields),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"partitions": "json"}
    operator_extra_links = (SparkUiLink(), *PAGE_LINKS)
    ui_color = "#ffe082"

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | XComArg | str,
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        max_active_partitions: int | str | None = None,
        run_directory: str | None = None,
        ship_package: bool = True,
        rewrite_single_delta: bool | str | None = None,
        max_num_delta: int | str | None = None,
        minor_publish_lock: bool | str | None = None,
        minor_lock_wait_seconds: float | str | None = None,
        minor_lock_timeout_action: str | None = None,
        readers_honour_visibility: bool | str | None = None,
        time_window: str | None = None,
        time_zone: str = "UTC",
        idle_timeout_seconds: float | str = IDLE_TIMEOUT_SECONDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.hive_acid_conn_id = hive_acid_conn_id
        self.max_active_partitions = max_active_partitions
        self.run_directory = run_directory
        self.ship_package = ship_package
        self.rewrite_single_delta = rewrite_single_delta
        self.max_num_delta = max_num_delta
        self.minor_publish_lock = minor_publish_lock
        self.minor_lock_wait_seconds = minor_lock_wait_seconds
        self.minor_lock_timeout_action = minor_lock_timeout_action
        self.readers_honour_visibility = readers_honour_visibility
        self.time_window = time_window
        self.time_zone = time_zone
        self.idle_timeout_seconds = idle_timeout_seconds
        self._batch: CompactionBatch | None = None
        self._outcomes: tuple[Outcome, ...] = ()
        self._submission: Submission | None = None
        refuse_wrong_literals(
            self,
            partitions=as_due_partitions,
            max_active_partitions=as_integer,
            idle_timeout_seconds=as_number,
            conf=as_spark_conf,
        )

    @failing_at_once()
    def execute(self, context: Context) -> Any:
        """Compact all partitions; the outcomes as a list of small objects.

        :raises AirflowFailException: trying again would change nothing: a parameter or a connection cannot be used,
            Spark cannot be started here or has no such deploy mode; then no partition was claimed. Or partitions were
            refused, all that were left where YARN knows no such queue.
        :raises AirflowException: partitions failed.
        """
        self.take_settings()
        items = as_due_partitions("partitions", self.partitions)
        if not items:
            return []
        self._check_queue(items)
        for link in PAGE_LINKS:
            link.push_page_of(context, [item.entity for item in items], self.hive_acid_conn_id)
        batch = self._make_batch(items, task_identity(context))
        self._check_spark()
        self._batch = batch
        self._batch.start()
        spark_error: Exception | None = None
        try:
            run = self._batch.wait_until_planned()
            if run is not None:
                spark_error = self._submit(context, items, run)
        except BaseException:
            # Airflow's time-out strikes anywhere. The application goes first: it must not write into what is removed.
            self._stop()
            raise
        finally:
            self._batch.application_ended(spark_error if isinstance(spark_error, ConfigurationError) else None)
            self._outcomes = outcomes = self._batch.join()
            send(of_outcomes(outcomes), {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id})
        record_task_history(self.hive_acid_conn_id, context, lambda make: make.of_outcomes(items, outcomes))
        renew_figures(self.hive_acid_conn_id, [outcome.entity for outcome in outcomes if outcome.state in _LOOKED_AT])
        concluded = self._conclude(outcomes, spark_error)
        fill_asset_events(context, self.outlets, outcomes, self._metastore_address)
        return concluded

    def _check_queue(self, items: Sequence[DuePartition]) -> None:
        queues = sorted({item.job_queue or "none" for item in items})
        if len(queues) > 1 and self.yarn_queue is None:
            raise ConfigurationError(
                "partitions",
                f"are of tables that name different queues of the cluster ({', '.join(queues)})",
                "give those of each queue to a task of their own, as the sensor's batches do, or name yarn_queue",
            )

    def _check_spark(self) -> None:
        connection = spark_connection(self.conn_id, self.submission()._get_hook)
        check_deploy_mode(connection["master"], connection["deploy_mode"])
        check_program(connection["spark_binary"], self.env_vars)

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any] | None:
        """The tables that were compacted; called by Airflow's OpenLineage provider where it is installed."""
        return lineage_of(self._outcomes, self._metastore_address()) if self._outcomes else None

    def on_kill(self) -> None:
        """Stop the application and give every claim, transaction and lock back."""
        self._stop()
        if self._batch is not None:
            self._batch.wait(STOP_SECONDS)

    def _stop(self) -> None:
        # Told first, done beside: Airflow gives a killed task only a few seconds.
        if self._batch is not None:
            self._batch.stop()
        if self._submission is None or not self._submission.is_begun:
            return
        try:
            self._submission.on_kill()
        except Exception as error:  # the program yarn is not there, or an API does not answer
            self.log.warning(
                "The application could not be ended (%s: %s); it ends itself, for its run directory goes",
                type(error).__name__,
                error,
            )

    def _submit(self, context: Context, items: Sequence[DuePartition], run: RunDirectory) -> Exception | None:
        """Run the application to its end; its error is returned, because only the outcomes tell what it is worth."""
        queue = self.yarn_queue or items[0].job_queue or option("job_queue")
        connection = spark_connection(self.conn_id, self.submission(yarn_queue=queue)._get_hook)
        with tempfile.TemporaryDirectory(prefix="airflow-acid-") as directory:
            key_file = write_key_file(Path(directory), run.key)
            package = write_package_archive(Path(directory)) if self.ship_package else None
            self._submission = self.submission(
                application=str(shipped_file("spark_jobs/compact.py")),
                application_args=application_arguments(run, key_file),
                name=application_name([item.entity for item in items]),
                yarn_queue=queue,
                conf={**DEFAULT_CONF, **conf_of_kubernetes(connection["master"]), **(self.conf or {})},
                py_files=_and(self.py_files, package),
                # The key goes along where the driver is elsewhere.
                files=_and(self.files, key_file if connection["deploy_mode"] == "cluster" else None),
            )
            with watch_application(run.storages, run.location, lambda url: SparkUiLink().push(context, url)):
                try:
                    self._submission.run(context)
                except Exception as error:  # any of client, standalone, YARN or Kubernetes mode
                    return self._submission.refusals[0] if self._submission.refusals else error
        return None

    def _make_batch(self, items: Sequence[DuePartition], identity: str) -> CompactionBatch:
        hours = as_time_window("time_window", self.time_window, option("time_zone", self.time_zone))
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        settings = replace(self._settings(), storages=endpoint.storages)
        return connected_batch(
            endpoint,
            settings,
            items,
            identity,
            max_active=self._max_active(),
            max_small=MAX_SMALL_PARTITIONS if self.max_active_partitions is None else 0,
            idle_timeout_seconds=as_number("idle_timeout_seconds", self.idle_timeout_seconds),
            window_end=None if hours is None else WindowEnd.of(hours),
        )

    def _metastore_address(self) -> MetastoreAddress:
        return AcidMetastoreHook(self.hive_acid_conn_id).endpoint().addresses[0]

    def _settings(self) -> CompactionSettings:
        given = {name: getattr(self, name) for name in parameters_of(Place.COMPACTION)}
        return replace(configured_settings(**given), run_directory=self.run_directory)

    def _max_active(self) -> int:
        if self.max_active_partitions is not None:
            return as_integer("max_active_partitions", self.max_active_partitions)
        return 2 * self.task_slots or DEFAULT_MAX_ACTIVE_PARTITIONS

    def _conclude(self, outcomes: Sequence[Outcome], spark_error: Exception | None) -> list[dict[str, object]]:
        failures = [outcome for outcome in outcomes if outcome.state.is_failure]
        if failures:
            message = f"{len(failures)} of {len(outcomes)} partitions failed: " + "; ".join(
                f"{outcome.entity}: {outcome.message}" for outcome in failures[:FAILURES_NAMED]
            )
            if len(failures) > FAILURES_NAMED:
                message += f"; and {len(failures) - FAILURES_NAMED} more, see the log"
            if all(outcome.state is OutcomeState.REFUSED for outcome in failures):
                raise AirflowFailException(message)
            if spark_error is not None:
                message += f" (Spark: {spark_error})"
            raise AirflowException(message) from spark_error
        if spark_error is not None:
            self.log.warning("All partitions are done, yet the Spark application reported: %s", spark_error)
        return [outcome.to_json() for outcome in outcomes]


def _and(users_files: str | None, file: Path | None) -> str | None:
    return users_files if file is None else ",".join(filter(None, (users_files, str(file))))


def task_identity(context: Context) -> str:
    """What stays the same when the same task is tried again: DAG, run, the run's start, task and map index.

    By the names alone, two Airflows with the same DAG and schedule would be one, and each would end the other's living
    work. The price: what was killed in a run that had ended when it was cleared is not taken for the task's own.
    """
    ti, dag_run = context.get("ti"), context.get("dag_run")
    if ti is None:
        return f"no-task/{uuid4().hex}"
    started = dag_run.start_date.isoformat() if dag_run is not None and dag_run.start_date else ""
    return f"{ti.dag_id}/{ti.run_id}/{started}/{ti.task_id}/{ti.map_index}"
