"""HDFS, YARN and a metastore, shared by all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.compaction_chain import wait_until
from tests.harness.hdfs_metastore import metastore_on_hdfs, warehouse
from tests.harness.hdfs_server import HdfsServer
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.hdfs_stores import Administrator
from tests.storage.remote_tables import RemotePlace, RemoteTable
from tests.yarn.sites import ARCHIVE, upload_environment

LEAVE_SECONDS = 30
"""How long what a test started may take to end after it."""

_NUMBERS = count()


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, hdfs: HdfsServer, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1, its tables on HDFS."""
    folder, database = tmp_path_factory.mktemp("metastore"), ServerDatabase(postgres, "yarn")
    with metastore_on_hdfs(hdfs, folder, hive_4_metastore_program(), database, reaper=False) as server:
        yield server


@pytest.fixture(scope="session")
def place(hdfs: HdfsServer) -> RemotePlace:
    """A warehouse on HDFS."""
    storages = Storages((HdfsOptions(web_addresses=(hdfs.web_address,), user=hdfs.superuser),))
    return RemotePlace(storages, warehouse(hdfs))


@pytest.fixture(scope="session")
def yarn(tmp_path_factory: pytest.TempPathFactory, hdfs: HdfsServer, place: RemotePlace) -> Iterator[YarnCluster]:
    """YARN, with the archive that docs/deploy.md names on HDFS."""
    folder = tmp_path_factory.mktemp("yarn")
    Administrator(hdfs, ARCHIVE.rpartition("/")[0]).call("PUT", "", "MKDIRS")
    upload_environment(place.storages, hdfs, folder)
    with YarnCluster(folder, hdfs) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _nothing_is_left(yarn: YarnCluster) -> Iterator[None]:
    """After each test no application runs any more, and no container is there: as YARN sees it, and this machine."""
    yield
    wait_until(lambda: all(each.has_ended for each in yarn.applications()), LEAVE_SECONDS)
    wait_until(lambda: yarn.containers() == 0, LEAVE_SECONDS)
    wait_until(lambda: yarn.processes("") == [], LEAVE_SECONDS)


@pytest.fixture
def table(server: MetastoreServer, place: RemotePlace, tmp_path: Path) -> RemoteTable:
    """One with two partitions, in a database of its own."""
    return RemoteTable.of(server, place, tmp_path / "table", ("4.0.1", "acid_part"), f"yarn_{next(_NUMBERS)}")
