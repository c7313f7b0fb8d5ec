"""Where a metastore keeps its tables: embedded Derby, or a database on a server."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from airflow_provider_acid.exceptions import MetastoreUnavailableError
from tests.harness.database_server import DatabaseServer, SqlRow
from tests.harness.jars import publish
from tests.harness.metastore_program import MetastoreProgram, write_settings
from tests.harness.process_group import start_group

SCHEMA_SECONDS = 90


class MetastoreDatabase(Protocol):
    """What a metastore server needs to know about its database."""

    def prepare(self, program: MetastoreProgram) -> None:
        """Makes the database with its empty schema where it is not there yet."""

    def settings(self) -> Mapping[str, str]:
        """The settings by which the metastore connects."""

    def jars(self, program: MetastoreProgram) -> Sequence[Path]:
        """The drivers that the metastore does not bring."""


@dataclass(frozen=True)
class DerbyDatabase:
    """A folder that one metastore at a time can open.

    :param folder: made where it is missing.
    """

    folder: Path

    def prepare(self, program: MetastoreProgram) -> None:
        if not self.folder.exists():
            shutil.copytree(_initialised_derby(program), self.folder)

    def settings(self) -> Mapping[str, str]:
        return _derby_settings(self.folder, create=False)

    def jars(self, program: MetastoreProgram) -> Sequence[Path]:
        return ()


@dataclass
class ServerDatabase:
    """A database on PostgreSQL or MariaDB; the server must run whenever the metastore does.

    :param name: of the database, unique on its server.
    """

    server: DatabaseServer
    name: str
    _prepared: bool = field(default=False, init=False)

    @property
    def url(self) -> str:
        """Its SQLAlchemy URL."""
        return self.server.url(self.name)

    def query(self, sql: str) -> list[SqlRow]:
        """Runs one statement in a transaction of its own; its rows, none where it returns none."""
        return self.server.query(self.name, sql)

    def prepare(self, program: MetastoreProgram) -> None:
        if not self._prepared:
            self.server.create_database(self.name, program.databases.schema(self.server.schema))
            self._prepared = True

    def settings(self) -> Mapping[str, str]:
        return self.server.jdbc_settings(self.name)

    def jars(self, program: MetastoreProgram) -> Sequence[Path]:
        return program.databases.jars()


def _initialised_derby(program: MetastoreProgram) -> Path:
    """A Derby folder that holds the empty schema, made once and kept beside the jars to be copied from."""
    distribution = program.distribution()
    template = distribution / "derby-initialised"
    if not template.is_dir():
        with tempfile.TemporaryDirectory(dir=distribution, prefix=".schema-") as temporary:
            folder = Path(temporary)
            write_settings(folder, _derby_settings(folder / "derby", create=True))
            command = program.command(folder, program.schema_tool, "-dbType", "derby", "-initSchema")
            with (folder / "schematool.log").open("wb") as log:
                environment = {program.home_variable: str(distribution)}
                group = start_group(command, folder, stdout=log, environment=environment)
            try:
                failed = group.leader.wait(timeout=SCHEMA_SECONDS) != 0
            finally:
                group.end(signal.SIGKILL)
            if failed:
                tail = (folder / "schematool.log").read_text(errors="replace")[-1000:]
                raise MetastoreUnavailableError(
                    "Derby schema of the metastore", f"the schema tool failed: {tail}", f"remove {distribution}"
                )
            publish(folder / "derby", template)
    return template


def _derby_settings(database: Path, *, create: bool) -> Mapping[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database}{';create=true' if create else ''}",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    }
