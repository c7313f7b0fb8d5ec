"""HDFS with Kerberos and TLS: by tickets, for another user, and by an application's delegation tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import certifi
import pytest

from airflow_provider_acid.exceptions import AcidError, ConfigurationError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.delegation import TOKEN_FILE_VARIABLE
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from tests.harness.certificates import CertificateAuthority
from tests.harness.hdfs_metastore import warehouse
from tests.harness.hive_engine import HiveEngine
from tests.harness.kerberos_hdfs import KerberosHdfs
from tests.harness.kerberos_kdc import REALM, KerberosKdc
from tests.judge.readings import check_every_way, read
from tests.secured.conftest import TICKET_SECONDS
from tests.storage.airflow_tasks import run_tasks
from tests.storage.remote_tables import RemotePlace, RemoteTable

_NUMBERS = count()
Options = Callable[..., HdfsOptions]


@pytest.fixture
def options(kerberos_hdfs: KerberosHdfs, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch) -> Options:
    """How to reach the HDFS, with more that the test asks for; fewer seconds of patience than by default.

    Whom else the machine's programs trust is another's business.
    """
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())

    def make(**more: object) -> HdfsOptions:
        reached = {"web_addresses": [kerberos_hdfs.web_address], "tls": True, "ca_file": str(authority.file)}
        fields = {**reached, "kerberos": True, "timeout_seconds": 20}
        return HdfsOptions.from_json({**fields, **more})

    return make


def keytab_of(kdc: KerberosKdc, name: str) -> dict[str, str]:
    """The options of somebody with a keytab."""
    return {"kerberos_keytab": str(kdc.keytab(name)), "kerberos_client_principal": f"{name}@{REALM}"}


def new_location(hdfs: KerberosHdfs, owner: str) -> str:
    """A new directory of somebody's."""
    location = f"{hdfs.uri}/tests/{next(_NUMBERS)}"
    hdfs.make_directory(location, owner)
    return location


def check_every_call(location: str, options: HdfsOptions) -> None:
    """Writes, reads, lists, renames and deletes."""
    storage = WebHdfsStorage(location, options)
    storage.make_directory("d")
    storage.write_new("d/a", b"12")
    storage.publish("d", "e")
    assert storage.read("e/a") == b"12"
    assert [file.path for file in storage.list().files] == ["e/a"]
    storage.delete(["e"])
    assert not storage.exists("e")


def test_a_keytab_is_all_that_is_needed(kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc, options: Options) -> None:
    check_every_call(new_location(kerberos_hdfs, "hive"), options(**keytab_of(kdc, "hive")))


def test_a_ticket_of_the_process_is_used(
    kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kdc.ticket_cache("hive")))
    check_every_call(new_location(kerberos_hdfs, "hive"), options())


def test_who_may_act_for_others_does_so(kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc, options: Options) -> None:
    location = new_location(kerberos_hdfs, "hive")
    with pytest.raises(StorageError, match="AccessControlException"):
        check_every_call(location, options(**keytab_of(kdc, "airflow")))
    check_every_call(location, options(**keytab_of(kdc, "airflow"), proxy_user="hive"))


def test_new_connections_get_new_tickets_where_there_is_a_keytab(
    kerberos_hdfs: KerberosHdfs, kdc: KerberosKdc, options: Options
) -> None:
    location, with_keytab = new_location(kerberos_hdfs, "hive"), keytab_of(kdc, "hive")
    check_every_call(location, options(**with_keytab))
    time.sleep(TICKET_SECONDS + 1)
    # Other options: connections of their own.
    check_every_call(location, options(**with_keytab, timeout_seconds=21))


def test_a_delegation_token_is_all_that_a_container_has(
    kerberos_hdfs: KerberosHdfs, options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = new_location(kerberos_hdfs, "hive")
    kerberos_hdfs.fetch_token("hive", tmp_path / "tokens")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(tmp_path / "tokens"))
    check_every_call(location, options())
    check_every_call(location, options(proxy_user="hive"))
    with pytest.raises(ConfigurationError, match=r"the delegation token is hive's\. Remedy: submit"):
        WebHdfsStorage(location, options(proxy_user="joe")).list()
    with pytest.raises(ConfigurationError, match=r"none is for nn\.example\.org, but for 127\.0\.0\.1:"):
        WebHdfsStorage("hdfs://nn.example.org/t", options(web_addresses=["nn.example.org:9870"])).list()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "No Kerberos credentials available.*Remedy: get a ticket for this process's user .kinit., or set"),
        ({"kerberos_keytab": "/no/keytab", "kerberos_client_principal": "hive"}, "/no/keytab cannot be read"),
        ({"ca_file": None}, "TLS fails .*certificate verify failed.*Remedy: set tls and ca_file"),
        ({"kerberos": False, "user": "hive"}, "HTTP 401.*Remedy: get a Kerberos ticket and set kerberos"),
    ],
)
def test_who_has_nothing_is_told_what_is_missing(
    kerberos_hdfs: KerberosHdfs, options: Options, more: dict[str, object], told: str
) -> None:
    with pytest.raises(AcidError, match=told):
        WebHdfsStorage(f"{kerberos_hdfs.uri}/tests", options(**more)).list()


def test_sensor_operator_and_cleaner_work_on_it(
    kerberos_hdfs: KerberosHdfs,
    kdc: KerberosKdc,
    hive_on_kerberos_hdfs: HiveEngine,
    options: Options,
    tmp_path: Path,
) -> None:
    reached = options(**keytab_of(kdc, "airflow"), proxy_user="hive")
    place = RemotePlace(Storages((reached,)), warehouse(kerberos_hdfs))
    server = hive_on_kerberos_hdfs.metastore
    table = RemoteTable.of(server, place, tmp_path / "table", ("4.0.1", "acid_part"), "secured")
    assert table.read() == table.expected
    before = read(hive_on_kerberos_hdfs, table.name, table.columns)
    compacted, cleaned = run_tasks(server, table.name, {"hdfs": reached.to_json()}, {}, tmp_path / "airflow")
    assert [item["state"] for item in compacted] == ["compacted"] * 3
    assert [item["state"] for item in cleaned] == ["cleaned"] * 3
    assert table.read() == table.expected
    check_every_way(hive_on_kerberos_hdfs, table.name, table.columns, before, "cleaned")
    for entity in table.entities:
        assert [found[:5] for found in table.names(entity)] == ["base_"]
