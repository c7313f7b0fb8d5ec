"""Which tables, partitions and requests a selection comes to, asked of the metastore in batches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Set
from contextlib import closing
from fnmatch import fnmatchcase

from airflow_provider_acid.acid.candidates import written_partitions
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.looking import in_advance
from airflow_provider_acid.compaction.selection import TableSelection
from airflow_provider_acid.metastore.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow, PartitionInfo, TableInfo

RowsByEntity = dict[Entity, list[CompactionRow]]


def rows_by_entity(queue: CompactionQueue, selection: TableSelection) -> RowsByEntity:
    """Rows of the queue and its history that belong to tables of a selection, by id within each partition."""
    rows: RowsByEntity = {}
    for row in queue.rows():
        if selection.matches(row.entity.full_table_name):
            rows.setdefault(row.entity, []).append(row)
    return rows


def matching_databases(client: AcidMetastoreClient, selection: TableSelection) -> list[str]:
    """Databases that may hold tables of a selection."""
    return [
        name
        for name in client.databases()
        if any(fnmatchcase(name.lower(), pattern) for pattern in selection.database_patterns)
    ]


def locations(
    client: AcidMetastoreClient, table: TableInfo, recorded: Set[str | None] | None = None
) -> Generator[tuple[Entity, str, PartitionInfo | None], None, None]:
    """What of a table is compacted, each with the URI of its directory: its partitions, or the table itself.

    Of many partitions the next batch is fetched while the one before is worked on, over a connection of its own.
    Whoever may leave before the end closes the generator.

    :param recorded: partitions to which writes are recorded, where only those are wanted; see
        :func:`~airflow_provider_acid.acid.candidates.written_partitions`.
    """
    if recorded is not None and not recorded:
        return
    if not table.partition_keys:
        yield Entity(table.database, table.name), table.location, None
        return
    names = client.get_partition_names(table.database, table.name)
    if recorded is not None:
        names = written_partitions(names, recorded)
    if len(names) <= PARTITIONS_PER_CALL:
        yield from _placed(table, client.get_partitions(table.database, table.name, names))
        return
    with client.for_another_thread() as fetching:
        batches = (names[start : start + PARTITIONS_PER_CALL] for start in range(0, len(names), PARTITIONS_PER_CALL))
        fetches = (fetching.get_partitions(table.database, table.name, batch) for batch in batches)
        with closing(in_advance(fetches)) as fetched:
            try:
                for partitions in fetched:
                    yield from _placed(table, partitions)
            finally:
                # Whoever leaves early does not wait for an answer.
                fetching.interrupt()


def _placed(table: TableInfo, partitions: list[PartitionInfo]) -> Iterator[tuple[Entity, str, PartitionInfo]]:
    for partition in partitions:
        yield Entity(table.database, table.name, partition.name), partition.location, partition
