"""All with Kerberos, metastore and HDFS with TLS besides: YARN in cluster mode, with tickets of seconds."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.certificates import CertificateAuthority
from tests.harness.executor_faults import Fault
from tests.harness.hdfs_metastore import warehouse
from tests.harness.kerberos_hdfs import KerberosHdfs
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_homes import spark_home
from tests.harness.spark_sites import SparkSite
from tests.harness.yarn_cluster import YarnCluster
from tests.secured.conftest import TICKET_SECONDS
from tests.storage.remote_tables import RemotePlace, RemoteTable
from tests.unit.test_documented_settings import json_of
from tests.yarn.runs import Run
from tests.yarn.sites import ARCHIVE, upload_environment, yarn_site

_NUMBERS = count()


@pytest.fixture(scope="module")
def reached(kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc, authority: CertificateAuthority) -> HdfsOptions:
    """How Airflow's tasks reach the HDFS."""
    keytab = str(kdc.keytab("hive"))
    return HdfsOptions(
        (kerberos_hdfs.web_address,),
        kerberos=True,
        kerberos_keytab=keytab,
        kerberos_client_principal=f"hive@{REALM}",
        tls=True,
        ca_file=str(authority.file),
    )


@pytest.fixture(scope="module")
def kerberos_yarn(
    tmp_path_factory: pytest.TempPathFactory, kerberos_hdfs: KerberosHdfs, reached: HdfsOptions
) -> Iterator[YarnCluster]:
    """YARN with Kerberos, and the archive that docs/deploy.md names on HDFS."""
    folder = tmp_path_factory.mktemp("yarn")
    kerberos_hdfs.make_directory(f"{kerberos_hdfs.uri}{ARCHIVE.rpartition('/')[0]}", "hive")
    upload_environment(Storages((reached,)), kerberos_hdfs, folder)
    with YarnCluster(folder, kerberos_hdfs, kerberos_hdfs.yarn_settings()) as cluster:
        yield cluster


@pytest.fixture
def run(
    kerberos_yarn: YarnCluster,
    kdc: KerberosKdc,
    metastore_on_kerberos_hdfs: MetastoreServer,
    reached: HdfsOptions,
    tmp_path: Path,
) -> Run:
    """Of a new table, by the documented example of cluster mode and what Kerberos needs besides."""
    krb5 = f"-Djava.security.krb5.conf={kdc.config_file}"
    [example] = json_of("docs/deploy.md", "YARN with Kerberos")
    who = {**example, "keytab": str(kdc.keytab("hive")), "principal": f"hive@{REALM}"}

    def site(mode: str, faults: tuple[Fault, ...], **parameters: Any) -> SparkSite:
        site = yarn_site(kerberos_yarn, spark_home().folder, mode, faults, **who, **parameters)
        options = {name: f"{value} {krb5}" for name, value in site.parameters["conf"].items() if "JavaOptions" in name}
        if mode == "client":
            # The driver runs beside Airflow's task, without a token, and needs Kerberos' libraries.
            options["spark.pyspark.driver.python"] = sys.executable
        parameters = {**site.parameters, "conf": {**site.parameters["conf"], **options}}
        return SparkSite(site.connection, parameters, {**site.environment, "SPARK_SUBMIT_OPTS": krb5})

    place = RemotePlace(Storages((reached,)), warehouse(kerberos_yarn.hdfs))
    database = f"on_yarn_{next(_NUMBERS)}"
    table = RemoteTable.of(metastore_on_kerberos_hdfs, place, tmp_path / "table", ("4.0.1", "acid_part"), database)
    return Run(kerberos_yarn, table, tmp_path, site)


def test_an_operator_that_is_killed_and_tried_again_outlives_its_tickets(run: Run) -> None:
    """The containers have no tickets at all, but the delegation tokens that Spark got for them."""
    task, application = run.begin("cluster", idle_timeout_seconds=600)
    time.sleep(TICKET_SECONDS)
    task.kill()
    again = run.try_again("cluster")
    ended = run.wait_for_end(application.id, 60)
    assert again.wait() == 0, again.log()
    [_, second] = run.new_applications()
    assert (ended.finished < second.finished, second.state) == (True, "FINISHED")
    assert [run.yarn.attempts(each.id) for each in run.new_applications()] == [1, 1]
    run.check_compacted()
    assert run.wait_for_end(second.id, 60).has_ended
    said = [again.log(), task.log(), *(run.yarn.log(each.id) for each in run.new_applications())]
    assert not [text for text in said if re.search(r"delegation=[\w-]{20}", text)]


def test_in_client_mode_the_driver_has_a_ticket_and_the_containers_have_tokens(run: Run) -> None:
    run.known |= {each.id for each in run.yarn.applications()}
    task = run.try_again("client")
    assert task.wait() == 0, task.log()
    [application] = run.new_applications()
    assert run.wait_for_end(application.id, 60).state == "FINISHED"
    run.check_compacted()
