"""Databases, tables and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ObjectNotFoundError
from airflow_provider_acid.metastore.thrift.connection import MetastoreConnection
from airflow_provider_acid.metastore.thrift.late import methods, ttypes
from airflow_provider_acid.metastore.thrift.wire import Struct
from airflow_provider_acid.metastore.values import ColumnInfo, DatabaseInfo, PartitionInfo, SerdeInfo, TableInfo

PARTITIONS_PER_CALL = 1000
"""Partitions asked for at once; Hive's own default for ``metastore.batch.retrieve.max``."""

TABLES_PER_CALL = 200
"""Tables asked for at once; each comes with all its columns."""

_INSERT_ONLY_TABLES = 2
"""ClientCapability that a client must announce to be shown insert-only tables."""


def _capabilities() -> object:
    return ttypes.ClientCapabilities(values=[_INSERT_ONLY_TABLES])


class CatalogCalls(MetastoreConnection):
    """Reads of the catalogue; all may be repeated."""

    def databases(self) -> list[str]:
        """Names of all databases, sorted."""
        names = self._invoke("metastore", methods.GET_ALL_DATABASES, repeatable=True)
        return sorted(str(name) for name in names)

    def tables(self, database: str, pattern: str = "*") -> list[str]:
        """Names of the tables of ``database`` that match Hive's ``pattern`` (``*`` and ``|``), sorted."""
        names = self._invoke(f"database {database}", methods.GET_TABLES, database, pattern, repeatable=True)
        return sorted(str(name) for name in names)

    def get_database(self, name: str) -> DatabaseInfo:
        """A database.

        :raises ObjectNotFoundError: there is none of that name.
        """
        found = self._invoke(f"database {name}", methods.GET_DATABASE, name, repeatable=True)
        parameters = dict(_parameters(found.parameters))
        return DatabaseInfo(found.name, parameters, found.location or "", found.managed_location or "")

    def get_table(self, database: str, table: str) -> TableInfo:
        """A table.

        :raises ObjectNotFoundError: there is none of that name.
        """
        request = ttypes.GetTableRequest(
            dbName=database.lower(),
            tblName=table.lower(),
            capabilities=_capabilities(),
        )
        answer = self._invoke(f"table {database}.{table}", methods.GET_TABLE_REQ, request, repeatable=True)
        return _table(answer.table)

    def table_locations(self) -> Iterator[tuple[Entity, str]]:
        """All tables with the URIs of their directories; those without one (views) have an empty text."""
        for database in self.databases():
            for names in _batches(self.tables(database), TABLES_PER_CALL):
                for table in self._tables_of(database, names):
                    yield Entity(database, table.name), table.storage.location or ""

    def _tables_of(self, database: str, names: list[str]) -> list[Struct]:
        request = ttypes.GetTablesRequest(dbName=database, tblNames=names, capabilities=_capabilities())
        subject = f"tables of database {database}"
        tables: list[Struct] = self._invoke(subject, methods.GET_TABLES_REQ, request, repeatable=True).tables
        return tables

    def get_partition_names(self, database: str, table: str) -> list[str]:
        """Names of all partitions, as the metastore spells them; none for an unpartitioned table.

        :raises ObjectNotFoundError: there is no such table.
        """
        names = self._invoke(
            f"table {database}.{table}",
            methods.GET_PARTITION_NAMES,
            database.lower(),
            table.lower(),
            -1,
            repeatable=True,
        )
        return [str(name) for name in names]

    def get_partitions(self, database: str, table: str, names: Sequence[str]) -> list[PartitionInfo]:
        """The partitions of these names, in the order asked for.

        :raises ObjectNotFoundError: one of them, or the table, does not exist.
        """
        found: dict[str, PartitionInfo] = {}
        for batch in _batches(names, PARTITIONS_PER_CALL):
            partitions = self._partitions(database.lower(), table.lower(), batch)
            by_values = {tuple(partition.values): partition for partition in partitions}
            for name in batch:
                values = partition_values(name)
                if values in by_values:
                    found[name] = _partition(name, by_values[values])
        missing = [name for name in names if name not in found]
        if missing:
            raise ObjectNotFoundError(
                f"table {database}.{table}",
                f"the metastore does not know partition {missing[0]} ({len(missing)} of {len(names)} asked for)",
                "spell partitions as SHOW PARTITIONS does, or check whether they were dropped",
            )
        return [found[name] for name in names]

    def partition_locations(self, database: str, table: str, names: Sequence[str]) -> Iterator[str]:
        """URIs of the directories of those of these partitions that there are.

        :raises ObjectNotFoundError: the table does not exist.
        """
        for batch in _batches(names, PARTITIONS_PER_CALL):
            for partition in self._partitions(database.lower(), table.lower(), batch):
                yield partition.storage.location or ""

    def _partitions(self, database: str, table: str, names: list[str]) -> list[Struct]:
        partitions: list[Struct] = self._invoke(
            f"partitions of {database}.{table}",
            methods.GET_PARTITIONS_BY_NAMES,
            database,
            table,
            names,
            repeatable=True,
        )
        return partitions


def partition_values(name: str) -> tuple[str, ...]:
    """The values in a partition name, unescaped (Hive's ``Warehouse.makeValsFromName``)."""
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def _batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])


def _columns(fields: Iterable[Struct] | None) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(field.name, field.type) for field in fields or ())


def _parameters(parameters: Mapping[str, str] | None) -> Mapping[str, str]:
    return parameters or {}


def _serde(storage: Struct) -> SerdeInfo:
    serde = storage.serde
    return SerdeInfo(serde.library or "", _parameters(serde.parameters)) if serde else SerdeInfo()


def _table(table: Struct) -> TableInfo:
    storage = table.storage
    return TableInfo(
        database=table.database,
        name=table.name,
        location=storage.location or "",
        columns=_columns(storage.columns),
        partition_keys=_columns(table.partition_keys),
        parameters=_parameters(table.parameters),
        bucket_count=storage.bucket_count if storage.bucket_count is not None else -1,
        sort_columns=tuple(order.column for order in storage.sort_columns or ()),
        table_type=table.table_type or "",
        input_format=storage.input_format or "",
        owner=table.owner or "",
        write_id=table.write_id if table.write_id and table.write_id > 0 else None,
        serde=_serde(storage),
        stored_as_directories=bool(storage.stored_as_directories),
    )


def _partition(name: str, partition: Struct) -> PartitionInfo:
    storage = partition.storage
    return PartitionInfo(
        name=name,
        values=tuple(partition.values),
        location=storage.location or "",
        parameters=_parameters(partition.parameters),
        sort_columns=tuple(order.column for order in storage.sort_columns or ()),
        input_format=storage.input_format or "",
        serde=_serde(storage),
        stored_as_directories=bool(storage.stored_as_directories),
    )
