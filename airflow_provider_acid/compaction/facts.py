"""What the metastore knows about one partition, gathered once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MisnamedError, ObjectNotFoundError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import DatabaseInfo, PartitionInfo, TableInfo
from airflow_provider_acid.plan.plan import Column


@dataclass(frozen=True)
class EntityFacts:
    """A table, its database, and the partition if the entity is one."""

    entity: Entity
    database: DatabaseInfo
    table: TableInfo
    partition: PartitionInfo | None

    @property
    def location(self) -> str:
        """URI of the directory that holds base and deltas."""
        return self.partition.location if self.partition else self.table.location

    @property
    def columns(self) -> tuple[Column, ...]:
        """The table's current columns: readers map files to them by position, whatever a partition recorded."""
        return tuple(Column(column.name, column.type.lower()) for column in self.table.columns)

    @property
    def bucketed(self) -> bool:
        """Whether rows of bucket N lie in files of bucket N only."""
        return self.table.bucket_count > 0

    @property
    def storage(self) -> StorageFormat:
        """How the files of the partition, or of the unpartitioned table, are written."""
        return storage_format(self.table, self.partition)

    def property(self, name: str) -> str | None:
        """A property of the partition, else of the table; names are compared without case."""
        own: Mapping[str, str] = self.partition.parameters if self.partition else {}
        return find_property(own, name) or find_property(self.table.parameters, name)


@dataclass(frozen=True)
class StorageFormat:
    """How files are written: a partition's own description, which ALTER TABLE does not change with its table's.

    :param parameters: of table, partition and SerDe; a reader may take a property from any of them.
    """

    input_format: str
    serde: str
    parameters: tuple[Mapping[str, str], ...]
    stored_as_directories: bool

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a property whose name is compared without case."""
        found = (find_property(parameters, name) for parameters in self.parameters)
        return tuple(value for value in found if value is not None)


def storage_format(table: TableInfo, partition: PartitionInfo | None) -> StorageFormat:
    """How the files of a partition, or of an unpartitioned table, are written."""
    own: TableInfo | PartitionInfo = partition or table
    return StorageFormat(
        input_format=own.input_format or table.input_format,
        serde=own.serde.library or table.serde.library,
        parameters=(table.parameters, table.serde.parameters, own.parameters, own.serde.parameters),
        stored_as_directories=own.stored_as_directories or table.stored_as_directories,
    )


def find_property(parameters: Mapping[str, str], name: str) -> str | None:
    """The value of a property whose name is compared without case."""
    wanted = name.lower()
    for key, value in parameters.items():
        if key.lower() == wanted:
            return value
    return None


class FactsOfMany:
    """What the metastore knows of several entities; each table is asked for once, and its partitions together.

    Asked when first wanted and kept: who needs to know of a later moment makes another.

    :param entities: tables and partitions that will be asked for.
    """

    def __init__(self, client: AcidMetastoreClient, entities: Iterable[Entity]) -> None:
        self._client = client
        self._tables: dict[Entity, TableInfo] = {}
        self._databases: dict[str, DatabaseInfo] = {}
        self._partitions: dict[Entity, PartitionInfo] = {}
        self._names: dict[Entity, list[str]] = {}
        for entity in entities:
            if entity.partition is not None:
                self._names.setdefault(_table_of(entity), []).append(entity.partition)

    def of(self, entity: Entity) -> EntityFacts:
        """What is known of one of them.

        :raises ObjectNotFoundError: the database, the table or the partition does not exist; as :class:`MisnamedError`
            where the table is partitioned and the entity names no partition, or the other way round.
        """
        table = self._table(_table_of(entity))
        database = self._database(entity.database)
        if bool(table.partition_keys) != bool(entity.partition):
            raise MisnamedError(
                f"table {entity.full_table_name}",
                "is partitioned, but no partition is named" if table.partition_keys else "has no partitions",
                "name one partition of a partitioned table, and none of an unpartitioned one",
            )
        partition = None if entity.partition is None else self._partition(entity, entity.partition)
        return EntityFacts(entity, database, table, partition)

    def _table(self, entity: Entity) -> TableInfo:
        if entity not in self._tables:
            self._tables[entity] = self._client.get_table(entity.database, entity.table)
        return self._tables[entity]

    def _database(self, name: str) -> DatabaseInfo:
        if name not in self._databases:
            self._databases[name] = self._client.get_database(name)
        return self._databases[name]

    def _partition(self, entity: Entity, name: str) -> PartitionInfo:
        table = _table_of(entity)
        together = self._names.pop(table, [])
        if len(together) > 1:
            # Where one of them does not exist, each is asked for alone.
            with suppress(ObjectNotFoundError):
                self._fetch(table, together)
        if entity not in self._partitions:
            self._fetch(table, [name])
        return self._partitions[entity]

    def _fetch(self, table: Entity, names: Sequence[str]) -> None:
        for partition in self._client.get_partitions(table.database, table.table, names):
            self._partitions[Entity(table.database, table.table, partition.name)] = partition


def load_facts(client: AcidMetastoreClient, entity: Entity) -> EntityFacts:
    """Ask the metastore about one entity alone; errors as of :meth:`FactsOfMany.of`."""
    return FactsOfMany(client, [entity]).of(entity)


def partitions_that_are_there(
    client: AcidMetastoreClient, database: str, table: str, names: Sequence[str]
) -> list[PartitionInfo]:
    """Partitions whose names were asked for before, without those that were dropped since.

    :raises ObjectNotFoundError: the table does not exist, or the metastore names partitions that it does not know.
    """
    while True:
        try:
            return client.get_partitions(database, table, names)
        except ObjectNotFoundError:
            known = set(client.get_partition_names(database, table))
            left = [name for name in names if name in known]
            if len(left) == len(names):
                raise
            names = left


def _table_of(entity: Entity) -> Entity:
    return Entity(entity.database, entity.table)
