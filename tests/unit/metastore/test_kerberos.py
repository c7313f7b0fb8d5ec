"""What can be said of Kerberos and passwords without a server; the rest is in ``tests/secured``."""

from __future__ import annotations

import sys

import pytest

from airflow_provider_acid.exceptions import MetastoreAccessError
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress


@pytest.mark.parametrize("library", ["gssapi", "thrift_sasl"])
def test_a_missing_library_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    for name in ("gssapi", "thrift_sasl"):
        monkeypatch.setitem(sys.modules, name, sys)
    monkeypatch.setitem(sys.modules, library, None)
    access = MetastoreAccess(kerberos=Kerberos("hive/_HOST@R"))
    with (
        AcidMetastoreClient([MetastoreAddress("localhost", 1)], transport_factory=access) as client,
        pytest.raises(MetastoreAccessError, match=r"Remedy: pip install airflow-provider-acid\[kerberos\]"),
    ):
        client.databases()


@pytest.mark.parametrize(
    ("principal", "host", "server"),
    [
        ("hive/_HOST@EXAMPLE.ORG", "MS-1.example.org", "hive/ms-1.example.org@EXAMPLE.ORG"),
        ("hive/one.example.org@EXAMPLE.ORG", "two.example.org", "hive/one.example.org@EXAMPLE.ORG"),
        ("hive/_HOST", "ms", "hive/ms"),
    ],
)
def test_the_servers_principal_has_its_host_in_lower_case(principal: str, host: str, server: str) -> None:
    assert Kerberos(principal).server(host) == server


def test_a_password_needs_its_library_too_and_is_not_shown_by_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow_provider_acid.metastore.access.sasl", None)
    access = MetastoreAccess(password=Password("airflow", "sesame"))
    with (
        AcidMetastoreClient([MetastoreAddress("localhost", 1)], transport_factory=access) as client,
        pytest.raises(MetastoreAccessError, match=r"Remedy: pip install airflow-provider-acid\[ldap\]") as told,
    ):
        client.databases()
    assert "sesame" not in str(told.value)
