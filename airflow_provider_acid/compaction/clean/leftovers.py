"""What is still recorded of cleaned writes, once the metastore has forgotten what it can find."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.database.leftovers import (
    CleanedTable,
    forget_other_spellings,
    forget_without_write_ids,
)
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow

log = logging.getLogger(__name__)


def forget_leftovers(
    client: AcidMetastoreClient, queue: CompactionQueue, marked: Sequence[tuple[CompactionRow, int]]
) -> None:
    """Forget the records that a cleaning by the metastore leaves; one look per table with partitions.

    Without the metastore's database nothing is done. What cannot be forgotten now is left for the table's next
    cleaning: it only costs, and a warning says so.

    :param marked: rows that were marked cleaned, each with the write id up to which no file holds aborted rows.
    """
    database = queue.database
    if database is None:
        return
    # A claim that is kept while its cleaning waits says when it was kept last.
    tables = _tables(marked, claim_is_on_record=not queue.hive.is_claimed_until_cleaned)
    steps: list[Callable[[], int]] = [partial(forget_without_write_ids, database, tables)] if tables else []
    steps += [
        partial(
            forget_other_spellings,
            database,
            table,
            names,
            partial(client.get_partition_names, table.database, table.table),
            queue.hive.name_in_locks,
        )
        for table, names in _partitions(marked).items()
    ]
    for forget in steps:
        try:
            forgotten = forget()
        except MetastoreError as error:
            log.warning("Cleaned, but records of writes stay that no cleaning by the metastore removes: %s", error)
        else:
            if forgotten:
                log.info("Forgot %d records of writes that no cleaning by the metastore removes", forgotten)


def _tables(marked: Iterable[tuple[CompactionRow, int]], *, claim_is_on_record: bool) -> list[CleanedTable]:
    return [
        CleanedTable(row.entity.database, row.entity.table, write_id, row.start_ms if claim_is_on_record else None)
        for row, write_id in marked
        if row.entity.partition is None
    ]


def _partitions(marked: Iterable[tuple[CompactionRow, int]]) -> dict[Entity, dict[str, int]]:
    """By table and partition the write id."""
    found: dict[Entity, dict[str, int]] = {}
    for row, write_id in marked:
        if row.entity.partition is not None:
            of_table = found.setdefault(Entity(row.entity.database, row.entity.table), {})
            of_table[row.entity.partition] = max(write_id, of_table.get(row.entity.partition, 0))
    return found
