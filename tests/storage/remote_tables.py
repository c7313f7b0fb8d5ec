"""Hive's tables in a storage that is no folder of this machine: put there, compacted there, and read from a copy."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.filesystem import Storages
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.insert_only_reader import read_table as read_files
from tests.harness.metastore_server import MetastoreServer
from tests.harness.server_admin import admin_of

ROW_ID = ("row__id.writeid", "row__id.bucketid", "row__id.rowid")


@dataclass(frozen=True)
class RemotePlace:
    """A directory of a storage, for databases.

    :param uri: it exists.
    """

    storages: Storages
    uri: str

    def put(self, folder: Path, uri: str) -> None:
        """Copies a local folder to a URI, which exists, with all below it."""
        storage = self.storages.open(uri)
        for parent, folders, files in os.walk(folder):
            below = Path(parent).relative_to(folder)
            for name in folders:
                storage.make_directory(str(below / name))
            for name in files:
                storage.write_new(str(below / name), Path(parent, name).read_bytes())

    def get(self, uri: str, folder: Path) -> None:
        """Copies what readers see at a URI to a local folder, which is made.

        They see no files in hidden directories, which come and go.
        """
        storage = self.storages.open(uri)
        listing = storage.list()
        folder.mkdir(parents=True)
        for name in listing.directories:
            (folder / name).mkdir(parents=True, exist_ok=True)
        seen = [file for file in listing.files if not re.search(r"(^|/)[._][^/]*/", file.path)]
        for file in seen:
            (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.path).write_bytes(storage.read(file.path))


@dataclass(frozen=True)
class RemoteTable:
    """A registered fixture in another place.

    :param work: local folder for copies.
    """

    server: MetastoreServer
    place: RemotePlace
    table: FixtureTable
    work: Path

    @classmethod
    def of(
        cls,
        server: MetastoreServer,
        place: RemotePlace,
        work: Path,
        fixture: tuple[str, str],
        database: str,
    ) -> RemoteTable:
        """Registers a fixture, given by version and name."""
        version, name = fixture
        table = register(server, name, version, database, (place, work))
        return cls(server, place, table, work)

    @property
    def entities(self) -> list[Entity]:
        """Its partitions, or itself."""
        table = self.table
        return [Entity(table.database, table.name, partition) for partition in table.partitions or (None,)]

    @property
    def name(self) -> str:
        """As SQL has it, with its database."""
        return f"{self.table.database}.{self.table.name}"

    @property
    def columns(self) -> str:
        """What a query selects to see each row's id, too."""
        return ", ".join((*ROW_ID, *self.table.fixture.definition.columns))

    @property
    def expected(self) -> list[str]:
        """What Hive read when it had written the table."""
        return comparable(self.table.rows)

    def names(self, entity: Entity) -> list[str]:
        """What lies right in a partition."""
        uri = f"{self.table.uri}/{entity.partition}" if entity.partition else self.table.uri
        listing = self.place.storages.open(uri).list()
        return sorted({path.partition("/")[0] for path in (*listing.directories, *(f.path for f in listing.files))})

    def read(self, *, check_visibility: bool = True) -> list[str]:
        """All rows by the snapshot of this moment, as readers of Hive's kind see them, or of Trino's."""
        definition = self.table.fixture.definition
        with admin_of(self.server) as admin:
            snapshot = snapshot_now(admin, self.table.database, self.table.name, check_visibility=check_visibility)
        copy = self.work / f"copy-{len(list(self.work.iterdir()))}"
        self.place.get(self.table.uri, copy)
        keys = definition.partition_keys
        if not self.table.fixture.full_acid:
            return comparable(
                read_files(copy, definition.input_format, definition.columns, snapshot, partition_keys=keys)
            )
        return comparable(map(as_hive_prints, read_table(copy, definition.columns, snapshot, partition_keys=keys)))
