"""Metastores that are protected, each in its own way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.access.tls import Tls
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.harness.certificates import KEYSTORE_PASSWORD, CertificateAuthority
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_server import MetastoreServer, Protection

HOST = "localhost"
"""What certificates and principals call the metastores."""

LOGIN = Password("airflow", "open sesame")
"""Of :func:`password_metastore`."""

TICKET_SECONDS = 12

ClientOf = Callable[..., AcidMetastoreClient]


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
def kerberos_metastores(
    tmp_path_factory: pytest.TempPathFactory, kdc: KerberosKdc
) -> Iterator[Callable[[str], MetastoreServer]]:
    """Hive 4.0.1 on Derby with Kerberos, by Hadoop's name for the protection; each is started when first asked for."""
    friend = kdc.keytab("admin")
    with ExitStack() as stack:

        @cache
        def started(protection: str) -> MetastoreServer:
            folder = tmp_path_factory.mktemp(f"kerberos-{protection}")
            server = MetastoreServer(folder, reaper=False, protection=_kerberos(kdc, friend, protection), host=HOST)
            return stack.enter_context(server)

        yield started


def _kerberos(kdc: KerberosKdc, friend: Path, protection: str) -> Protection:
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
        MetastoreAccess(kerberos=Kerberos(f"hive/_HOST@{REALM}", str(friend), f"admin@{REALM}")),
        hadoop,
        [f"-Djava.security.krb5.conf={kdc.config_file}"],
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
