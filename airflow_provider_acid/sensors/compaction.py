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
from airflow_provider_acid.config import configured_settings, most_batches, option
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.recording import recording_evaluation
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.literals import refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place, text_of
from airflow_provider_acid.options import parameters_of
from airflow_provider_acid.parameters import as_optional_number, as_optional_text, as_time_window
from airflow_provider_acid.signals.stats import initiator_cycle
from airflow_provider_acid.triggers.compaction import DuePartitionsTrigger
from airflow_provider_acid.triggers.wait import TRIGGER_GRACE_SECONDS, WaitEvent, raise_if_failed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


QUESTION = (
    "delta_num_threshold",
    "delta_pct_threshold",
    "candidates",
    "override_no_auto_compaction",
    "serve_foreign_requests",
)
"""What makes a partition due."""


class AcidCompactionSensor(BaseSensorOperator):
    """Waits until partitions are due for compaction and returns them in batches.

    One poke evaluates all tables. The XCom is a list of batches, each a list of small objects with database, table,
    partition, type, reason and request_id, made for ``AcidCompactionOperator.partial(…).expand(partitions=…)``; no
    more of them than Airflow maps over (``[core] max_map_length``).

    Its parameters are options (docs/options.md), all templated; numbers, truth values and lists may arrive as text.
    ``[hive_acid]`` has the defaults of thresholds, ``candidates``, ``serve_foreign_requests`` and
    ``fail_on_unmatched_patterns``. Give operator and sensor the same ``time_window``, best by ``default_args``.

    :param tables: patterns, e.g. ``["sales.orders", "web.*"]``; a table that is named without wildcards must exist.
    :param mode: of waiting; unlike Airflow's default it occupies no worker between two looks.
    :param poke_interval: time between two looks; default: ``[hive_acid] check_interval_seconds``.
    :param deferrable: wait in the triggerer, which evaluates there, instead of by ``mode``; ``timeout`` counts from the
        start of the try, and every wait lasts a whole ``poke_interval``.
    """

    template_fields: Sequence[str] = parameters_of(Place.SENSOR)
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
        override_no_auto_compaction: bool | str | None = None,
        serve_foreign_requests: bool | str | None = None,
        batch_partitions: int | str = 1000,
        max_partitions: int | str = 10_000,
        max_gib: float | str | None = None,
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
        poke_interval = option("check_interval_seconds") if poke_interval is None else poke_interval
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
        self.max_gib = max_gib
        self.time_window = time_window
        self.time_zone = time_zone
        self.decide_only = decide_only
        self.fail_on_unmatched_patterns = fail_on_unmatched_patterns
        self.skip_when_nothing_due = skip_when_nothing_due
        self.deferrable = deferrable
        self._deadline: float | None = None
        refuse_wrong_literals(self)

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
        selection = self._selection()
        self.defer(
            trigger=DuePartitionsTrigger(
                self.hive_acid_conn_id,
                list(selection.include),
                list(selection.exclude),
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
        selection = self._selection()
        size = self._given("batch_partitions")
        most = min(self._given("max_partitions"), size * most_batches())
        budget = RunBudget.of(most, as_optional_number("max_gib", self.max_gib))
        skip, decide_only = self._given("skip_when_nothing_due"), self._given("decide_only")
        fail_on_unmatched = self._given("fail_on_unmatched_patterns")
        hours = as_time_window("time_window", self.time_window, self._given("time_zone"))
        settings = configured_settings(**self._question())
        closed = None if decide_only or hours is None else hours.why_closed(time.time())
        if closed is not None:
            return self._nothing(f"No compaction of {', '.join(selection.include)} begins now: {closed}", skip)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        tags = {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id}
        looks_at_all = settings.candidates is Candidates.ALL
        recording = recording_evaluation(
            option("health_location"), self.hive_acid_conn_id, endpoint.storages, looks_at_all=looks_at_all
        )
        with initiator_cycle(tags) as measured, recording as observer, endpoint.connect() as (client, queue):
            settings = replace(settings, storages=endpoint.storages)
            initiator = Initiator(client, queue, settings, endpoint.write_records, observer=observer)
            evaluation = initiator.evaluate(selection)
            measured(evaluation)
        share = RunShare.within(budget, evaluation)
        for level, line in share.lines(all_partitions=decide_only):
            self.log.log(level, "%s", line)
        mistakes = [pattern.clause for pattern in evaluation.unmatched if pattern.is_mistake]
        if fail_on_unmatched and mistakes:
            reasons = "; ".join(mistakes)
            raise ConfigurationError("table selection", reasons, "correct them, or set fail_on_unmatched_patterns off")
        if decide_only:
            raise AirflowSkipException(
                f"Dry run: {len(share.taken)} partitions would be compacted, nothing was changed"
            )
        if not share.taken:
            return self._nothing(f"No partition of {', '.join(selection.include)} is due for compaction", skip)
        return PokeReturnValue(is_done=True, xcom_value=share.batches(size, most_batches()))

    def _nothing(self, reason: str, skip: bool) -> PokeReturnValue:
        if skip:
            raise AirflowSkipException(reason)
        self.log.info("%s", reason)
        return PokeReturnValue(is_done=False)

    def _selection(self) -> TableSelection:
        # An emptied field of a form is None, which means none, and not what is configured.
        return TableSelection.of(self._given("tables"), option("exclude", self.exclude or ()))

    def _given(self, name: str) -> Any:
        return option(name, getattr(self, name))

    def _question(self) -> dict[str, Any]:
        """What makes a partition due, as plain values: for an evaluation here, and for those in the triggerer."""
        return {name: text_of(value) for name in QUESTION if (value := getattr(self, name)) is not None}
