"""A metastore that asks for a password, inside TLS: the chain with the right one, and what is said without it."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from tests.harness.certificates import CertificateAuthority
from tests.harness.metastore_server import MetastoreServer
from tests.secured.conftest import LOGIN, ClientOf
from tests.secured.sites import run_the_chain, site_over


def test_a_partition_is_compacted_and_cleaned_with_a_password(
    password_metastore: MetastoreServer,
    authority: CertificateAuthority,
    client_of: ClientOf,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    extra = {"tls": True, "tls_ca_file": str(authority.file)}
    client = client_of(password_metastore, login=LOGIN.user, password=LOGIN.password, **extra)
    with site_over(client, password_metastore) as site:
        assert client.probe() == Hive(4, "4.0.1")
        run_the_chain(site)
    is_good, message = AcidMetastoreHook().test_connection()
    assert (is_good, message.partition(". Warning")[0]) == (True, "Hive metastore 4.0.1 answers and can be used")
    assert LOGIN.password not in caplog.text


@pytest.mark.parametrize(
    ("login", "password", "told"),
    [
        (
            LOGIN.user,
            "abracadabra",
            r"SASL with PLAIN .*Error validating the login.*Remedy: correct login and password",
        ),
        ("stranger", LOGIN.password, "Error validating the login"),
        ("", "", "hung up without an answer inside TLS|read 0 bytes.*the connection's login and password"),
    ],
)
def test_a_wrong_password_and_none_are_told_without_it(
    password_metastore: MetastoreServer,
    authority: CertificateAuthority,
    client_of: ClientOf,
    login: str,
    password: str,
    told: str,
) -> None:
    extra = {"tls": True, "tls_ca_file": str(authority.file)}
    with (
        client_of(password_metastore, login=login, password=password, **extra) as client,
        pytest.raises(MetastoreUnavailableError, match=told) as refused,
    ):
        client.probe()
    assert f"localhost:{password_metastore.port}" in str(refused.value)
    assert not password or password not in str(refused.value)


def test_a_client_with_a_password_at_a_plain_port_is_told_what_to_take_out(
    hive_4_metastore: MetastoreServer, client_of: ClientOf
) -> None:
    with (
        client_of(hive_4_metastore, login=LOGIN.user, password=LOGIN.password, timeout_seconds=2) as client,
        pytest.raises(MetastoreUnavailableError, match="no answer to the SASL handshake .*take login and password out"),
    ):
        client.probe()
