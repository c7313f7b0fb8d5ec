"""Metastores that are protected, each in its own way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.http import Http
from airflow_provider_acid.metastore.access.jwt import Jwt
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.access.tls import Tls
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.harness.certificates import KEYSTORE_PASSWORD, CertificateAuthority
from tests.harness.hdfs_metastore import metastore_on_hdfs, warehouse
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import (
    HIVE_3,
    HIVE_4,
    HIVE_4_1,
    HIVE_4_2,
    engine_program,
    hive_3_metastore_program,
    hive_4_metastore_program,
    later_metastore_program,
)
from tests.harness.kerberos_hdfs import KerberosHdfs
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer, Protection
from tests.harness.postgres_server import PostgresServer
from tests.harness.token_issuer import TokenIssuer, http_jars

HOST = "localhost"
"""What certificates and principals call the metastores."""

LOGIN = Password("airflow", "open sesame")
"""Of :func:`password_metastore`."""

TICKET_SECONDS = 12
ONE_DAY_SECONDS = 24 * 60 * 60
TOKEN_SECONDS = int(os.environ.get("TEST_TOKEN_SECONDS", ONE_DAY_SECONDS))
"""So long delegation tokens of HDFS are good, until they are renewed: a day, as by default. Hive's own session does not
survive their end, so the variable is for tests without it."""

ClientOf = Callable[..., AcidMetastoreClient]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps files together; the one on YARN, which takes longest, is first in one of the processes."""
    items.sort(key=lambda item: item.path.stem != "test_yarn")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> ClientOf:
    """The client that an Airflow connection to a server with these fields in extra makes."""

    def make(
        server: MetastoreServer, host: str = HOST, login: str = "", password: str = "", **extra: object
    ) -> AcidMetastoreClient:
        connection = {
            **{"conn_type": "hive_acid", "host": host, "port": server.port},
            **{"login": login, "password": password, "extra": extra},
        }
        monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(connection))
        return AcidMetastoreHook().get_conn()

    return make


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosKdc]:
    """A KDC, known to this process, whose tickets live for :data:`TICKET_SECONDS`; the process has none of them."""
    folder = tmp_path_factory.mktemp("kdc")
    with KerberosKdc(folder, ticket_seconds=TICKET_SECONDS) as server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment.items():
            environment.setenv(name, value)
        environment.setenv("KRB5CCNAME", f"FILE:{folder / 'no-tickets'}")
        yield server


@pytest.fixture
def kerberos_metastore(request: pytest.FixtureRequest) -> MetastoreServer:
    """The server of :func:`kerberos_metastores` with the protection that the test names, else with ``auth``."""
    started: Callable[[str], MetastoreServer] = request.getfixturevalue("kerberos_metastores")
    return started(getattr(request, "param", "authentication"))


@pytest.fixture(scope="session")
def kerberos_hdfs(
    tmp_path_factory: pytest.TempPathFactory, kdc: KerberosKdc, authority: CertificateAuthority
) -> Iterator[KerberosHdfs]:
    """HDFS with Kerberos and TLS, and a warehouse of the user ``hive``.

    A metastore works there as its clients, so ``hive`` may act for anybody; and so may ``airflow``.
    """
    folder = tmp_path_factory.mktemp("kerberos-hdfs")
    actors = ("airflow", "hive")
    with KerberosHdfs(folder, kdc, authority, actors=actors, renewal_seconds=TOKEN_SECONDS) as hdfs:
        for path in (warehouse(hdfs), f"{hdfs.uri}/user/hive"):
            hdfs.make_directory(path, "hive")
        yield hdfs


@pytest.fixture(scope="session")
def metastore_on_kerberos_hdfs(
    tmp_path_factory: pytest.TempPathFactory,
    kdc: KerberosKdc,
    kerberos_hdfs: KerberosHdfs,
    authority: CertificateAuthority,
    postgres: PostgresServer,
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 with Kerberos inside TLS, its tables on HDFS with both, its database on PostgreSQL."""
    kerberos = _kerberos_in_tls(kdc, authority, "hive")
    protection = replace(
        kerberos,
        hadoop_settings={**kerberos_hdfs.metastore_settings, **kerberos.hadoop_settings},
        client_settings={
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
            "hive.metastore.use.SSL": "true",
            "hive.metastore.truststore.path": str(authority.truststore),
            "hive.metastore.truststore.type": "PKCS12",
            "hive.metastore.truststore.password": KEYSTORE_PASSWORD,
            # Tez wants a directory of its own user's, and to know who would renew its delegation tokens.
            "hive.exec.scratchdir": f"{kerberos_hdfs.uri}/user/hive/scratch",
            "yarn.resourcemanager.principal": f"hive@{REALM}",
        },
        client_environment={
            **kdc.environment,
            "KRB5PRINCIPAL": f"hive@{REALM}",
            "KRB5KEYTAB": str(kdc.keytab("hive")),
        },
    )
    folder = tmp_path_factory.mktemp("metastore")
    database, program = ServerDatabase(postgres, "secured"), hive_4_metastore_program()
    with metastore_on_hdfs(kerberos_hdfs, folder, program, database, reaper=False, protection=protection) as server:
        yield server


@pytest.fixture(scope="session")
def hive_on_kerberos_hdfs(
    tmp_path_factory: pytest.TempPathFactory, metastore_on_kerberos_hdfs: MetastoreServer
) -> Iterator[HiveEngine]:
    """Hive itself, as the user ``hive``."""
    with HiveEngine(HIVE_4, tmp_path_factory.mktemp("hive"), metastore_on_kerberos_hdfs) as engine:
        yield engine


@pytest.fixture(scope="session")
def kerberos_metastores(
    tmp_path_factory: pytest.TempPathFactory, kdc: KerberosKdc
) -> Iterator[Callable[[str], MetastoreServer]]:
    """Hive 4.0.1 on Derby with Kerberos, by Hadoop's name for the protection; each is started when first asked for."""
    with ExitStack() as stack:

        @cache
        def started(protection: str) -> MetastoreServer:
            folder = tmp_path_factory.mktemp(f"kerberos-{protection}")
            server = MetastoreServer(folder, reaper=False, protection=_kerberos(kdc, "admin", protection), host=HOST)
            return stack.enter_context(server)

        yield started


@pytest.fixture(scope="session", params=[HIVE_3, HIVE_4_1])
def other_kerberos_metastore(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    kdc: KerberosKdc,
    authority: CertificateAuthority,
    postgres: PostgresServer,
) -> Iterator[MetastoreServer]:
    """Other versions with Kerberos inside TLS, their databases on PostgreSQL.

    Not 4.2.1, which needs Java 21: that of the wheel lacks the module jdk.security.jgss.
    """
    folder = tmp_path_factory.mktemp(f"kerberos-{request.param}")
    make = hive_3_metastore_program if request.param == HIVE_3 else later_metastore_program
    program = make(engine_program(request.param, folder))
    database = ServerDatabase(postgres, f"secured_{request.param}")
    protection = _kerberos_in_tls(kdc, authority, "admin")
    with MetastoreServer(
        folder, reaper=True, program=program, database=database, protection=protection, host=HOST
    ) as server:
        yield server


def _kerberos_in_tls(kdc: KerberosKdc, authority: CertificateAuthority, friend: str) -> Protection:
    kerberos, tls = _kerberos(kdc, friend, "authentication"), Tls(str(authority.file))
    return replace(
        kerberos,
        settings={**kerberos.settings, **_tls(authority).settings},
        access=MetastoreAccess(tls, _kerberos_of(kdc, friend)),
        extra={**kerberos.extra, "tls": True, "tls_ca_file": tls.ca_file},
    )


def _kerberos_of(kdc: KerberosKdc, friend: str) -> Kerberos:
    return Kerberos(f"hive/_HOST@{REALM}", str(kdc.keytab(friend)), f"{friend}@{REALM}")


def _kerberos(kdc: KerberosKdc, friend: str, protection: str) -> Protection:
    own = {
        "kerberos.principal": f"hive/{HOST}@{REALM}",
        "kerberos.keytab.file": str(kdc.keytab(f"hive/{HOST}")),
        "sasl.enabled": "true",
    }
    hadoop = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
        "hadoop.proxyuser.hive.hosts": "*",
    }
    return Protection(
        {f"{prefix}.{name}": value for prefix in ("metastore", "hive.metastore") for name, value in own.items()}
        | {"hadoop.rpc.protection": protection},
        MetastoreAccess(kerberos=_kerberos_of(kdc, friend)),
        hadoop,
        [f"-Djava.security.krb5.conf={kdc.config_file}"],
        {
            "kerberos_principal": f"hive/_HOST@{REALM}",
            "kerberos_keytab": str(kdc.keytab("airflow")),
            "kerberos_client_principal": f"airflow@{REALM}",
        },
    )


@pytest.fixture(scope="session")
def password_metastore(
    tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on Derby with TLS that asks for the password of :data:`LOGIN`."""
    tls = _tls(authority)
    settings = {
        **tls.settings,
        "metastore.authentication": "CONFIG",
        "metastore.authentication.config.username": LOGIN.user,
        "metastore.authentication.config.password": LOGIN.password,
        # With it, by which a client says under which name it works, the server refuses to start.
        "metastore.execute.setugi": "false",
    }
    protection = Protection(settings, MetastoreAccess(Tls(str(authority.file)), password=LOGIN))
    folder = tmp_path_factory.mktemp("password-metastore")
    with MetastoreServer(folder, reaper=False, protection=protection, host=HOST) as server:
        yield server


@pytest.fixture(scope="session")
def issuer() -> Iterator[TokenIssuer]:
    """Signs the tokens that :func:`http_metastore` and :func:`https_metastore` take."""
    with TokenIssuer() as started:
        yield started


@pytest.fixture(scope="session")
def http_metastore(tmp_path_factory: pytest.TempPathFactory, issuer: TokenIssuer) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on Derby that speaks HTTP and asks for a JWT."""
    protection = Protection(
        issuer.settings, MetastoreAccess(http=Http(jwt=Jwt(issuer.token("admin")))), jars=http_jars(HIVE_4)
    )
    folder = tmp_path_factory.mktemp("http-metastore")
    with MetastoreServer(folder, reaper=False, protection=protection, host=HOST) as server:
        yield server


@pytest.fixture(scope="session")
def https_metastore(
    tmp_path_factory: pytest.TempPathFactory,
    issuer: TokenIssuer,
    authority: CertificateAuthority,
    postgres: PostgresServer,
) -> Iterator[MetastoreServer]:
    """Hive 4.2.1 on PostgreSQL that speaks HTTP inside TLS, at a path of its own, and asks for a JWT."""
    path = "hive/meta"
    protection = Protection(
        {
            **issuer.settings,
            **_tls(authority).settings,
            # The server reads this, and not metastore.server.thrift.http.path.
            "metastore.client.thrift.http.path": path,
            # Without, the server does not start: it looks for an algorithm with no name.
            "metastore.keymanagerfactory.algorithm": "PKIX",
        },
        MetastoreAccess(Tls(str(authority.file)), http=Http(path, Jwt(issuer.token("admin")))),
        extra={"http": True, "http_path": path, "tls": True, "tls_ca_file": str(authority.file)},
        jars=http_jars(HIVE_4_2),
    )
    program = later_metastore_program(engine_program(HIVE_4_2, tmp_path_factory.mktemp("hive-program")))
    folder, database = tmp_path_factory.mktemp("https-metastore"), ServerDatabase(postgres, "https")
    with MetastoreServer(
        folder, reaper=False, program=program, database=database, protection=protection, host=HOST
    ) as server:
        yield server


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """Signed the certificate of :func:`tls_metastore`."""
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls_metastore(
    tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on Derby with TLS; its certificate is for ``localhost`` alone."""
    folder = tmp_path_factory.mktemp("tls-metastore")
    with MetastoreServer(folder, reaper=False, protection=_tls(authority), host=HOST) as server:
        yield server


def _tls(authority: CertificateAuthority) -> Protection:
    settings = {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": str(authority.keystore(HOST)),
        "metastore.keystore.type": "PKCS12",
        "metastore.keystore.password": KEYSTORE_PASSWORD,
    }
    return Protection(settings, MetastoreAccess(Tls(str(authority.file))))
