"""A metastore that makes its tables' directories on HDFS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.harness.hdfs_server import HdfsServer
from tests.harness.metastore_database import MetastoreDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer


def metastore_on_hdfs(
    hdfs: HdfsServer, folder: Path, program: MetastoreProgram, database: MetastoreDatabase, *, reaper: bool
) -> MetastoreServer:
    """One that is not started yet.

    :param folder: of what else belongs to it.
    """

    def java(distribution: Path, settings: Path, jars: Sequence[Path]) -> list[str]:
        return program.java(distribution, settings, [*jars, *hdfs.jars])

    program_on_hdfs = replace(program, java=java)
    uri = warehouse(hdfs)
    return MetastoreServer(folder, reaper=reaper, program=program_on_hdfs, database=database, warehouse_uri=uri)


def warehouse(hdfs: HdfsServer) -> str:
    """Where the managed tables of all metastores on it lie."""
    return f"{hdfs.uri}/warehouse"
