"""An operator that finds out what a compaction of one table, or of one of its partitions, would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, BaseOperator

from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.decision_report import RunShare
from airflow_provider_acid.compaction.evaluate.demand import Demand, DemandedType, one_table
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.config import configured_settings, most_batches, option
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.literals import OF_ONE_TABLE, refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place
from airflow_provider_acid.options import parameters_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class AcidTablePlanOperator(BaseOperator):
    """Plans the compaction of one table that somebody asks for; changes nothing.

    Returns what ``AcidCompactionOperator.partial(…).expand(partitions=…)`` takes, as the sensor does. The table is
    looked at although ``no_auto_compaction`` is set on it, for it is asked for by name.

    Its parameters are options (docs/options.md), all templated. ``minor`` and ``major`` are carried out also where
    compactions failed before; what is refused otherwise is refused here, too.
    """

    template_fields: Sequence[str] = parameters_of(Place.TABLE_PLAN)
    ui_color = "#fff3c4"

    def __init__(
        self,
        *,
        database: str,
        table: str,
        partition: str | None = None,
        type: str = DemandedType.AUTO.value,
        decide_only: bool | str = False,
        batch_partitions: int | str = 1000,
        max_partitions: int | str = 10_000,
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.database = database
        self.table = table
        self.partition = partition
        self.type = type
        self.decide_only = decide_only
        self.batch_partitions = batch_partitions
        self.max_partitions = max_partitions
        self.hive_acid_conn_id = hive_acid_conn_id
        refuse_wrong_literals(self, **OF_ONE_TABLE)

    @failing_at_once()
    def execute(self, context: Context) -> list[list[dict[str, object]]]:
        """Look at the table once; batches of small objects.

        :raises AirflowFailException: a parameter or a connection cannot be used; the table, or the partition, does not
            exist or cannot be compacted; or nothing can be, and somebody has to look at why.
        :raises AcidError: metastore or storage do not answer.
        :raises AirflowSkipException: there is nothing to compact, or it is a dry run.
        """
        selection = one_table(str(self.database), str(self.table))
        wanted: DemandedType = option("type", self.type)
        demand = Demand.of(option("partition", self.partition), wanted)
        decide_only: bool = option("decide_only", self.decide_only)
        size: int = option("batch_partitions", self.batch_partitions)
        budget = RunBudget(min(option("max_partitions", self.max_partitions), size * most_batches()))
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        settings = replace(configured_settings().for_what_is_asked_by_name(), storages=endpoint.storages)
        with endpoint.connect() as (client, queue):
            evaluation = Initiator(client, queue, settings, demand=demand).evaluate(selection)
        share = RunShare.within(budget, evaluation)
        for level, line in share.lines(all_partitions=True):
            self.log.log(level, "%s", line)
        if decide_only:
            raise AirflowSkipException(
                f"Dry run: {len(share.taken)} partitions would be compacted, nothing was changed"
            )
        if not share.taken:
            self._end(evaluation.refused, f"Nothing of {selection.include[0]} is to be compacted ({wanted.value})")
        return share.batches(size, most_batches())

    def _end(self, refused: Sequence[str], nothing: str) -> None:
        if refused:
            others = f" (and {len(refused) - 1} more, see the log)" if len(refused) > 1 else ""
            raise AirflowFailException(f"{nothing}: {refused[0]}{others}")
        raise AirflowSkipException(f"{nothing}; the log says why")
