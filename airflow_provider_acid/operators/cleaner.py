"""An operator that deletes merged directories once no reader can need them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException, BaseOperator, conf

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.hooks.health import record_task_history, renew_figures
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.links.compaction import PAGE_LINKS
from airflow_provider_acid.operators.batch_name import NamedByPartitions
from airflow_provider_acid.operators.killed import UnwindsWhenKilled
from airflow_provider_acid.operators.literals import refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.option import Place
from airflow_provider_acid.options import parameters_of
from airflow_provider_acid.parameters import as_entities
from airflow_provider_acid.signals.stats import cleaner_cycle
from airflow_provider_acid.triggers.cleaner import CleaningTrigger
from airflow_provider_acid.triggers.wait import TRIGGER_GRACE_SECONDS, WaitEvent, raise_if_failed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, XComArg


class AcidCleanerOperator(NamedByPartitions, UnwindsWhenKilled, BaseOperator):
    """Cleans up after compactions, as Hive's Cleaner does.

    Waits until every transaction has ended that may have begun to read before the compaction was committed, deletes
    obsolete directories and those of aborted transactions, and completes the row in the metastore's queue.

    On Hive 3.1 it also waits for the locks that were there when the compaction was published. While it waits the
    partition's row stays 'working' for everybody else, which keeps Hive's own Cleaner away from it but also stands in
    the way of the partition's next request.

    :param partitions: objects with ``database``, ``table`` and ``partition``, as sensor and operator return them.
        Those without a row 'ready for cleaning' are passed over. (templated)
    :param cleaning_deadline_seconds: longest wait, from the start of the try; then the task is skipped with the reason,
        and nothing more is deleted. This and the others are options (docs/options.md). (templated)
    :param deferrable: wait in the triggerer instead of a worker slot.
    """

    template_fields: Sequence[str] = ("partitions", *parameters_of(Place.CLEANER))
    template_fields_renderers: ClassVar[dict[str, str]] = {"partitions": "json"}
    operator_extra_links = PAGE_LINKS
    ui_color = "#dcedc8"

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | XComArg | str,
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        cleaning_deadline_seconds: float | str | None = None,
        poll_seconds: float | str | None = None,
        cleaner_retention_seconds: float | str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.hive_acid_conn_id = hive_acid_conn_id
        self.cleaning_deadline_seconds = cleaning_deadline_seconds
        self.poll_seconds = poll_seconds
        self.cleaner_retention_seconds = cleaner_retention_seconds
        self.deferrable = deferrable
        refuse_wrong_literals(self, partitions=as_entities)

    @failing_at_once()
    def execute(self, context: Context) -> list[dict[str, object]]:
        """Clean what can be cleaned, wait for the rest.

        :raises AirflowFailException: a parameter or a connection cannot be used.
        :raises AirflowException: cleaning a partition failed; its files and its row are as the message says.
        :raises AirflowSkipException: the deadline passed while readers were still there.
        """
        for link in PAGE_LINKS:
            link.push_page_of(context, as_entities("partitions", self.partitions), self.hive_acid_conn_id)
        deadline: float = time.time() + option("cleaning_deadline_seconds", self.cleaning_deadline_seconds)
        with self._unwinding_when_killed():
            return self._clean_or_wait(context, deadline, [])

    @failing_at_once()
    def execute_complete(
        self, context: Context, event: WaitEvent, done: list[dict[str, object]] | None = None
    ) -> list[dict[str, object]]:
        """Go on after the wait; errors as for :meth:`execute`.

        :param done: what was cleaned before it.
        """
        raise_if_failed(event)
        with self._unwinding_when_killed():
            return self._clean_or_wait(context, event["deadline"], done or [])

    def _clean_or_wait(
        self, context: Context, deadline: float, done: list[dict[str, object]]
    ) -> list[dict[str, object]]:
        entities = as_entities("partitions", self.partitions)
        poll_seconds: float = option("poll_seconds", self.poll_seconds)
        while True:
            cleanings = self._clean(entities)
            ended = [item for item in cleanings if item.state is not CleaningState.WAITING]
            if ended:
                self._record(context, ended)
            renew_figures(self.hive_acid_conn_id, {item.entity for item in cleanings if item.has_changed})
            done = done + [item.to_json() for item in ended]
            failures = [f"{item.entity}: {item.message}" for item in cleanings if item.state is CleaningState.FAILED]
            if failures:
                raise AirflowException("; ".join(failures))
            waiting = [item for item in cleanings if item.state is CleaningState.WAITING]
            if not waiting:
                return done
            if time.time() >= deadline:
                still = "; ".join(f"{item.entity} {item.message}" for item in waiting)
                raise AirflowSkipException(f"{still}. The time for it is over: the next run cleans it.")
            if self.deferrable:
                self._defer(waiting, deadline, poll_seconds, done)
            time.sleep(min(poll_seconds, max(deadline - time.time(), 0)))

    def _record(self, context: Context, ended: Sequence[Cleaning]) -> None:
        record_task_history(self.hive_acid_conn_id, context, lambda make: make.of_cleanings(ended))

    def _defer(
        self, waiting: Sequence[Cleaning], deadline: float, poll_seconds: float, done: list[dict[str, object]]
    ) -> None:
        self.defer(
            trigger=CleaningTrigger(
                self.hive_acid_conn_id,
                [asdict(item.entity) for item in waiting],
                deadline,
                poll_seconds,
                option("cleaner_retention_seconds", self.cleaner_retention_seconds),
            ),
            method_name="execute_complete",
            kwargs={"done": done},
            timeout=timedelta(seconds=max(deadline - time.time(), 0) + TRIGGER_GRACE_SECONDS),
        )

    def _clean(self, entities: Sequence[Entity]) -> tuple[Cleaning, ...]:
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        settings = configured_settings(cleaner_retention_seconds=self.cleaner_retention_seconds)
        settings = replace(settings, storages=endpoint.storages)
        tags = {"conn_id": self.hive_acid_conn_id, "dag_id": self.dag_id}
        with cleaner_cycle(tags) as measured, endpoint.connect() as (client, queue):
            cleanings = Cleaner(client, queue, settings, connect=endpoint.connect).clean(entities)
            measured(cleanings)
        for item in cleanings:
            self.log.info("%s: %s: %s", item.entity, item.state.value, item.message)
        return cleanings
