from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.connection import MetastoreConnection
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.thrift.wire import Method
from tests.harness import the_hive_4
from tests.harness.airflow_connections import connections_to
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_cluster import SparkCluster
from tests.harness.spark_homes import SPARKS, THE_SPARK
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_site import Site

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def metastore(hive_4_metastore: MetastoreServer) -> MetastoreServer:
    """Hive 4.0.1 on Derby, without a reaper; tests use a database of their own in it."""
    return hive_4_metastore


@pytest.fixture(scope="session")
def spark_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], SparkCluster]]:
    """A master and two workers by Spark's version, started when a test asks for it first."""
    with ExitStack() as stack:

        @cache
        def started(version: str) -> SparkCluster:
            folder = tmp_path_factory.mktemp(f"spark-{version}")
            cluster = stack.enter_context(SparkCluster(folder, SPARKS[version]()))
            assert cluster.version.startswith(f"{version}.")
            return cluster

        yield started


@pytest.fixture
def spark_version(request: pytest.FixtureRequest) -> str:
    """:data:`THE_SPARK`, unless the test names another of :data:`SPARKS`."""
    return str(getattr(request, "param", THE_SPARK))


@pytest.fixture
def cluster(
    spark_clusters: Callable[[str], SparkCluster], spark_version: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> SparkCluster:
    """The Spark cluster, with Airflow's connections that lead to it and to the site's metastore."""
    spark_cluster = spark_clusters(spark_version)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark_cluster.connection))
    for name, value in {**connections_to(site.server), **spark_cluster.environment}.items():
        monkeypatch.setenv(name, value)
    return spark_cluster


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each call of a metastore is made."""
    made: Counter[str] = Counter()
    invoke = MetastoreConnection._invoke

    def counted(self: Any, subject: str, method: Method, *arguments: Any, **options: Any) -> Any:
        made[method.name] += 1
        return invoke(self, subject, method, *arguments, **options)

    monkeypatch.setattr(MetastoreConnection, "_invoke", counted)
    return made


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Site:
    """A new database, in :mod:`~tests.harness.the_hive_4` unless the test names another."""
    site: Site = request.getfixturevalue(f"{getattr(request, 'param', the_hive_4.NAME)}_site")
    return site


@pytest.fixture
def keeping(site: Site) -> Site:
    """The site, with what a compaction replaces kept for an undo."""
    site.settings = replace(site.settings, keep_replaced_hours=48.0, minor_lock_wait_seconds=2.0)
    return site


@pytest.fixture
def hive_4_site(metastore: MetastoreServer) -> Iterator[Site]:
    """A new database; transactions that the test leaves open are aborted."""
    yield from make_site(metastore)


@pytest.fixture
def hive_4_on_postgres_site(hive_4_metastore_on_postgres: MetastoreServer) -> Iterator[Site]:
    """The same on PostgreSQL."""
    yield from make_site(hive_4_metastore_on_postgres)


@pytest.fixture
def hive_3_site(hive_3_metastore: MetastoreServer) -> Iterator[Site]:
    """The same in Hive 3.1.3, whose own Initiator and Cleaner run beside."""
    yield from make_site(hive_3_metastore)


@pytest.fixture
def hive_4_alpha_site(hive_4_alpha_metastore: MetastoreServer) -> Iterator[Site]:
    """The same in Hive 4.0.0-alpha-1, whose own Initiator and Cleaner run beside."""
    yield from make_site(hive_4_alpha_metastore)


@pytest.fixture
def hive_4_0_0_site(hive_4_0_0_metastore: MetastoreServer) -> Iterator[Site]:
    """The same in Hive 4.0.0."""
    yield from make_site(hive_4_0_0_metastore)


@pytest.fixture
def hive_4_1_site(hive_4_1_metastore: MetastoreServer) -> Iterator[Site]:
    """The same in Hive 4.1.0, whose own Initiator and Cleaner run beside."""
    yield from make_site(hive_4_1_metastore)


@pytest.fixture
def hive_4_2_site(hive_4_2_metastore: MetastoreServer) -> Iterator[Site]:
    """The same in Hive 4.2.1."""
    yield from make_site(hive_4_2_metastore)


@pytest.fixture
def hive_3_site_on_mariadb(hive_3_metastore_on_mariadb: MetastoreServer) -> Iterator[Site]:
    """The same on MariaDB."""
    yield from make_site(hive_3_metastore_on_mariadb)


def make_site(metastore: MetastoreServer) -> Iterator[Site]:
    """A site in a database of its own; what is open at its end is aborted."""
    hive_database = None if metastore.database_url is None else MetastoreDatabase(metastore.database_url)
    addresses = [MetastoreAddress(metastore.host, metastore.port)]
    with (
        metastore.in_use(),
        ThriftAdmin(metastore.host, metastore.port) as admin,
        AcidMetastoreClient(addresses, user="tester") as client,
    ):
        database = f"site{next(_NUMBERS)}"
        admin.create_database(database)
        site = Site(metastore, admin, client, database, hive_database=hive_database)
        if site.renames_publish:
            # The readers that a test holds stay; a first base need not wait long for them.
            site.settings = replace(site.settings, minor_lock_wait_seconds=1.0)
        try:
            yield site
        finally:
            site.close()
            # Also those of processes that the test killed: they would hold back every cleaner of the shared metastore.
            for txn_id in client.open_transactions().open:
                with suppress(OwnershipLostError):
                    client.abort(txn_id)
            # Hive's own threads look at every table that was ever written to, once a second, as long as it is there.
            admin.drop_database(database)
