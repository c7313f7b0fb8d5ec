"""A sensor that finds partitions due for compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseSensorOperator, PokeReturnValue

from airflow_provider_acid.compaction.initiator import Evaluation, Initiator
from airflow_provider_acid.compaction.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.config import configured_settings
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

LINES_LOGGED = 50
"""Decisions shown in the log of one poke; a sweep over thousands of partitions must not fill it."""


class AcidCompactionSensor(BaseSensorOperator):
    """Waits until partitions are due for compaction and returns them in batches.

    One poke evaluates all tables. The XCom is a list of batches, each a list of small objects with database, table,
    partition, type, reason and request_id, made for ``AcidCompactionOperator.partial(…).expand(partitions=…)``.

    :param tables: patterns of tables, e.g. ``["sales.orders", "web.*"]``. (templated)
    :param exclude: patterns of tables to leave out. (templated)
    :param hive_acid_conn_id: the metastore's connection.
    :param delta_num_threshold: deltas above which a partition is due; default: ``[hive_acid] delta_num_threshold``.
    :param delta_pct_threshold: share of delta bytes above which it is due; default: ``[hive_acid]`` as well.
    :param override_no_auto_compaction: evaluate tables that are named without wildcards although
        ``no_auto_compaction`` is set.
    :param serve_foreign_requests: hand on requests made by users or Hive's Initiator; default: ``[hive_acid]``.
    :param batch_partitions: partitions in one batch, that is in one Spark application.
    :param max_partitions: most partitions returned by one poke, worst first.
    :param skip_when_nothing_due: skip the task, and what follows, instead of waiting.
    """

    template_fields: Sequence[str] = (
        "tables",
        "exclude",
        "hive_acid_conn_id",
        "delta_num_threshold",
        "delta_pct_threshold",
        "override_no_auto_compaction",
        "batch_partitions",
        "max_partitions",
    )
    ui_color = "#fff3c4"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str,
        exclude: Sequence[str] | str = (),
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        delta_num_threshold: int | str | None = None,
        delta_pct_threshold: float | str | None = None,
        override_no_auto_compaction: bool | str = False,
        serve_foreign_requests: bool | None = None,
        batch_partitions: int | str = 50,
        max_partitions: int | str = 1000,
        skip_when_nothing_due: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("mode", "reschedule")
        super().__init__(**kwargs)
        self.tables = tables
        self.exclude = exclude
        self.hive_acid_conn_id = hive_acid_conn_id
        self.delta_num_threshold = delta_num_threshold
        self.delta_pct_threshold = delta_pct_threshold
        self.override_no_auto_compaction = override_no_auto_compaction
        self.serve_foreign_requests = serve_foreign_requests
        self.batch_partitions = batch_partitions
        self.max_partitions = max_partitions
        self.skip_when_nothing_due = skip_when_nothing_due

    def poke(self, context: Context) -> PokeReturnValue:
        """Evaluate all tables once.

        :raises AirflowSkipException: nothing is due and the sensor was told not to wait.
        """
        selection = TableSelection.of(as_names(self.tables), as_names(self.exclude))
        with AcidMetastoreHook(self.hive_acid_conn_id).get_conn() as client:
            queue = ThriftCompactionQueue(client)
            evaluation = Initiator(client, queue, self._settings()).evaluate(selection)
        self._report(evaluation)
        due = [item.to_json() for item in evaluation.due[: as_integer("max_partitions", self.max_partitions)]]
        if not due and self.skip_when_nothing_due:
            raise AirflowSkipException("No partition is due for compaction")
        return PokeReturnValue(is_done=bool(due), xcom_value=self._batches(due))

    def _batches(self, due: list[dict[str, object]]) -> list[list[dict[str, object]]]:
        size = as_integer("batch_partitions", self.batch_partitions)
        return [due[start : start + size] for start in range(0, len(due), size)]

    def _settings(self) -> CompactionSettings:
        settings = configured_settings()
        thresholds = settings.thresholds
        if self.delta_num_threshold is not None:
            thresholds = replace(thresholds, delta_count=int(self.delta_num_threshold))
        if self.delta_pct_threshold is not None:
            thresholds = replace(thresholds, delta_size_ratio=float(self.delta_pct_threshold))
        if self.serve_foreign_requests is not None:
            settings = replace(settings, serve_foreign_requests=self.serve_foreign_requests)
        override = str(self.override_no_auto_compaction).lower() == "true"
        return replace(settings, thresholds=thresholds, override_no_auto_compaction=override)

    def _report(self, evaluation: Evaluation) -> None:
        self.log.info("%d partitions looked at, %d due", len(evaluation.evaluated), len(evaluation.due))
        for item in evaluation.due[:LINES_LOGGED]:
            self.log.info("due: %s: %s", item.entity, item.reason)
        for reason in evaluation.skipped[:LINES_LOGGED]:
            self.log.info("skipped: %s", reason)
        for row in evaluation.foreign[:LINES_LOGGED]:
            self.log.warning(
                "request %s for %s (%s) was made by somebody else and is not served; "
                "set serve_foreign_requests to have it carried out",
                row.id,
                row.entity,
                row.type,
            )


def as_names(value: Sequence[str] | str) -> list[str]:
    """A list of names, also from the text that a form or a template gives, separated by commas or blanks.

    :raises ConfigurationError: the value is neither a text nor a list of texts.
    """
    if isinstance(value, str):
        return value.replace(",", " ").split()
    if isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
        return list(value)
    raise ConfigurationError("table list", f"is {value!r}", "give a list of patterns, or a text with commas")


def as_integer(name: str, value: object) -> int:
    """A positive whole number, also from a template's text.

    :raises ConfigurationError: it is none.
    """
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise ConfigurationError(f"parameter {name}", f"is {value!r}", "give a whole number from 1 on")
    return number
