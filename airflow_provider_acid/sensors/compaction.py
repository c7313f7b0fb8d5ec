"""A sensor that finds partitions due for compaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import (
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.decision_report import RunShare
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.config import (
    check_interval_seconds,
    evaluation_settings,
    fails_on_unmatched_patterns,
    health_location,
)
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.recording import recording_evaluation
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.parameters import (
    as_boolean,
    as_integer,
    as_names,
    as_optional_integer,
    as_optional_text,
    as_time_window,
)
from airflow_provider_acid.signals.stats import initiator_cycle
from airflow_provider_acid.triggers.compaction import DuePartitionsTrigger
from airflow_provider_acid.triggers.wait import TRIGGER_GRACE_SECONDS, WaitEvent, raise_if_failed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


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
    :param max_partitions: most partitions returned by one poke, those first whose deltas cost readers most
        (docs/read-cost.md).
    :param max_bytes: most bytes that the compactions of these read together; None for no bound. The first is returned
        although it has more.
    :param time_window: hours in which partitions are returned, e.g. ``22:00-06:00``; None for all. Give the operator
        the same.
    :param time_zone: of ``time_window``, e.g. ``Europe/Berlin``.
    :param decide_only: a dry run: log what is due and what is not, at any hour, and skip the task and what follows.
    :param fail_on_unmatched_patterns: fail where a pattern matches no table, or an excluded one leaves none out,
        instead of a warning; default: ``[hive_acid]``. A table that is named without wildcards must always exist.
    :param skip_when_nothing_due: skip the task, and what follows, instead of waiting; also outside the time window.
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
        "max_bytes",
        "time_window",
        "time_zone",
        "decide_only",
        "fail_on_unmatched_patterns",
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
        max_bytes: int | str | None = None,
        time_window: str | None = None,
        time_zone: str = "UTC",
        decide_only: bool | str = False,
        fail_on_unmatched_patterns: bool | str | None = None,
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
        self.max_bytes = max_bytes
        self.time_window = time_window
        self.time_zone = time_zone
        self.decide_only = decide_only
        self.fail_on_unmatched_patterns = fail_on_unmatched_patterns
        self.skip_when_nothing_due = skip_when_nothing_due
        self.deferrable = deferrable
        self._deadline: float | None = None

    @failing_at_once()
    def execute(self, context: Context) -> Any:
        """Wait until something is due; the batches.

        :raises AirflowFailException: a parameter or a connection cannot be used, a table that is named without
            wildcards does not exist or cannot be compacted, or a pattern matches no table and that is a failure.
        :raises AirflowSkipException: nothing is due and the sensor was told not to wait, or it is a dry run.
        :raises AirflowSensorTimeout: nothing was due until the time was over.
        """
        if self.deferrable:
            self._deadline = time.time() + self.timeout
        return super().execute(context)

    @failing_at_once()
    def execute_complete(self, context: Context, event: WaitEvent) -> Any:
        """Evaluate again what the triggerer found due; errors as for :meth:`execute`.

        The event says no more than that something is due: it stays small, and what was due when a worker was not yet
        free is not handed on.
        """
        raise_if_failed(event)
        self._deadline = event["deadline"]
        return self.poke(context).xcom_value

    def poke(self, context: Context) -> PokeReturnValue:
        """Evaluate all tables once.

        :raises AcidError: what :meth:`execute` fails with at once, or after its tries.
        """
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
                as_optional_text(self.time_window),
                str(self.time_zone),
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=left + TRIGGER_GRACE_SECONDS),
        )

    def _evaluate(self) -> PokeReturnValue:
        selection = TableSelection.of(as_names("tables", self.tables), as_names("exclude", self.exclude))
        size = self._number("batch_partitions")
        # More batches than Airflow maps over would fail the task after all the work.
        most = min(self._number("max_partitions"), size * conf.getint("core", "max_map_length", fallback=1024))
        budget = RunBudget(most, as_optional_integer("max_bytes", self.max_bytes))
        skip = as_boolean("skip_when_nothing_due", self.skip_when_nothing_due)
        decide_only = as_boolean("decide_only", self.decide_only)
        fail_on_unmatched = self._fails_on_unmatched_patterns()
        hours = as_time_window("time_window", self.time_window, self.time_zone)
        settings = evaluation_settings(**self._question())
        closed = None if decide_only or hours is None else hours.why_closed(time.time())
        if closed is not None:
            return self._nothing(f"No compaction of {', '.join(selection.include)} begins now: {closed}", skip)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        tags = {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id}
        looks_at_all = settings.candidates is Candidates.ALL
        recording = recording_evaluation(
            health_location(), self.hive_acid_conn_id, endpoint.storages, looks_at_all=looks_at_all
        )
        with initiator_cycle(tags) as measured, endpoint.open() as client, recording as observer:
            queue = endpoint.open_queue(client)
            settings = replace(settings, storages=endpoint.storages)
            initiator = Initiator(client, queue, settings, endpoint.write_records, observer=observer)
            evaluation = initiator.evaluate(selection)
            measured(evaluation)
        share = RunShare.within(budget, evaluation)
        for level, line in share.lines(all_partitions=decide_only):
            self.log.log(level, "%s", line)
        if fail_on_unmatched and evaluation.unmatched:
            reasons = "; ".join(evaluation.unmatched)
            raise ConfigurationError("table selection", reasons, "correct them, or set fail_on_unmatched_patterns off")
        if decide_only:
            raise AirflowSkipException(
                f"Dry run: {len(share.taken)} partitions would be compacted, nothing was changed"
            )
        if not share.taken:
            return self._nothing(f"No partition of {', '.join(selection.include)} is due for compaction", skip)
        return PokeReturnValue(is_done=True, xcom_value=share.batches(size))

    def _nothing(self, reason: str, skip: bool) -> PokeReturnValue:
        if skip:
            raise AirflowSkipException(reason)
        self.log.info("%s", reason)
        return PokeReturnValue(is_done=False)

    def _fails_on_unmatched_patterns(self) -> bool:
        if self.fail_on_unmatched_patterns is None:
            return fails_on_unmatched_patterns()
        return as_boolean("fail_on_unmatched_patterns", self.fail_on_unmatched_patterns)

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
