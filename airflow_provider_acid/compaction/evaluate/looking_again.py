"""How partitions are after somebody worked on them: a few calls for all of them, and one listing of each."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import compactor_list
from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.judging import Judge
from airflow_provider_acid.compaction.evaluate.looking import Place, Seen, TableView, looks
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import current_txns
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import ConfigurationError, ObjectNotFoundError, UnexpectedError
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import PartitionInfo, TableInfo
from airflow_provider_acid.plan.thresholds import TableKind

log = logging.getLogger(__name__)

_OF_ONE_TABLE = (ConfigurationError, ObjectNotFoundError, UnexpectedError)
"""Errors that end one table or partition only."""


def look_again(
    client: AcidMetastoreClient,
    queue: CompactionQueue,
    settings: CompactionSettings,
    entities: Collection[Entity],
    observer: EvaluationObserver,
) -> None:
    """Tell the observer how these partitions are at this moment, whatever the queue holds for them.

    What is gone, or cannot be looked at, is passed by with a line in the log.

    :raises AcidError: the metastore does not answer.
    """
    judge = Judge(client, queue, settings)
    places = _places(client, queue, settings, entities)
    with closing(looks(places, settings.storages, settings.listing_threads)) as seen:
        for found in seen:
            if not isinstance(found, Seen):
                log.info("%s is not looked at again: %s", found.failed, found.reason)
                continue
            try:
                with Supervised(found.place.entity):
                    judged = judge.judge(found)
            except _OF_ONE_TABLE as error:
                log.info("%s is not looked at again: %s", found.place.entity, error)
                continue
            observer.saw(found, judged.decision, judged.hindrance)


def _places(
    client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings, entities: Collection[Entity]
) -> Iterator[Place]:
    """Transactions, then write ids, and only then the directories; see :func:`~.snapshot.take_snapshot`."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for entity in entities:
        wanted.setdefault((entity.database, entity.table), set()).add(entity.partition or "")
    tables = [table for key in wanted if (table := _table(client, *key)) is not None]
    txns = current_txns(client)
    names = [table.full_table_name for table in tables]
    write_ids = {ids.full_table_name: ids for ids in client.valid_write_ids(names, str(txns))} if names else {}
    for table in tables:
        try:
            thresholds = settings.thresholds.for_table(table.parameters)
            kind = TableKind.of(table.parameters) or TableKind.FULL_ACID
            visible = queue.hive.visibility(txns)
            view = TableView(table, kind, thresholds, visible, compactor_list(write_ids[table.full_table_name]))
            yield from _places_of(client, view, sorted(wanted[table.database, table.name]))
        except _OF_ONE_TABLE as error:
            log.info("table %s is not looked at again: %s", table.full_table_name, error)


def _places_of(client: AcidMetastoreClient, view: TableView, names: Sequence[str]) -> Iterator[Place]:
    table = view.table
    if not table.partition_keys:
        yield Place(view, Entity(table.database, table.name), table.location, None)
        return
    for partition in _partitions(client, table, names):
        yield Place(view, Entity(table.database, table.name, partition.name), partition.location, partition)


def _table(client: AcidMetastoreClient, database: str, name: str) -> TableInfo | None:
    try:
        return client.get_table(database, name)
    except ObjectNotFoundError as error:
        log.info("%s", error)
        return None


def _partitions(client: AcidMetastoreClient, table: TableInfo, names: Sequence[str]) -> list[PartitionInfo]:
    """Those that are there: one that was dropped meanwhile costs the others a call each."""
    try:
        return client.get_partitions(table.database, table.name, names)
    except ObjectNotFoundError as error:
        log.info("%s", error)
        return [found for name in names if len(names) > 1 for found in _partitions(client, table, [name])]
