"""Metastores with Kerberos: the whole chain with each protection, tickets that end, and what is said without one."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

import pytest

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreUnavailableError, ObjectNotFoundError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.sasl import SaslCalls
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.harness.metastore_server import MetastoreServer
from tests.secured.conftest import HOST, TICKET_SECONDS, ClientOf
from tests.secured.sites import end_the_chain, run_the_chain, site_over

PRINCIPAL = f"hive/_HOST@{REALM}"
ROOT = Path(__file__).parents[2]


def keytab_of(kdc: KerberosKdc, name: str = "airflow") -> dict[str, str]:
    """The extra of a connection with a keytab."""
    return {
        "kerberos_principal": PRINCIPAL,
        "kerberos_keytab": str(kdc.keytab(name)),
        "kerberos_client_principal": f"{name}@{REALM}",
    }


@pytest.mark.parametrize("library", ["gssapi", "requests-gssapi"])
def test_the_library_is_the_pinned_one(library: str) -> None:
    pin = f"{library}=={importlib.metadata.version(library)}"
    assert pin in (ROOT / "constraints.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("kerberos_metastore", "protection"),
    [("authentication", 1), ("integrity", 2), ("privacy", 4)],
    indirect=["kerberos_metastore"],
)
def test_a_partition_is_compacted_and_cleaned_with_each_protection(
    kerberos_metastore: MetastoreServer, protection: int, kdc: KerberosKdc, client_of: ClientOf
) -> None:
    client = client_of(kerberos_metastore, **keytab_of(kdc))
    with site_over(client, kerberos_metastore) as site:
        assert client.probe() == Hive(4, "4.0.1")
        assert client._transport is not None
        calls = client._transport.protocol.trans
        assert isinstance(calls, SaslCalls)
        assert calls.sasl._protection == protection
        run_the_chain(site)
        # More bytes than a frame may have in the server's offer.
        table = site.table("many", partitions=["p=1"])
        names = [f"p={number:0200}" for number in range(999)]
        with pytest.raises(ObjectNotFoundError, match=names[0]):
            client.get_partitions(site.database, table.name, ["p=1", *names])
    is_good, message = AcidMetastoreHook().test_connection()
    assert (is_good, message.partition(". Warning")[0]) == (True, "Hive metastore 4.0.1 answers and can be used")


def test_a_partition_is_compacted_and_cleaned_on_other_versions_with_kerberos_inside_tls(
    other_kerberos_metastore: MetastoreServer, client_of: ClientOf
) -> None:
    client = client_of(other_kerberos_metastore, **other_kerberos_metastore.protection.extra)
    with site_over(client, other_kerberos_metastore) as site:
        assert client.probe() in (Hive(3, "3.0", has_pools=False), Hive(4, "4.1.0"))
        run_the_chain(site)


def test_a_compaction_outlives_its_tickets_where_there_is_a_keytab(
    kerberos_metastore: MetastoreServer, kdc: KerberosKdc, client_of: ClientOf
) -> None:
    client = client_of(kerberos_metastore, **keytab_of(kdc))
    with site_over(client, kerberos_metastore) as site:
        table = site.table()
        for value in (1, 2):
            table.insert(value)
        active = site.begin(table.entity())
        time.sleep(TICKET_SECONDS + 1)
        with client.for_another_thread() as other:
            other.heartbeat(active.transaction.txn_id)
        client.close()
        end_the_chain(table, active, [1, 2])


def test_the_tickets_of_the_process_are_used_until_they_end(
    kerberos_metastore: MetastoreServer, kdc: KerberosKdc, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.ticket_cache('somebody')}")
    with client_of(kerberos_metastore, kerberos_principal=PRINCIPAL) as client:
        txn = client.open_compaction_txn()
        time.sleep(TICKET_SECONDS + 1)
        client.heartbeat(txn)  # an open connection lives on
        client.abort(txn)
        with (
            client.for_another_thread() as other,
            pytest.raises(
                MetastoreUnavailableError, match=r"Kerberos fails.*expired.*Remedy: get a ticket.*kinit"
            ) as told,
        ):
            other.databases()
        assert not told.value.is_permanent, "whoever renews the ticket may be late"
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.ticket_cache('somebody')}")
        with client.for_another_thread() as another:
            assert another.databases()


WRONG: dict[str, tuple[dict[str, str], str, bool]] = {
    "no ticket": (
        {"kerberos_principal": PRINCIPAL},
        "Kerberos fails.*No (Kerberos credentials available|credentials cache).*get a ticket.*or set kerberos_keytab",
        True,
    ),
    "no keytab": (
        {"kerberos_keytab": "/nowhere/acid.keytab"},
        "kerberos_keytab /nowhere/acid.keytab cannot be read.*Remedy: give a keytab",
        True,
    ),
    "another's keytab": (
        {"kerberos_client_principal": f"stranger@{REALM}"},
        "Kerberos fails.*Remedy: look whether kerberos_keytab and kerberos_client_principal fit together",
        True,
    ),
    "a server that the KDC does not know": (
        {"kerberos_principal": f"nobody/_HOST@{REALM}"},
        rf"for the server nobody/localhost@{REALM} \(Server nobody/localhost@{REALM} not found in Kerberos database\)",
        True,
    ),
    # The server cannot open what is sealed for another. It would say the same of clocks that differ.
    "another server's principal": (
        {"kerberos_principal": f"other/_HOST@{REALM}"},
        "the server refuses this client's SASL with GSSAPI .*GSS initiate failed.*look at the metastore's log",
        False,
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_together_is_told(
    kerberos_metastore: MetastoreServer, kdc: KerberosKdc, client_of: ClientOf, wrong: str
) -> None:
    kdc.keytab(f"other/{HOST}")
    extra, told, is_permanent = WRONG[wrong]
    with (
        client_of(kerberos_metastore, **({} if wrong == "no ticket" else keytab_of(kdc)) | extra) as client,
        pytest.raises(MetastoreUnavailableError, match=f"localhost:{kerberos_metastore.port}: .*{told}") as refused,
    ):
        client.probe()
    assert refused.value.is_permanent is is_permanent


def test_a_plain_client_at_a_port_with_sasl_is_told_which_extra_to_set(
    kerberos_metastore: MetastoreServer, client_of: ClientOf
) -> None:
    with (
        client_of(kerberos_metastore) as client,
        pytest.raises(
            MetastoreUnavailableError,
            match=rf"read 0 bytes.*localhost:{kerberos_metastore.port} .*Remedy: .*set kerberos_principal",
        ),
    ):
        client.probe()


def test_a_client_with_kerberos_at_a_plain_port_is_told_which_extra_to_take_out(
    hive_4_metastore: MetastoreServer, kdc: KerberosKdc, client_of: ClientOf
) -> None:
    kdc.keytab(f"hive/{HOST}")
    with (
        client_of(hive_4_metastore, timeout_seconds=2, **keytab_of(kdc)) as client,
        pytest.raises(
            MetastoreUnavailableError,
            match=rf"localhost:{hive_4_metastore.port}: no answer to the SASL handshake .*take kerberos_principal out",
        ),
    ):
        client.probe()


def test_a_kdc_that_does_not_answer_is_asked_again_by_the_next_try(
    kerberos_metastore: MetastoreServer, kdc: KerberosKdc, client_of: ClientOf
) -> None:
    extra = keytab_of(kdc, "latecomer")
    kdc.stop()
    try:
        with (
            client_of(kerberos_metastore, **extra) as client,
            pytest.raises(MetastoreUnavailableError, match="Cannot contact any KDC") as told,
        ):
            client.probe()
        assert not told.value.is_permanent
    finally:
        kdc.restart()
    with client_of(kerberos_metastore, **extra) as client:
        assert client.probe() == Hive(4, "4.0.1")
