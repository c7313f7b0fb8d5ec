"""Which tables and partitions a selection comes to, asked of the metastore in batches."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.selection import TableSelection
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import PartitionInfo, TableInfo

PARTITIONS_PER_CALL = 1000


def matching_databases(client: AcidMetastoreClient, selection: TableSelection) -> list[str]:
    """Databases that may hold tables of a selection."""
    return [
        name
        for name in client.databases()
        if any(fnmatchcase(name.lower(), pattern) for pattern in selection.database_patterns)
    ]


def locations(client: AcidMetastoreClient, table: TableInfo) -> Iterator[tuple[Entity, str, PartitionInfo | None]]:
    """What of a table is compacted, each with the URI of its directory: its partitions, or the table itself."""
    if not table.partition_keys:
        yield Entity(table.database, table.name), table.location, None
        return
    names = client.get_partition_names(table.database, table.name)
    for start in range(0, len(names), PARTITIONS_PER_CALL):
        for partition in client.get_partitions(table.database, table.name, names[start : start + PARTITIONS_PER_CALL]):
            yield Entity(table.database, table.name, partition.name), partition.location, partition
