"""What tasks did, and how they left partitions, for the page in Airflow's UI."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.looking_again import look_again
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.health.history import HistoryRecord, RecordMaker, TaskPlace
from airflow_provider_acid.health.recording import record_history, record_renewed
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)


def record_task_history(
    hive_acid_conn_id: str, context: Context, records: Callable[[RecordMaker], list[HistoryRecord]]
) -> None:
    """Write what a task's work came to, where ``[hive_acid] health_location`` is set; it fails with a warning only.

    :param records: makes the records; see :func:`~..health.recording.record_history`.
    """
    location = option("health_location")
    if not location:
        return
    try:
        storages = AcidMetastoreHook(hive_acid_conn_id).endpoint().storages
    except Exception as error:  # the work is done, and its outcome is not to depend on this
        log.warning("the history is not written for the page: %s", error)
        return
    record_history(location, hive_acid_conn_id, storages, task_place(context), records)


def renew_figures(hive_acid_conn_id: str, entities: Collection[Entity]) -> None:
    """Look again at partitions that a task has changed, where ``[hive_acid] health_location`` is set.

    It fails with a warning only, and is waited for no longer than :data:`~..health.recording.RENEWAL_SECONDS`.
    """
    location = option("health_location")
    if not location or not entities:
        return
    try:
        endpoint = AcidMetastoreHook(hive_acid_conn_id).endpoint()
        settings = replace(configured_settings(), storages=endpoint.storages)
    except Exception as error:  # the work is done, and its outcome is not to depend on this
        log.warning("the figures of partitions are not renewed for the page: %s", error)
        return

    def look(observer: EvaluationObserver) -> None:
        with endpoint.connect() as (client, queue):
            look_again(client, queue, settings, entities, observer)

    record_renewed(location, hive_acid_conn_id, endpoint.storages, look)


def task_place(context: Context) -> TaskPlace:
    """Which task it is."""
    ti = context.get("ti")
    if ti is None:
        return TaskPlace()
    return TaskPlace(str(ti.dag_id), str(ti.run_id), str(ti.task_id), -1 if ti.map_index is None else int(ti.map_index))
