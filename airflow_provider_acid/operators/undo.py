"""An operator that takes back a partition's newest compaction, as long as what it replaced is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator

from airflow_provider_acid.compaction.evaluate.demand import one_entity
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.hooks.health import renew_figures
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators.killed import UnwindsWhenKilled
from airflow_provider_acid.operators.literals import OF_ONE_TABLE, refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place
from airflow_provider_acid.options import parameters_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class AcidUndoOperator(UnwindsWhenKilled, BaseOperator):
    """Takes back the newest compaction of one partition, or of one table without partitions.

    All readers read what it was made of again: the same rows, with the same row ids. That is possible for
    ``keep_replaced_hours`` after it, as long as nothing was compacted on top of it. It waits for readers and writers of
    the partition, ``minor_lock_wait_seconds`` at most.

    Its parameters are options (docs/options.md), all templated.
    """

    template_fields: Sequence[str] = parameters_of(Place.UNDO)
    ui_color = "#ffe0b2"

    def __init__(
        self,
        *,
        database: str,
        table: str,
        partition: str | None = None,
        decide_only: bool | str = False,
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.database = database
        self.table = table
        self.partition = partition
        self.decide_only = decide_only
        self.hive_acid_conn_id = hive_acid_conn_id
        refuse_wrong_literals(self, **OF_ONE_TABLE)

    @failing_at_once()
    def execute(self, context: Context) -> dict[str, object]:
        """Take it back; a small object that says what went, and for how many directories and files.

        :raises AirflowFailException: it cannot be taken back, and readers read the result as before; or a parameter or
            a connection cannot be used.
        :raises AcidError: metastore or storage do not answer, or the lock was lost; another try goes on.
        :raises AirflowSkipException: it is a dry run.
        """
        entity = one_entity(str(self.database), str(self.table), option("partition", self.partition))
        decide_only: bool = option("decide_only", self.decide_only)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        settings = replace(configured_settings(), storages=endpoint.storages)
        with self._unwinding_when_killed(), endpoint.connect() as (client, queue):
            undo = Undo(client, queue, settings)
            undone = undo.look(entity) if decide_only else undo.undo(entity)
        if decide_only:
            raise AirflowSkipException(f"Dry run: {undone} would be taken back, nothing was changed")
        self.log.info("Taken back: %s", undone)
        renew_figures(self.hive_acid_conn_id, {entity})
        return undone.to_json()
