"""Metastores that are protected, each in its own way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.tls import Tls
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.harness.certificates import KEYSTORE_PASSWORD, CertificateAuthority
from tests.harness.metastore_server import MetastoreServer, Protection

HOST = "localhost"
"""What certificates and principals call the metastores."""

ClientOf = Callable[..., AcidMetastoreClient]


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> ClientOf:
    """The client that an Airflow connection to a server with these fields in extra makes."""

    def make(server: MetastoreServer, host: str = HOST, **extra: object) -> AcidMetastoreClient:
        connection = {"conn_type": "hive_acid", "host": host, "port": server.port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(connection))
        return AcidMetastoreHook().get_conn()

    return make


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """Signed the certificate of :func:`tls_metastore`."""
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls_metastore(
    tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on Derby with TLS; its certificate is for ``localhost`` alone."""
    protection = Protection(
        {
            "metastore.use.SSL": "true",
            "metastore.keystore.path": str(authority.keystore(HOST)),
            "metastore.keystore.type": "PKCS12",
            "metastore.keystore.password": KEYSTORE_PASSWORD,
        },
        MetastoreAccess(Tls(str(authority.file))),
    )
    folder = tmp_path_factory.mktemp("tls-metastore")
    with MetastoreServer(folder, reaper=False, protection=protection, host=HOST) as server:
        yield server
