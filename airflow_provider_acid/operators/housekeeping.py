"""An operator that looks after what dead workers left and reports what is stuck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import HousekeepingReport
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.killed import UnwindsWhenKilled
from airflow_provider_acid.operators.literals import refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place
from airflow_provider_acid.options import parameters_of
from airflow_provider_acid.signals.measurements import of_housekeeping
from airflow_provider_acid.signals.stats import send

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class AcidHousekeepingOperator(UnwindsWhenKilled, BaseOperator):
    """Looks after the compactions of some tables.

    Ends claims of dead workers, settles what they had all but finished, removes staging directories that belong to
    nobody, keeps claims that wait to be cleaned, and logs what is stuck. Of two results of one range of write ids it
    logs which is whole, and with ``repair_twins`` removes the other. Everything it does may be repeated, and is done
    beside running compactions. The XComs: ``partitions`` (for :class:`~.cleaner.AcidCleanerOperator`),
    ``stuck`` and ``done``.

    Its parameters are options (docs/options.md), all templated; numbers and lists may arrive as text.
    """

    template_fields: Sequence[str] = parameters_of(Place.HOUSEKEEPING)
    template_fields_renderers: ClassVar[dict[str, str]] = {"tables": "json", "exclude": "json"}
    ui_color = "#cfd8dc"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str,
        exclude: Sequence[str] | str = (),
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        worker_timeout_seconds: float | str | None = None,
        forgotten_after_seconds: float | str = 21_600.0,
        max_partitions: int | str = 1000,
        repair_twins: bool | str = False,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(multiple_outputs=multiple_outputs, **kwargs)
        self.tables = tables
        self.exclude = exclude
        self.hive_acid_conn_id = hive_acid_conn_id
        self.worker_timeout_seconds = worker_timeout_seconds
        self.forgotten_after_seconds = forgotten_after_seconds
        self.max_partitions = max_partitions
        self.repair_twins = repair_twins
        refuse_wrong_literals(self)

    @failing_at_once()
    def execute(self, context: Context) -> dict[str, object]:
        """Do all chores once; what was done and what is stuck.

        :raises AirflowFailException: a parameter or a connection cannot be used.
        :raises MetastoreUnavailableError: the metastore does not answer.
        """
        selection = TableSelection.of(option("tables", self.tables), option("exclude", self.exclude or ()))
        with self._unwinding_when_killed():
            report = self._sweep(selection)
        for line in report.lines():
            self.log.info("%s", line)
        send(of_housekeeping(report), {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id})
        return report.to_json()

    def _sweep(self, selection: TableSelection) -> HousekeepingReport:
        settings = configured_settings(worker_timeout_seconds=self.worker_timeout_seconds)
        forgotten_seconds: float = option("forgotten_after_seconds", self.forgotten_after_seconds)
        max_partitions: int = option("max_partitions", self.max_partitions)
        repair_twins: bool = option("repair_twins", self.repair_twins)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        with endpoint.connect() as (client, queue):
            housekeeper = Housekeeper(
                client,
                queue,
                replace(settings, storages=endpoint.storages),
                forgotten_seconds=forgotten_seconds,
                max_partitions=max_partitions,
                repair_twins=repair_twins,
            )
            return housekeeper.sweep(selection)
