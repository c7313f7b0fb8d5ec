"""A connection of type ``hive_acid`` becomes addresses, in order, or an error that says what to enter."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException, Connection

from airflow_provider_acid.acid.hive import HIVE_3, Hive
from airflow_provider_acid.doctor.diagnosis import quick_look
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.server_checks import QUICK_CHECKS
from airflow_provider_acid.exceptions import ConfigurationError, MetastoreUnavailableError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.get_provider_info import get_provider_info
from airflow_provider_acid.hooks import metastore
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from tests.unit.provider.metastore_connection import SetConnection, endpoint


@pytest.mark.parametrize(
    ("host", "port", "addresses"),
    [
        ("ms", None, ["ms:9083"]),
        ("ms", 9084, ["ms:9084"]),
        ("b,a", 9084, ["b:9084", "a:9084"]),
        (" ms-1.example.org:1 , ms-2.example.org,", 2, ["ms-1.example.org:1", "ms-2.example.org:2"]),
        ("thrift://a:1,thrift://b/", None, ["a:1", "b:9083"]),
        ("127.0.0.1:65535", None, ["127.0.0.1:65535"]),
        ("[::1]:9084,[fe80::1]", None, ["::1:9084", "fe80::1:9083"]),
    ],
)
def test_hosts_are_tried_in_the_order_they_are_written(
    set_connection: SetConnection, host: str, port: int | None, addresses: list[str]
) -> None:
    set_connection(host=host, port=port)
    assert [str(address) for address in endpoint().addresses] == addresses


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [
        ("hive_acid_default", "make one of type Hive ACID metastore"),
        ("hive_db", "make it, or correct metastore_db_conn_id"),
        ("s3_key", "make it, or take connection_id out of the S3 options"),
    ],
)
def test_a_connection_that_nobody_made_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, missing: str, remedy: str
) -> None:
    storage = {"s3": {"connection_id": "s3_key"}}
    made = {
        "hive_acid_default": Connection(
            conn_id="hive_acid_default",
            conn_type="hive_acid",
            host="ms",
            extra=json.dumps({"metastore_db_conn_id": "hive_db", "storage": storage}),
        ),
        "hive_db": Connection(conn_id="hive_db", conn_type="postgres", host="db", schema="hive"),
        "s3_key": Connection(conn_id="s3_key", conn_type="aws", login="a", password="b"),
    }

    def find(_: AcidMetastoreHook, conn_id: str) -> Connection:
        if conn_id == missing:
            raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
        return made[conn_id]

    monkeypatch.setattr(AcidMetastoreHook, "get_connection", find)
    with pytest.raises(ConfigurationError, match=f"^connection {missing}: does not exist. Remedy: {remedy}"):
        endpoint()


def test_the_client_fails_over_in_that_order(set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    set_connection(host="127.0.0.1:1,127.0.0.1:2", extra={"timeout_seconds": 5})
    with (
        AcidMetastoreHook().get_conn() as client,
        pytest.raises(MetastoreUnavailableError, match=r"127\.0\.0\.1:1:.*127\.0\.0\.1:2:"),
    ):
        client.databases()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "names no host"),
        ({"host": " , "}, "names no host"),
        ({"host": "ms:abc"}, "'ms:abc' is no address"),
        ({"host": "good,:9083"}, "':9083' is no address"),
        ({"host": "two words"}, "'two words' is no address"),
        ({"host": "http://ms:9083"}, "is no address"),
        ({"host": "::1"}, "is no address"),
        ({"host": "ms:0"}, "the port of 'ms:0' is 0"),
        ({"host": "ms:65536"}, "the port of 'ms:65536' is 65536"),
        ({"host": "ms", "port": 70000}, "the port of 'ms' is 70000"),
        ({"host": "ms", "extra": {"timeout_seconds": "soon"}}, "timeout_seconds is 'soon'"),
        ({"host": "ms", "extra": {"timeout_seconds": 0}}, "timeout_seconds is 0"),
        ({"host": "ms", "extra": {"timeout_seconds": -1}}, "timeout_seconds is -1"),
        ({"host": "ms", "extra": {"timeout_seconds": "inf"}}, "timeout_seconds is 'inf'"),
    ],
    ids=str,
)
def test_a_connection_that_cannot_be_used_is_refused(
    set_connection: SetConnection, fields: dict[str, Any], reason: str
) -> None:
    set_connection(**fields)
    with pytest.raises(ConfigurationError) as refusal:
        endpoint()
    assert refusal.value.subject == "connection hive_acid_default"
    assert reason in refusal.value.reason
    assert AcidMetastoreHook().test_connection() == (False, str(refusal.value))


@pytest.mark.parametrize(
    ("extra", "seconds", "user"),
    [
        ({}, 60.0, None),
        ({"timeout_seconds": None, "user": ""}, 60.0, None),
        ({"timeout_seconds": "5", "user": "compactor"}, 5.0, "compactor"),
        ({"timeout_seconds": 2.5}, 2.5, None),
    ],
)
def test_extra_holds_time_out_and_user(
    set_connection: SetConnection, extra: dict[str, Any], seconds: float, user: str | None
) -> None:
    set_connection(host="ms", extra=extra)
    found = endpoint()
    assert (found.timeout_seconds, found.user) == (seconds, user)
    with found.open() as client:
        assert client.timeout_seconds == seconds


@pytest.mark.parametrize(
    ("hive", "good", "words"),
    [(Hive(4, "4.0.1"), True, "Hive metastore 4.0.1 answers"), (HIVE_3, False, "metastore_db_conn_id")],
)
def test_the_connection_test_says_what_the_metastore_can_do(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch, hive: Hive, good: bool, words: str
) -> None:
    set_connection(host="ms")
    monkeypatch.setattr(AcidMetastoreClient, "probe", lambda self: hive)
    monkeypatch.setattr(AcidMetastoreClient, "config_value", lambda self, name: "false")
    is_good, message = AcidMetastoreHook().test_connection()
    assert is_good is good
    assert words in message


def test_the_connection_test_reports_a_metastore_that_does_not_answer(set_connection: SetConnection) -> None:
    set_connection(host="127.0.0.1:1")
    is_good, message = AcidMetastoreHook().test_connection()
    assert not is_good
    assert "127.0.0.1:1" in message
    assert "Remedy: start the metastore" in message


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"tsl": True}, "connection hive_acid_default: tsl in its extra is no field. Remedy: write tls"),
        ({"storage": {"hfds": {}}}, "storage options: have the unknown key hfds. Remedy: write "),
        ({"storage": {"hdfs": {"web_adresses": []}}}, "web_adresses"),
    ],
)
def test_the_connection_test_refuses_what_is_misspelt_by_its_name(
    set_connection: SetConnection, extra: dict[str, Any], words: str
) -> None:
    set_connection(host="not.asked", extra=extra)
    is_good, message = AcidMetastoreHook().test_connection()
    assert not is_good
    assert words in message


@pytest.mark.parametrize(("given", "used"), [(None, 10.0), (3, 3.0), (600, 10.0)])
def test_the_connection_test_waits_for_no_call_longer_than_ten_seconds(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch, given: int | None, used: float
) -> None:
    found: list[MetastoreEndpoint] = []

    def quick_look(endpoint: MetastoreEndpoint) -> tuple[Finding, ...]:
        found.append(endpoint)
        return (
            Finding("metastore answers", Severity.OK, "Hive metastore 4.0.1 answers"),
            Finding("odd", Severity.WARNING, "something is odd", "it costs", "mend it"),
            Finding("well", Severity.NOTE, "good to know", "it is", "leave it"),
        )

    monkeypatch.setattr(metastore, "quick_look", quick_look)
    set_connection(host="not.asked", extra={"timeout_seconds": given})
    told = "Hive metastore 4.0.1 answers and can be used. Warning: something is odd. Remedy: mend it."
    assert AcidMetastoreHook().test_connection() == (True, told)
    assert (found[0].timeout_seconds, found[0].database_patience_seconds) == (used, 10.0)


def test_a_quick_look_begins_no_check_when_its_time_is_over(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_connection(host="not.asked")
    monkeypatch.setattr(AcidMetastoreClient, "probe", lambda self: Hive(4, "4.0.1"))
    monkeypatch.setattr(AcidMetastoreClient, "config_value", lambda self, name: "false")
    checks = {finding.check: finding.seen for finding in quick_look(endpoint(), seconds=0)[2:]}
    assert checks == {check.name: "is not looked at, for 0 s are over" for check in QUICK_CHECKS}
    assert "is not looked at" not in str(quick_look(endpoint()))


def database_of(monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection, **fields: Any) -> MetastoreEndpoint:
    """The endpoint of a metastore whose database is named by these fields of an Airflow connection."""
    set_connection(host="ms", extra={"metastore_db_conn_id": "metastore_db"})
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DB", json.dumps(fields))
    return endpoint()


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"conn_type": "postgres"}, "postgresql+psycopg2://acid:p%40ss@db/ms"),
        ({"conn_type": "postgres", "port": 5433}, "postgresql+psycopg2://acid:p%40ss@db:5433/ms"),
        ({"conn_type": "mysql"}, "mysql+pymysql://acid:p%40ss@db/ms"),
        ({"conn_type": "mysql", "extra": {"sqlalchemy_scheme": "mysql+mysqldb"}}, "mysql+mysqldb://acid:p%40ss@db/ms"),
        (
            {"conn_type": "postgres", "extra": {"sslmode": "require", "cursor": "dictcursor"}},
            "postgresql+psycopg2://acid:p%40ss@db/ms?sslmode=require",
        ),
    ],
)
def test_the_database_is_that_of_the_connection_named_in_extra(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], url: str
) -> None:
    found = database_of(
        monkeypatch, set_connection, host="db", login="acid", password="p@ss", schema="ms", **fields
    ).database_url
    assert found is not None
    assert found.render_as_string(hide_password=False) == url


def test_the_databases_password_is_shown_nowhere(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = database_of(
        monkeypatch, set_connection, conn_type="postgres", host="db", login="acid", password="sesame", schema="ms"
    )
    assert found.database is not None
    assert "sesame" not in repr(found) + str(found) + repr(found.database) + str(found.database)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"conn_type": "sqlite", "schema": "ms"}, "is of type 'sqlite'"),
        ({"conn_type": "postgres"}, "names no database"),
    ],
)
def test_a_connection_that_is_no_metastore_database_is_refused(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        database_of(monkeypatch, set_connection, host="db", **fields)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [(None, False), ("", False), (False, False), ("false", False), (True, True), ("True", True)],
)
def test_extra_says_whether_housekeeping_runs_elsewhere(
    set_connection: SetConnection, value: object, meaning: bool
) -> None:
    set_connection(host="ms", extra={"housekeeping_elsewhere": value})
    assert endpoint().housekeeping_elsewhere is meaning


def test_a_word_that_is_neither_true_nor_false_is_refused(set_connection: SetConnection) -> None:
    set_connection(host="ms", extra={"housekeeping_elsewhere": "perhaps"})
    with pytest.raises(ConfigurationError, match="housekeeping_elsewhere is 'perhaps'"):
        endpoint()


def connection_type() -> dict[str, Any]:
    kinds = get_provider_info()["connection-types"]
    assert isinstance(kinds, list)
    (kind,) = kinds
    assert isinstance(kind, dict)
    return kind


def test_the_form_belongs_to_the_hook() -> None:
    kind = connection_type()
    assert kind["connection-type"] == AcidMetastoreHook.conn_type
    assert kind["hook-class-name"] == f"{AcidMetastoreHook.__module__}.{AcidMetastoreHook.__qualname__}"
    assert kind["hook-name"] == AcidMetastoreHook.hook_name


def test_every_field_of_the_form_has_label_description_and_schema() -> None:
    fields = connection_type()["conn-fields"]
    assert fields.keys() == {
        *("timeout_seconds", "user", "metastore_db_conn_id", "housekeeping_elsewhere", "storage"),
        *("tls", "tls_ca_file", "tls_certificate_file", "tls_key_file", "http", "http_path", "jwt_file"),
        *("kerberos_principal", "kerberos_keytab", "kerberos_client_principal"),
    }
    for field in fields.values():
        assert field.keys() == {"label", "description", "schema"}
        assert "null" in field["schema"]["type"]


def test_the_forms_example_of_several_hosts_can_be_entered(set_connection: SetConnection) -> None:
    placeholders = connection_type()["ui-field-behaviour"]["placeholders"]
    set_connection(host=placeholders["host"], port=int(placeholders["port"]))
    assert len(endpoint().addresses) == 2


def test_both_airflows_name_and_hide_the_same_fields() -> None:
    form = AcidMetastoreHook.get_ui_field_behaviour()
    assert {name.replace("_", "-"): value for name, value in form.items()} == connection_type()["ui-field-behaviour"]


def test_what_airflow_2s_form_sends_is_understood(set_connection: SetConnection) -> None:
    kinds = {name: field["schema"]["type"][0] for name, field in connection_type()["conn-fields"].items()}
    untouched = {name: False if kind == "boolean" else "" for name, kind in kinds.items()}
    set_connection(host="ms", extra={**untouched, "timeout_seconds": "60"})
    asked = endpoint()
    assert (asked.timeout_seconds, asked.user, asked.database_url, asked.storages) == (60.0, None, None, Storages())
    assert asked.access == MetastoreAccess()


def test_making_a_hook_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_NOT_THERE", raising=False)
    assert AcidMetastoreHook("not_there").hive_acid_conn_id == "not_there"


def test_the_connection_is_an_ordinary_airflow_connection() -> None:
    assert Connection(conn_id="c", conn_type="hive_acid", host="ms").conn_type == AcidMetastoreHook.conn_type


S3_STORAGE = {"s3": {"endpoint": "https://minio.example.com:9000", "connection_id": "minio"}}


def test_the_key_to_an_s3_store_comes_from_a_connection_and_goes_nowhere_else(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_connection(host="ms", extra={"storage": S3_STORAGE})
    key = {"conn_type": "aws", "login": "an-id", "password": "a-secret", "extra": {"aws_session_token": "a-token"}}
    monkeypatch.setenv("AIRFLOW_CONN_MINIO", json.dumps(key))
    made = endpoint()
    assert made.storages.of(S3Options).credentials == S3Credentials("an-id", "a-secret", "a-token")
    for text in (repr(made), made.storages.to_json()):
        assert not any(secret in text for secret in ("an-id", "a-secret", "a-token"))
    assert json.loads(made.storages.to_json()) == S3_STORAGE
    assert Storages.from_json(made.storages.to_json()).of(S3Options).credentials is None
    with pytest.raises(ConfigurationError, match="are not sent to other processes"):
        pickle.dumps(made.storages)


def test_without_a_connection_for_it_the_machines_own_key_is_used(set_connection: SetConnection) -> None:
    set_connection(host="ms", extra={"storage": {"s3": {"region": "eu-central-1"}}})
    assert endpoint().storages.of(S3Options).credentials is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "connection minio: holds no access key and secret key. Remedy: enter them as login and password"),
        ({"login": "an-id"}, "holds no access key and secret key. Remedy: "),
        ({"extra": {"role_arn": "arn:aws:iam::1:role/r"}}, "but role_arn, which is not followed"),
    ],
)
def test_a_connection_without_a_key_is_named(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], reason: str
) -> None:
    set_connection(host="ms", extra={"storage": S3_STORAGE})
    monkeypatch.setenv("AIRFLOW_CONN_MINIO", json.dumps({"conn_type": "aws", **fields}))
    with pytest.raises(ConfigurationError, match=reason):
        endpoint()
