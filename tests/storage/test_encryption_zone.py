"""Tables in encryption zones of HDFS, which no rename leaves or enters: a result is made where it will lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.hdfs_metastore import metastore_on_hdfs, warehouse
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.zoned_hdfs import ZonedHdfs
from tests.storage.airflow_tasks import run_tasks
from tests.storage.hdfs_stores import Administrator
from tests.storage.remote_tables import RemotePlace, RemoteTable

DATABASE = "zoned"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZonedHdfs]:
    """The server; the directory of :data:`DATABASE` is a zone."""
    with ZonedHdfs(tmp_path_factory.mktemp("zoned-hdfs")) as hdfs:
        Administrator(hdfs, f"/warehouse/{DATABASE}.db").call("PUT", "", "MKDIRS")
        hdfs.make_zone(f"/warehouse/{DATABASE}.db")
        yield hdfs


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, hdfs: ZonedHdfs, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1."""
    folder, database = tmp_path_factory.mktemp("metastore"), ServerDatabase(postgres, "zoned")
    with metastore_on_hdfs(hdfs, folder, hive_4_metastore_program(), database, reaper=False) as server:
        yield server


@pytest.fixture
def place(hdfs: ZonedHdfs) -> RemotePlace:
    """Its warehouse."""
    options = HdfsOptions(web_addresses=(hdfs.web_address,), user=hdfs.superuser)
    return RemotePlace(Storages((options,)), warehouse(hdfs))


def test_a_table_in_a_zone_is_compacted_and_cleaned_with_a_run_directory_outside(
    hdfs: ZonedHdfs, server: MetastoreServer, place: RemotePlace, tmp_path: Path
) -> None:
    table = RemoteTable.of(server, place, tmp_path / "table", ("4.0.1", "acid_part"), DATABASE)
    assert table.table.uri.startswith(f"{hdfs.uri}/warehouse/{DATABASE}.db/")
    options = {"hdfs": place.storages.of(HdfsOptions).to_json()}
    compacted, cleaned = run_tasks(server, table.name, options, {}, tmp_path / "airflow")
    assert [item["state"] for item in compacted] == ["compacted"] * 3
    assert [item["state"] for item in cleaned] == ["cleaned"] * 3
    assert table.read() == table.expected
    for entity in table.entities:
        [base] = table.names(entity)
        path = f"{table.table.uri.removeprefix(hdfs.uri)}/{entity.partition}/{base}"
        files = Administrator(hdfs, path).call("GET", "", "LISTSTATUS").json()["FileStatuses"]["FileStatus"]
        assert files
        assert all(file["encBit"] for file in files)


def test_what_would_cross_the_border_of_a_zone_is_refused_by_its_name(hdfs: ZonedHdfs, place: RemotePlace) -> None:
    """Nothing of this package does it; the zones of this test are real."""
    storage = place.storages.open(place.uri)
    storage.make_directory("outside")
    with pytest.raises(StorageError, match="encryption zone"):
        storage.publish("outside", f"{DATABASE}.db/inside")
