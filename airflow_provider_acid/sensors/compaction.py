"""A sensor that finds partitions due for compaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)

from airflow_provider_acid.acid.candidates import Candidates
from airflow_provider_acid.compaction.initiator import Evaluation, Initiator
from airflow_provider_acid.compaction.selection import TableSelection
from airflow_provider_acid.config import check_interval_seconds, evaluation_settings, health_location
from airflow_provider_acid.health.recording import recording_evaluation
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.parameters import as_boolean, as_integer, as_names
from airflow_provider_acid.signals.stats import initiator_cycle
from airflow_provider_acid.triggers.compaction import DuePartitionsTrigger
from airflow_provider_acid.triggers.wait import TRIGGER_GRACE_SECONDS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

LINES_LOGGED = 50
"""Findings shown in the log of one poke; a sweep over thousands of partitions must not fill it."""


class AcidCompactionSensor(BaseSensorOperator):
    """Waits until partitions are due for compaction and returns them in batches.

    One poke evaluates all tables. The XCom is a list of batches, each a list of small objects with database, table,
    partition, type, reason and request_id, made for ``AcidCompactionOperator.partial(…).expand(partitions=…)``; no
    more of them than Airflow maps over (``[core] max_map_length``).

    The parameters up to ``skip_when_nothing_due`` are templated; numbers, truth values and lists may arrive as text.

    :param tables: patterns of tables, e.g. ``["sales.orders", "web.*"]``.
    :param exclude: patterns of tables to leave out.
    :param hive_acid_conn_id: the metastore's connection.
    :param delta_num_threshold: deltas above which a partition is due; default: ``[hive_acid] delta_num_threshold``.
    :param delta_pct_threshold: share of delta bytes above which it is due; default: ``[hive_acid]`` as well.
    :param candidates: ``all``, or ``written`` to look only at partitions to which the metastore has writes on record
        since they were last cleaned, for which its database must be configured; default: ``[hive_acid] candidates``.
        What ``written`` passes over is compacted later: run ``all`` now and then (docs/performance.md).
    :param override_no_auto_compaction: evaluate tables that are named without wildcards although
        ``no_auto_compaction`` is set.
    :param serve_foreign_requests: hand on requests made by users or Hive's Initiator; default: ``[hive_acid]``.
    :param batch_partitions: partitions in one batch, that is in one Spark application.
    :param max_partitions: most partitions returned by one poke, worst first; the others are left to the next run.
    :param skip_when_nothing_due: skip the task, and what follows, instead of waiting.
    :param mode: of waiting; unlike Airflow's default it occupies no worker between two looks.
    :param poke_interval: time between two looks; default: ``[hive_acid] check_interval``.
    :param deferrable: wait in the triggerer, which evaluates there, instead of by ``mode``; ``timeout`` counts from the
        start of the try, and every wait lasts a whole ``poke_interval``.
    """

    template_fields: Sequence[str] = (
        "tables",
        "exclude",
        "hive_acid_conn_id",
        "delta_num_threshold",
        "delta_pct_threshold",
        "candidates",
        "override_no_auto_compaction",
        "serve_foreign_requests",
        "batch_partitions",
        "max_partitions",
        "skip_when_nothing_due",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"tables": "json", "exclude": "json"}
    ui_color = "#fff3c4"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str,
        exclude: Sequence[str] | str = (),
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        delta_num_threshold: int | str | None = None,
        delta_pct_threshold: float | str | None = None,
        candidates: Candidates | str | None = None,
        override_no_auto_compaction: bool | str = False,
        serve_foreign_requests: bool | str | None = None,
        batch_partitions: int | str = 50,
        max_partitions: int | str = 1000,
        skip_when_nothing_due: bool | str = False,
        mode: str = "reschedule",
        poke_interval: timedelta | float | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        poke_interval = check_interval_seconds() if poke_interval is None else poke_interval
        super().__init__(mode=mode, poke_interval=poke_interval, **kwargs)
        self.tables = tables
        self.exclude = exclude
        self.hive_acid_conn_id = hive_acid_conn_id
        self.delta_num_threshold = delta_num_threshold
        self.delta_pct_threshold = delta_pct_threshold
        self.candidates = candidates
        self.override_no_auto_compaction = override_no_auto_compaction
        self.serve_foreign_requests = serve_foreign_requests
        self.batch_partitions = batch_partitions
        self.max_partitions = max_partitions
        self.skip_when_nothing_due = skip_when_nothing_due
        self.deferrable = deferrable
        self._deadline: float | None = None

    def execute(self, context: Context) -> Any:
        """Wait until something is due; the batches.

        :raises ConfigurationError: a parameter cannot be used.
        :raises AirflowSkipException: nothing is due and the sensor was told not to wait.
        :raises AirflowSensorTimeout: nothing was due until the time was over.
        """
        if self.deferrable:
            self._deadline = time.time() + self.timeout
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, str], deadline: float) -> Any:
        """Evaluate again what the triggerer found due; errors as for :meth:`execute`.

        The event says no more than that something is due: it stays small, and what was due when a worker was not yet
        free is not handed on.
        """
        if event["state"] == "error":
            raise AirflowException(event["message"])
        self._deadline = deadline
        return self.poke(context).xcom_value

    def poke(self, context: Context) -> PokeReturnValue:
        """Evaluate all tables once; errors as for :meth:`execute`."""
        answer = self._evaluate()
        if self._deadline is not None and not answer.is_done:
            self._defer(self._deadline)
        return answer

    def _defer(self, deadline: float) -> None:
        left = deadline - time.time()
        if left <= 0:
            raise AirflowSensorTimeout(f"Nothing was due for compaction within {self.timeout:.0f} s")
        self.defer(
            trigger=DuePartitionsTrigger(
                self.hive_acid_conn_id,
                as_names("tables", self.tables),
                as_names("exclude", self.exclude),
                self._question(),
                deadline,
                self.poke_interval,
            ),
            method_name="execute_complete",
            kwargs={"deadline": deadline},
            timeout=timedelta(seconds=left + TRIGGER_GRACE_SECONDS),
        )

    def _evaluate(self) -> PokeReturnValue:
        selection = TableSelection.of(as_names("tables", self.tables), as_names("exclude", self.exclude))
        most, size = self._number("max_partitions"), self._number("batch_partitions")
        # More batches than Airflow maps over would fail the task after all the work.
        most = min(most, size * conf.getint("core", "max_map_length", fallback=1024))
        skip = as_boolean("skip_when_nothing_due", self.skip_when_nothing_due)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        settings = replace(evaluation_settings(**self._question()), storages=endpoint.storages)
        tags = {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id}
        looks_at_all = settings.candidates is Candidates.ALL
        recording = recording_evaluation(
            health_location(), self.hive_acid_conn_id, endpoint.storages, looks_at_all=looks_at_all
        )
        with initiator_cycle(tags) as measured, endpoint.open() as client, recording as observer:
            queue = endpoint.open_queue(client)
            evaluation = Initiator(client, queue, settings, endpoint.write_records, observer).evaluate(selection)
            measured(evaluation)
        self._report(evaluation, most)
        due = [item.to_json() for item in evaluation.due[:most]]
        if not due and skip:
            raise AirflowSkipException("No partition is due for compaction")
        batches = [due[start : start + size] for start in range(0, len(due), size)]
        return PokeReturnValue(is_done=bool(due), xcom_value=batches)

    def _number(self, name: str) -> int:
        return as_integer(name, getattr(self, name))

    def _question(self) -> dict[str, Any]:
        """What makes a partition due, as plain values: for an evaluation here, and for those in the triggerer."""
        candidates = self.candidates
        return {
            "delta_num_threshold": self.delta_num_threshold,
            "delta_pct_threshold": self.delta_pct_threshold,
            "candidates": candidates.value if isinstance(candidates, Candidates) else candidates,
            "override_no_auto_compaction": self.override_no_auto_compaction,
            "serve_foreign_requests": self.serve_foreign_requests,
        }

    def _report(self, evaluation: Evaluation, most: int) -> None:
        self.log.info(
            "%d partitions looked at: %d due, %d tables or partitions skipped, %d requests of others not served",
            len(evaluation.evaluated),
            len(evaluation.due),
            len(evaluation.skipped),
            len(evaluation.foreign),
        )
        if len(evaluation.due) > most:
            self.log.info(
                "%d of them are left to the next run (max_partitions, max_map_length)", len(evaluation.due) - most
            )
        lines = [
            *((logging.WARNING, _describe_foreign(row)) for row in evaluation.foreign),
            *((logging.INFO, f"due: {item.entity}: {item.reason}") for item in evaluation.due[:most]),
            *((logging.INFO, f"skipped: {reason}") for reason in evaluation.skipped),
        ]
        for level, line in lines[:LINES_LOGGED]:
            self.log.log(level, "%s", line)
        if len(lines) > LINES_LOGGED:
            self.log.info("... and %d more", len(lines) - LINES_LOGGED)


def _describe_foreign(row: CompactionRow) -> str:
    return (
        f"request {row.id} for {row.entity} ({row.type}) was made by somebody else and is not served; "
        "set serve_foreign_requests to have it carried out"
    )
