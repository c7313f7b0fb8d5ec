"""All with Kerberos, metastore and HDFS with TLS besides: YARN in cluster mode, with tickets of seconds."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.delegation import TOKEN_FILE_VARIABLE, read_tokens
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.certificates import CertificateAuthority
from tests.harness.every_case import some_of
from tests.harness.executor_faults import Fault
from tests.harness.hdfs_metastore import warehouse
from tests.harness.hive_engine import HiveEngine
from tests.harness.kerberos_hdfs import KerberosHdfs
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_homes import spark_home
from tests.harness.spark_sites import SparkSite
from tests.harness.yarn_cluster import YarnCluster
from tests.judge.readings import check_every_way, read
from tests.secured.conftest import ONE_DAY_SECONDS, TICKET_SECONDS, TOKEN_SECONDS
from tests.storage.airflow_tasks import LOG_FILE, run_tasks
from tests.storage.remote_tables import RemotePlace, RemoteTable
from tests.unit.test_documented_settings import json_of
from tests.yarn.runs import Run
from tests.yarn.sites import ARCHIVE, upload_environment, yarn_site

END_SECONDS = 120
"""How long an application may take to end, the start of the try included that ends it."""

TOKENS_ENDED = "Remedy: let the task try again, which gets new delegation tokens"

_NUMBERS = count()
SiteOf = Callable[..., SparkSite]


@dataclass(frozen=True)
class Table:
    """A table, and Hive that reads it.

    :param rows: with their ids, as Hive read them when the table was new.
    """

    hive: HiveEngine
    remote: RemoteTable
    rows: list[str]

    def check(self, when: str) -> None:
        """Hive reads the same rows in every way.

        :raises AssertionError: it does not.
        """
        check_every_way(self.hive, self.remote.name, self.remote.columns, self.rows, when)


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


@pytest.fixture(scope="module")
def site(kerberos_yarn: YarnCluster, kdc: KerberosKdc) -> SiteOf:
    """The documented example of a deploy mode, which still needs somebody's ticket or keytab."""
    krb5 = f"-Djava.security.krb5.conf={kdc.config_file}"
    [example] = json_of("docs/deploy.md", "YARN with Kerberos")
    rest = {name: value for name, value in example.items() if name not in ("keytab", "principal")}

    def make(mode: str, faults: tuple[Fault, ...] = (), **parameters: Any) -> SparkSite:
        site = yarn_site(kerberos_yarn, spark_home().folder, mode, faults, **rest, **parameters)
        options = {name: f"{value} {krb5}" for name, value in site.parameters["conf"].items() if "JavaOptions" in name}
        if mode == "client":
            # The driver runs beside Airflow's task, without a token, and needs Kerberos' libraries.
            options["spark.pyspark.driver.python"] = sys.executable
        parameters = {**site.parameters, "conf": {**site.parameters["conf"], **options}}
        return SparkSite(site.connection, parameters, {**site.environment, "SPARK_SUBMIT_OPTS": krb5})

    return make


@pytest.fixture
def remote(
    metastore_on_kerberos_hdfs: MetastoreServer, reached: HdfsOptions, kerberos_hdfs: KerberosHdfs, tmp_path: Path
) -> RemoteTable:
    """A new table."""
    place = RemotePlace(Storages((reached,)), warehouse(kerberos_hdfs))
    fixture, database = ("4.0.1", "acid_part"), f"on_yarn_{next(_NUMBERS)}"
    return RemoteTable.of(metastore_on_kerberos_hdfs, place, tmp_path / "table", fixture, database)


@pytest.fixture
def table(hive_on_kerberos_hdfs: HiveEngine, remote: RemoteTable) -> Table:
    """The same, and its rows as Hive reads them before."""
    return Table(hive_on_kerberos_hdfs, remote, read(hive_on_kerberos_hdfs, remote.name, remote.columns))


@pytest.fixture
def run(kerberos_yarn: YarnCluster, kdc: KerberosKdc, remote: RemoteTable, site: SiteOf, tmp_path: Path) -> Run:
    """Of the table, with the keytab of its owner."""
    who = {"keytab": str(kdc.keytab("hive")), "principal": f"hive@{REALM}"}
    return Run(kerberos_yarn, remote, tmp_path, partial(site, **who))


@pytest.fixture
def run_by_ticket(
    kerberos_yarn: YarnCluster, kdc: KerberosKdc, remote: RemoteTable, site: SiteOf, tmp_path: Path
) -> Iterator[Run]:
    """The same with a ticket of his that somebody renews."""
    with kdc.renewed_ticket_cache("hive") as tickets:

        def with_tickets(*arguments: Any, **parameters: Any) -> SparkSite:
            made = site(*arguments, **parameters)
            return replace(made, environment={**made.environment, "KRB5CCNAME": str(tickets)})

        yield Run(kerberos_yarn, remote, tmp_path, with_tickets)


def test_an_operator_that_is_killed_and_tried_again_outlives_its_tickets(run: Run, table: Table) -> None:
    """The containers have no tickets at all, but the delegation tokens that Spark got for them."""
    task, application = run.begin("cluster", idle_timeout_seconds=600)
    tokens = [token.url_form for token in read_tokens(Path(run.stuck.worker().environ()[TOKEN_FILE_VARIABLE]))]
    arguments = [" ".join(process.cmdline()) for process in run.yarn.processes(application.id)]
    assert [line for line in arguments if "--run-directory" in line]
    time.sleep(TICKET_SECONDS)
    task.kill()
    again = run.try_again("cluster")
    ended = run.wait_for_end(application.id, END_SECONDS)
    assert again.wait() == 0, again.log()
    [_, second] = run.new_applications()
    assert (ended.finished < second.finished, second.state) == (True, "FINISHED")
    assert [run.yarn.attempts(each.id) for each in run.new_applications()] == [1, 1]
    table.check("compacted")
    run.check_compacted()
    table.check("cleaned")
    assert run.wait_for_end(second.id, END_SECONDS).has_ended
    logs = [again.log(), task.log(), *(run.yarn.log(each.id) for each in run.new_applications())]
    check_no_token(*logs, *arguments)
    assert tokens
    assert not [text for text in (*logs, *arguments) if any(token in text for token in tokens)]


@pytest.mark.parametrize(("who", "mode"), some_of([*product(("run", "run_by_ticket"), ("client", "cluster"))], 0))
def test_a_job_outlives_its_tickets_and_the_first_day_of_those_tokens_that_yarn_renews(
    request: pytest.FixtureRequest, who: str, mode: str
) -> None:
    """With a keytab Spark's driver gets others in cluster mode, and then new ones, of which Python does not hear."""
    run: Run = request.getfixturevalue(who)
    tokens_end = TOKEN_SECONDS < ONE_DAY_SECONDS
    # A job of many partitions is given up after half a minute; then each gets a job of its own.
    fault = Fault.at(run.folder / "waits", "/attempts/", "writing", tasks=2 if tokens_end else 1)
    task, application = run.begin(mode, fault)
    time.sleep(TOKEN_SECONDS if tokens_end else TICKET_SECONDS)
    fault.let_go()
    if tokens_end and (who, mode) == ("run", "cluster"):
        assert task.wait() == 1
        assert TOKENS_ENDED in task.log()
        assert run.table.read() == run.table.expected
    else:
        assert task.wait() == 0, task.log()
        run.check_compacted()
    assert run.wait_for_end(application.id, END_SECONDS).has_ended
    assert run.yarn.attempts(application.id) == 1


def test_a_job_whose_tokens_have_their_last_day_fails_by_name_and_its_next_try_has_new_ones(
    run: Run, table: Table, kerberos_hdfs: KerberosHdfs
) -> None:
    task, application = run.begin("cluster")
    kerberos_hdfs.cancel_tokens("hive", Path(run.stuck.worker().environ()[TOKEN_FILE_VARIABLE]))
    run.stuck.release()
    assert task.wait() == 1
    assert TOKENS_ENDED in task.log()
    assert run.wait_for_end(application.id, END_SECONDS).has_ended
    table.check("as before")
    again = run.try_again("cluster")
    assert again.wait() == 0, again.log()
    table.check("compacted")
    run.check_compacted()


def test_sensor_operator_and_cleaner_work_for_the_tables_owner(
    kerberos_yarn: YarnCluster, kdc: KerberosKdc, table: Table, site: SiteOf, reached: HdfsOptions, tmp_path: Path
) -> None:
    """By a ticket that somebody renews: Spark takes no keytab beside the name of another."""
    before = [application.id for application in kerberos_yarn.applications()]
    airflow = replace(
        reached,
        kerberos_keytab=str(kdc.keytab("airflow")),
        kerberos_client_principal=f"airflow@{REALM}",
        proxy_user="hive",
    )
    with kdc.renewed_ticket_cache("airflow") as tickets:
        outcomes = run_tasks(
            *(table.remote.server, table.remote.name, {"hdfs": airflow.to_json()}, {"KRB5CCNAME": str(tickets)}),
            *(tmp_path / "airflow", site("cluster", proxy_user="hive")),
        )
    assert [[item["state"] for item in items] for items in outcomes] == [["compacted"] * 3, ["cleaned"] * 3]
    table.check("cleaned")
    [application] = [each for each in kerberos_yarn.applications() if each.id not in before]
    assert (application.state, kerberos_yarn.attempts(application.id)) == ("FINISHED", 1)
    check_no_token((tmp_path / "airflow" / LOG_FILE).read_text(), kerberos_yarn.log(application.id))


def check_no_token(*said: str) -> None:
    """No log holds a delegation token as WebHDFS takes it."""
    assert not [text for text in said if re.search(r"delegation=[\w-]{20}", text)]
