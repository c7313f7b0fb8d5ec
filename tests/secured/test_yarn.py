"""The whole chain where everything has Kerberos: metastore, HDFS and YARN in cluster mode, with tickets of seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.hdfs_metastore import warehouse
from tests.harness.kerberos_hdfs import KerberosHdfs
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_homes import spark_home
from tests.harness.spark_sites import SparkSite
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.airflow_tasks import run_tasks
from tests.storage.remote_tables import RemotePlace, RemoteTable
from tests.yarn.sites import ARCHIVE, packed_environment, yarn_site


@pytest.fixture(scope="module")
def reached(kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc) -> HdfsOptions:
    """How Airflow's tasks reach the HDFS."""
    keytab = str(kdc.keytab("hive"))
    return HdfsOptions(
        (kerberos_hdfs.web_address,), kerberos=True, kerberos_keytab=keytab, kerberos_client_principal=f"hive@{REALM}"
    )


@pytest.fixture(scope="module")
def kerberos_yarn(
    tmp_path_factory: pytest.TempPathFactory, kerberos_hdfs: KerberosHdfs, reached: HdfsOptions
) -> Iterator[YarnCluster]:
    """YARN with Kerberos, and the archive that docs/deploy.md names on HDFS."""
    folder = tmp_path_factory.mktemp("yarn")
    parent, _, name = ARCHIVE.rpartition("/")
    kerberos_hdfs.make_directory(f"{kerberos_hdfs.uri}{parent}", "hive")
    with Storages((reached,)).open(f"{kerberos_hdfs.uri}{parent}").create(name) as file:
        file.write(packed_environment(folder))
    with YarnCluster(folder, kerberos_hdfs, kerberos_hdfs.yarn_settings()) as cluster:
        yield cluster


@pytest.fixture
def site(kerberos_yarn: YarnCluster, kdc: KerberosKdc) -> SparkSite:
    """The documented example of cluster mode, with what Kerberos needs."""
    krb5 = f"-Djava.security.krb5.conf={kdc.config_file}"
    site = yarn_site(
        *(kerberos_yarn, spark_home().folder, "cluster"),
        keytab=str(kdc.keytab("hive")),
        principal=f"hive@{REALM}",
        yarn_track_via_rm_api=False,
    )
    options = {name: f"{value} {krb5}" for name, value in site.parameters["conf"].items() if "JavaOptions" in name}
    parameters = {**site.parameters, "conf": {**site.parameters["conf"], **options}}
    return SparkSite(site.connection, parameters, {**site.environment, "SPARK_SUBMIT_OPTS": krb5})


def test_sensor_operator_and_cleaner_work_in_containers_without_tickets(
    kerberos_yarn: YarnCluster,
    site: SparkSite,
    metastore_on_kerberos_hdfs: MetastoreServer,
    reached: HdfsOptions,
    tmp_path: Path,
) -> None:
    place = RemotePlace(Storages((reached,)), warehouse(kerberos_yarn.hdfs))
    table = RemoteTable.of(metastore_on_kerberos_hdfs, place, tmp_path / "table", ("4.0.1", "acid_part"), "on_yarn")
    name, options = f"{table.table.database}.{table.table.name}", {"hdfs": reached.to_json()}
    compacted, cleaned = run_tasks(metastore_on_kerberos_hdfs, name, options, {}, tmp_path / "airflow", site)
    assert [item["state"] for item in compacted] == ["compacted"] * 3
    assert [item["state"] for item in cleaned] == ["cleaned"] * 3
    assert table.read() == table.expected
    for entity in table.entities:
        assert [found[:5] for found in table.names(entity)] == ["base_"]
    [application] = kerberos_yarn.applications()
    assert application.state == "FINISHED"
    assert kerberos_yarn.attempts(application.id) == 1
    assert kerberos_yarn.processes(application.id) == []
