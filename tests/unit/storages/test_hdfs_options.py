"""HDFS options travel in JSON, and wrong ones are named before anything is asked for."""

from __future__ import annotations

import json
import traceback

import pytest

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.storages.hdfs.options import HdfsOptions

FULL = HdfsOptions(
    web_addresses=("nn1.example.com:9870", "https://nn2.example.com:9871"),
    authorities=("ns1",),
    proxy_user="hive",
    kerberos=True,
    kerberos_keytab="/etc/airflow/acid.keytab",
    kerberos_client_principal="airflow@EXAMPLE.ORG",
    tls=True,
    ca_file="/etc/ca.pem",
    timeout_seconds=5.5,
    umask="077",
)


@pytest.mark.parametrize("options", [HdfsOptions(), FULL, HdfsOptions(user="airflow")])
def test_options_survive_json(options: HdfsOptions) -> None:
    assert HdfsOptions.from_json(json.loads(json.dumps(options.to_json()))) == options


def test_what_has_its_default_is_not_written() -> None:
    assert HdfsOptions().to_json() == {}
    assert HdfsOptions(user="airflow").to_json() == {"user": "airflow"}


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"web_adresses": []}, "web_adresses: is unknown"),
        ({"web_addresses": "nn:9870"}, "web_addresses: has the wrong type. Remedy: use a list of strings"),
        ({"web_addresses": [9870]}, "web_addresses"),
        ({"web_addresses": ["namenode"]}, "web_addresses: holds what is not host:port"),
        ({"web_addresses": ["hdfs://nn:8020"]}, "not host:port"),
        ({"web_addresses": ["nn:9870/webhdfs"]}, "not host:port"),
        ({"authorities": [None]}, "authorities"),
        ({"kerberos": "yes"}, "kerberos: has the wrong type. Remedy: use true or false"),
        ({"tls": 1}, "tls: has the wrong type"),
        ({"ca_file": 7}, "ca_file: has the wrong type"),
        ({"user": "airflow", "kerberos": True}, "user: cannot be chosen with Kerberos"),
        ({"kerberos_keytab": "/k", "kerberos_client_principal": "a"}, "kerberos_keytab: is given, but not kerberos."),
        ({"kerberos_client_principal": "a"}, "kerberos_client_principal: is given, but not kerberos. Remedy: set"),
        (
            {"kerberos": True, "kerberos_keytab": "/k"},
            "has kerberos_keytab, but not kerberos_client_principal. Remedy: say in kerberos_client_principal whose",
        ),
        ({"timeout_seconds": 0}, "timeout_seconds: is 0"),
        ({"timeout_seconds": True}, "timeout_seconds: has the wrong type"),
        ({"umask": 22}, "umask: has the wrong type"),
        ({"umask": None}, "umask: has the wrong type"),
        ({"umask": "088"}, "umask: is not three octal digits"),
    ],
)
def test_wrong_options_are_named(data: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HdfsOptions.from_json(data)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        {"web_addresses": ["http://user:hunter2@nn:9870"]},
        {"web_addresses": "hunter2"},
        {"user": {"password": "hunter2"}},
        {"kerberos": "hunter2"},
        {"umask": "hunter2"},
    ],
)
def test_what_was_written_into_the_wrong_place_is_not_repeated(data: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HdfsOptions.from_json(data)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
