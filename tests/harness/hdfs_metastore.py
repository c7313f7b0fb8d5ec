"""A metastore that makes its tables' directories on HDFS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.harness.hdfs_server import HOST, HdfsServer
from tests.harness.metastore_database import MetastoreDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import UNPROTECTED, MetastoreServer, Protection


def metastore_on_hdfs(
    hdfs: HdfsServer,
    folder: Path,
    program: MetastoreProgram,
    database: MetastoreDatabase,
    *,
    reaper: bool,
    protection: Protection = UNPROTECTED,
) -> MetastoreServer:
    """One that is not started yet.

    :param folder: of what else belongs to it.
    """

    def java(distribution: Path, settings: Path, jars: Sequence[Path]) -> list[str]:
        return program.java(distribution, settings, [*jars, *hdfs.jars])

    return MetastoreServer(
        folder,
        reaper=reaper,
        program=replace(program, java=java),
        database=database,
        warehouse_uri=warehouse(hdfs),
        protection=protection,
        host=HOST,
    )


def warehouse(hdfs: HdfsServer) -> str:
    """Where the managed tables of all metastores on it lie."""
    return f"{hdfs.uri}/warehouse"
