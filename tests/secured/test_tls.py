"""Metastores with TLS: the whole chain over it, and what is said where the two sides do not fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreAccessError, MetastoreUnavailableError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from tests.harness.certificates import CertificateAuthority
from tests.harness.metastore_server import MetastoreServer
from tests.secured.conftest import ClientOf
from tests.secured.sites import run_the_chain, site_over


def test_a_partition_is_compacted_and_cleaned_over_tls(
    tls_metastore: MetastoreServer, authority: CertificateAuthority, client_of: ClientOf
) -> None:
    client = client_of(tls_metastore, tls=True, tls_ca_file=str(authority.file))
    with site_over(client, tls_metastore) as site:
        assert client.probe() == Hive(4, "4.0.1")
        run_the_chain(site)
    is_good, message = AcidMetastoreHook().test_connection()
    assert (is_good, message.partition(". Warning")[0]) == (True, "Hive metastore 4.0.1 answers and can be used")


def test_a_metastore_that_was_restarted_is_connected_to_anew(
    tls_metastore: MetastoreServer, authority: CertificateAuthority, client_of: ClientOf
) -> None:
    with client_of(tls_metastore, tls=True, tls_ca_file=str(authority.file)) as client:
        client.open_compaction_txn()
        tls_metastore.restart()
        txn = client.open_compaction_txn()
        client.abort(txn)


def test_an_authority_that_did_not_sign_the_certificate_is_named_as_the_reason(
    tls_metastore: MetastoreServer, client_of: ClientOf, tmp_path: Path
) -> None:
    stranger = CertificateAuthority(tmp_path)
    for extra in ({"tls": True}, {"tls": True, "tls_ca_file": str(stranger.file)}):
        with (
            client_of(tls_metastore, **extra) as client,
            pytest.raises(
                MetastoreAccessError,
                match=rf"localhost:{tls_metastore.port}: the certificate is not trusted .*Remedy: set tls_ca_file",
            ),
        ):
            client.probe()


def test_a_certificate_of_another_host_is_refused(
    tls_metastore: MetastoreServer, authority: CertificateAuthority, client_of: ClientOf
) -> None:
    with (
        client_of(tls_metastore, "127.0.0.1", tls=True, tls_ca_file=str(authority.file)) as client,
        pytest.raises(
            MetastoreAccessError,
            match=rf"127\.0\.0\.1:{tls_metastore.port}: the certificate is another host's .*"
            "Remedy: call the metastore by a name that its certificate has",
        ),
    ):
        client.probe()


def test_a_plain_client_at_a_port_with_tls_is_told_which_extra_to_set(
    tls_metastore: MetastoreServer, client_of: ClientOf
) -> None:
    with (
        client_of(tls_metastore) as client,
        pytest.raises(
            MetastoreAccessError, match=rf"speaks TLS\) and localhost:{tls_metastore.port} .*Remedy: set tls in"
        ),
    ):
        client.probe()


def test_a_client_with_tls_at_a_plain_port_is_told_which_extra_to_take_out(
    hive_4_metastore: MetastoreServer, client_of: ClientOf
) -> None:
    with (
        client_of(hive_4_metastore, tls=True) as client,
        pytest.raises(
            MetastoreUnavailableError,
            match=rf"localhost:{hive_4_metastore.port}: the server hung up instead of speaking TLS .*Remedy: take tls",
        ),
    ):
        client.probe()
