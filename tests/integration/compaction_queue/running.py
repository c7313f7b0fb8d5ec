"""Servers that another process of the tests has started, found by an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer

VARIABLE = "ACID_TESTS_RUNNING_METASTORE"
KIND = "hive-3-postgresql"


def environment_of(server: MetastoreServer) -> dict[str, str]:
    """By this another process finds the server, a metastore on PostgreSQL."""
    database = server.server_database
    return {VARIABLE: f"{server.work_dir}\n{server.port}\n{database.server.port}\n{database.name}"}


def running_server(kind: str) -> MetastoreServer | None:
    """The server of that kind that already runs; it is neither started nor stopped from here."""
    found = os.environ.get(VARIABLE)
    if found is None or kind != KIND:
        return None
    work_dir, port, database_port, name = found.split("\n")
    postgres = PostgresServer()
    postgres.port = int(database_port)
    database = ServerDatabase(postgres, name)
    return MetastoreServer(Path(work_dir), reaper=True, database=database, port=int(port))
