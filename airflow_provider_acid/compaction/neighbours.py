"""Two tables over one directory: each one's cleaning would delete files of the other, so neither is touched.

A place that only one table or partition can have needs no look: the folder of its database with its own name. Every
other place is compared with where all others lie, by the metastore's database where there is one, else by the
catalogue, whose tables and partitions are all fetched. What cannot be compared is refused, unless the site says that
nobody else lies there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory, Occupied
from airflow_provider_acid.compaction.facts import partitions_that_are_there
from airflow_provider_acid.exceptions import (
    MetastoreError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    UnsupportedTableError,
)
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.locations import StoredLocations
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import PartitionInfo, TableInfo

log = logging.getLogger(__name__)

DEFAULT_DATABASE = "default"
"""The one database without a folder of its own in the warehouse."""

MOST_PARTITIONS = 200_000
"""Of all tables, looked at without the metastore's database: 200 calls, each of a second or so on a slow server."""


@dataclass
class KnownPlaces:
    """What has been learnt of who lies where, for one run; whoever asks for more holds its lock meanwhile."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    warehouse: Directory | None = None
    databases: dict[str, tuple[Directory, ...]] = field(default_factory=dict)
    partitions: dict[Entity, Occupied] = field(default_factory=dict)
    near: dict[tuple[str, bool, Directory], Occupied | None] = field(default_factory=dict)
    located_tables: list[tuple[Entity, str]] | None = None
    tables: Occupied | None = None
    apart: Occupied | None = None
    catalogue_error: MetastoreError | None = None
    others: dict[tuple[Entity, str], tuple[Entity, str] | None] = field(default_factory=dict)


class Neighbours:
    """Judges locations; belongs to one thread, like its client.

    :param database: the metastore's database; None where it is not at hand.
    :param exclusive: patterns of places that nobody else has where no other table is known to lie there.
    :param known: what it has learnt is kept there, for all who are given the same.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        database: MetastoreDatabase | None = None,
        exclusive: Sequence[str] = (),
        known: KnownPlaces | None = None,
    ) -> None:
        self._client = client
        self._exclusive = [str(Directory.of(pattern)) for pattern in exclusive]
        self._stored = None if database is None else StoredLocations(database)
        self._known = KnownPlaces() if known is None else known
        self._passed: TableInfo | None = None
        """The last table that was found to lie alone, of which many partitions follow as a rule."""

    def check(self, table: TableInfo, partition: PartitionInfo | None) -> None:
        """Do nothing where nobody else's files can lie in the directories of a table and its partition.

        :raises UnsupportedTableError: another table's or partition's location is the same, above or below, or it
            cannot be known.
        """
        if table is self._passed and (partition is None or _is_plainly_below(table.location, partition)):
            return
        root = Directory.of(table.location)
        with self._known.lock:
            self._check(Entity(table.database, table.name), table.location, root)
            self._passed = table
            if partition is not None:
                self._check(Entity(table.database, table.name, partition.name), partition.location, root)

    def _check(self, entity: Entity, uri: str, root: Directory) -> None:
        if (entity, uri) not in self._known.others:
            self._known.others[entity, uri] = self._other(entity, Directory.of(uri), root)
        found = self._known.others[entity, uri]
        if found is not None:
            raise UnsupportedTableError(
                str(entity),
                f"lies at {uri}, and {found[0]} at {found[1]}: the cleaning of one would delete files of the other",
                "give each a directory of its own, and move its files there, or drop one of them without its files",
            )

    def _is_own_place(self, entity: Entity, place: Directory, root: Directory) -> bool:
        """Whether nobody but this table, or this partition of the table at ``root``, can have this place."""
        if entity.partition is not None:
            return place == root.child(entity.partition)
        folder = "" if entity.database == DEFAULT_DATABASE else f"{entity.database}.db"
        usual = self._warehouse().child(folder).child(entity.table)
        if usual.path == place.path and usual.store in (place.store, ("", "")):
            return True
        # A folder that is named after its database is no other database's.
        names = ((entity.database,), (f"{entity.database}.db",))
        folders = [folder for folder in self._folders(entity.database) if folder.path[-1:] in names]
        return place in [folder.child(entity.table) for folder in folders]

    def _warehouse(self) -> Directory:
        if self._known.warehouse is None:
            self._known.warehouse = Directory.of(self._client.config_value("metastore.warehouse.dir"))
        return self._known.warehouse

    def _folders(self, database: str) -> tuple[Directory, ...]:
        if database not in self._known.databases:
            found = self._client.get_database(database)
            self._known.databases[database] = Directory.of(found.location), Directory.of(found.managed_location)
        return self._known.databases[database]

    def _other(self, entity: Entity, place: Directory, root: Directory) -> tuple[Entity, str] | None:
        if self._is_own_place(entity, place, root):
            return None
        stored = self._near(entity, root if root.holds(place) else place)
        if stored is not None:
            return stored.other(place, entity)
        if entity.partition is not None:
            found = self._own_partitions(entity).other(place, entity)
            if found is not None:
                return found
        return self._other_in_catalogue(entity, place)

    def _other_in_catalogue(self, entity: Entity, place: Directory) -> tuple[Entity, str] | None:
        table = Entity(entity.database, entity.table)
        is_exclusive = any(fnmatchcase(str(place), pattern) for pattern in self._exclusive)
        try:
            if self._known.catalogue_error is not None:
                raise self._known.catalogue_error
            found = self._tables().other(place, table)
            return self._apart().other(place, table) if found is None and not is_exclusive else found
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            self._known.catalogue_error = error
            if is_exclusive:
                return None
            raise UnsupportedTableError(
                str(entity),
                f"lies at {place}, and whether somebody else lies there cannot be known ({error.reason})",
                "name the metastore's database (metastore_db_conn_id), or, where nobody else lies there, add the place "
                "to [hive_acid] exclusive_locations",
            ) from error

    def _near(self, entity: Entity, around: Directory) -> Occupied | None:
        """What the database knows, asked once for all partitions below their table; None where it cannot be asked."""
        key = entity.full_table_name, entity.partition is None, around
        if self._stored is not None and key not in self._known.near:
            self._known.near[key] = self._ask(self._stored, entity, around)
        return self._known.near.get(key)

    def _ask(self, stored: StoredLocations, entity: Entity, around: Directory) -> Occupied | None:
        try:
            return Occupied(stored.near(around, entity))
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            log.warning("%s: its location is compared with those in the catalogue alone, for %s", entity, error)
            return None

    def _located_tables(self) -> list[tuple[Entity, str]]:
        if self._known.located_tables is None:
            self._known.located_tables = [(table, uri) for table, uri in self._client.table_locations() if uri]
        return self._known.located_tables

    def _tables(self) -> Occupied:
        if self._known.tables is None:
            self._known.tables = Occupied(self._located_tables())
        return self._known.tables

    def _apart(self) -> Occupied:
        if self._known.apart is None:
            self._known.apart = Occupied(self._partitions_apart())
        return self._known.apart

    def _partitions_apart(self) -> Iterator[tuple[Entity, str]]:
        """Tables at the places of those of their partitions that do not lie below them; those below need no look."""
        looked_at = 0
        for table, uri in self._located_tables():
            root = Directory.of(uri)
            try:
                names = self._client.get_partition_names(table.database, table.table)
                looked_at += len(names)
                if looked_at > MOST_PARTITIONS:
                    raise MetastoreError(
                        "partitions of all tables", f"there are more than {MOST_PARTITIONS:,}", "ask the database"
                    )
                for place in self._client.partition_locations(table.database, table.table, names):
                    if not root.holds(Directory.of(place)):
                        yield table, place
            except ObjectNotFoundError:
                log.info("%s was dropped while the places of all partitions were fetched", table)

    def _own_partitions(self, entity: Entity) -> Occupied:
        table = Entity(entity.database, entity.table)
        if table not in self._known.partitions:
            self._known.partitions[table] = Occupied(self._partition_locations(table))
        return self._known.partitions[table]

    def _partition_locations(self, table: Entity) -> Iterator[tuple[Entity, str]]:
        names = self._client.get_partition_names(table.database, table.table)
        for partition in partitions_that_are_there(self._client, table.database, table.table, names):
            yield Entity(table.database, table.table, partition.name), partition.location


def _is_plainly_below(location: str, partition: PartitionInfo) -> bool:
    """Whether a partition lies in its own folder of its table's location, by its spelling alone."""
    name = partition.name
    is_plain = (location, name) == (location.strip(), name.strip()) and "/." not in f"/{name}"
    return is_plain and partition.location == f"{location}/{name}"
