"""What a ``hive_acid`` connection says of TLS, Kerberos and passwords, and what of it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.http import Http
from airflow_provider_acid.metastore.access.jwt import Jwt
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.access.tls import Tls
from tests.unit.provider.metastore_connection import SetConnection, endpoint


@pytest.mark.parametrize(
    ("extra", "access"),
    [
        ({}, MetastoreAccess()),
        ({"tls": False}, MetastoreAccess()),
        ({"tls": True}, MetastoreAccess(Tls())),
        ({"tls": "true", "tls_ca_file": "/ca.pem"}, MetastoreAccess(Tls("/ca.pem"))),
        (
            {"tls": True, "tls_certificate_file": "/me.pem", "tls_key_file": "/me.key"},
            MetastoreAccess(Tls(None, "/me.pem", "/me.key")),
        ),
        ({"kerberos_principal": "hive/_HOST@R"}, MetastoreAccess(None, Kerberos("hive/_HOST@R"))),
        (
            {"kerberos_principal": "hive/ms", "kerberos_keytab": "/k", "kerberos_client_principal": "a@R", "tls": True},
            MetastoreAccess(Tls(), Kerberos("hive/ms", "/k", "a@R")),
        ),
        (
            {"kerberos_principal": "hive/ms", "kerberos_client_principal": "a@R"},
            MetastoreAccess(None, Kerberos("hive/ms", None, "a@R")),
        ),
        ({"http": True}, MetastoreAccess(http=Http("metastore"))),
        ({"http": "true", "user": "etl", "tls": True}, MetastoreAccess(Tls(), http=Http("metastore", None, "etl"))),
        (
            {"http": True, "http_path": "/a/b", "jwt_file": "/run/token"},
            MetastoreAccess(http=Http("/a/b", Jwt(file="/run/token"))),
        ),
    ],
)
def test_extra_says_how_the_metastore_is_talked_to(
    set_connection: SetConnection, extra: dict[str, Any], access: MetastoreAccess
) -> None:
    set_connection(host="ms", extra=extra)
    assert endpoint().access == access
    with endpoint().open() as client:
        assert client._transport_factory == access


def test_login_and_password_go_to_the_metastore_and_are_shown_nowhere(set_connection: SetConnection) -> None:
    set_connection(host="127.0.0.1:1", login="airflow", password="sesame", extra={"tls": True})
    made = endpoint()
    assert made.access == MetastoreAccess(Tls(), None, Password("airflow", "sesame"))
    assert "sesame" not in repr(made) + str(made) + repr(made.access)
    answer = AcidMetastoreHook().test_connection()
    assert not answer[0]
    assert "sesame" not in answer[1]


def test_a_password_alone_is_a_token_over_http_and_is_shown_nowhere(set_connection: SetConnection) -> None:
    set_connection(host="127.0.0.1:1", password="a.b.c", extra={"http": True})
    made = endpoint()
    assert made.access == MetastoreAccess(http=Http(jwt=Jwt("a.b.c")))
    assert "a.b.c" not in repr(made) + str(made) + AcidMetastoreHook().test_connection()[1]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"login": "airflow"}, "has a login, but no password. Remedy: enter both"),
        ({"password": "sesame"}, "has a password, but no login. Remedy: enter both"),
        (
            {"login": "airflow", "password": "sesame", "extra": {"kerberos_principal": "hive/_HOST"}},
            "has both kerberos_principal and a password. Remedy: leave out",
        ),
        (
            {"login": "airflow", "password": "sesame", "extra": {"http": True}},
            "has http and a login. Remedy: leave the login empty",
        ),
        ({"login": "airflow", "extra": {"http": True}}, "has a login, but no password. Remedy: enter both"),
        (
            {"password": "sesame", "extra": {"http": True, "jwt_file": "/t"}},
            "has both jwt_file and a password. Remedy: leave one of them out",
        ),
    ],
)
def test_half_a_login_and_two_of_them_are_refused(
    set_connection: SetConnection, fields: dict[str, Any], refusal: str
) -> None:
    set_connection(host="ms", **fields)
    with pytest.raises(ConfigurationError, match=refusal) as refused:
        endpoint()
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("extra", "refusal"),
    [
        ({"tls": "perhaps"}, "tls is 'perhaps'. Remedy: give true or false"),
        ({"tls_ca_file": "/ca.pem"}, "has tls_ca_file, but not tls. Remedy: set tls to true"),
        ({"tls": True, "tls_key_file": "/k"}, "has tls_key_file, but not tls_certificate_file. Remedy: give both"),
        ({"kerberos_keytab": "/k"}, "has kerberos_keytab, but not kerberos_principal. Remedy: set that of the meta"),
        ({"kerberos_client_principal": "a"}, "has kerberos_client_principal, but not kerberos_principal. Remedy: set"),
        (
            {"kerberos_principal": "hive/_HOST", "kerberos_keytab": "/k"},
            "has kerberos_keytab, but not kerberos_client_principal. Remedy: say in kerberos_client_principal whose",
        ),
        (
            {"http": True, "kerberos_principal": "hive/_HOST"},
            "has both http and kerberos_principal. Remedy: leave out what the metastore does not ask for",
        ),
        ({"http_path": "hive"}, "has http_path, but not http. Remedy: set http to true, or take it out"),
        ({"http": False, "jwt_file": "/t"}, "has jwt_file, but not http. Remedy: set http to true"),
        ({"http": True, "http_path": "a b"}, "http_path is 'a b'. Remedy: HTTP takes visible characters of ASCII only"),
        ({"http": True, "user": "a\nb"}, r"user is 'a\nb'. Remedy: HTTP takes visible characters of ASCII only"),
        ({"kerberos_principal": "true"}, "kerberos_principal is 'true'. Remedy: write it like hive/_HOST@EXAMPLE.ORG"),
        ({"kerberos_principle": "h/_HOST"}, "kerberos_principle in its extra is no field. Remedy: write kerberos_prin"),
        ({"tsl": True}, "tsl in its extra is no field. Remedy: write tls, or take it out"),
        ({"TLS_CA": "/ca.pem"}, "TLS_CA in its extra is no field. Remedy: "),
        ({"timeout": 5}, "timeout in its extra is no field. Remedy: write timeout_seconds, or take it out"),
        ({"qwertz": 5}, "qwertz in its extra is no field. Remedy: take it out; timeout_seconds, user"),
    ],
)
def test_extras_that_would_not_do_what_they_say_are_refused(
    set_connection: SetConnection, extra: dict[str, Any], refusal: str
) -> None:
    set_connection(host="ms", extra=extra)
    with pytest.raises(ConfigurationError) as refused:
        endpoint()
    assert str(refused.value).startswith(f"connection hive_acid_default: {refusal}")
