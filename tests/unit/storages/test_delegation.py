"""Files of delegation tokens, as Hadoop 3.4.3 writes them; that a NameNode takes them is seen in ``tests/secured``."""

from __future__ import annotations

import base64
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.storages.hdfs import webhdfs_calls
from airflow_provider_acid.storages.hdfs.delegation import (
    MOST_BYTES,
    TOKEN_FILE_VARIABLE,
    DelegationToken,
    given_token,
    read_tokens,
)
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from tests.harness.ports import free_port

IDENTIFIER = b"\x00\x0fhdfs@TEST.LOCAL\x04hdfs\x00\x8a\x01\xa2\x19T\xdf\x1b\x8a\x01\xa2L\xd4w\x1b\x03\x02"
PASSWORD = b"\xe9\xd9\xd8\x0bG\x0cseb\xb3\xbe\x9dl*1\xc9\x05\xd0\xa7J"
SERVICE = b"127.0.0.1:32420"


def token(identifier: bytes = IDENTIFIER, kind: bytes = b"HDFS_DELEGATION_TOKEN", service: bytes = SERVICE) -> bytes:
    """One as a file has it, behind the name that its client keeps it by."""
    parts = (identifier, PASSWORD, kind, service)
    return b"".join((bytes([len(service)]), service, *(bytes([len(part)]) + part for part in parts)))


def file_of(*tokens: bytes) -> bytes:
    """A whole file, without other secrets."""
    return b"HDTS\x00" + bytes([len(tokens)]) + b"".join(tokens) + b"\x00"


REAL = file_of(token())
"""To the byte what ``hdfs fetchdt`` wrote for a NameNode that is gone."""

OF_YARN = file_of(token(kind=b"YARN_AM_RM_TOKEN", service=b""), token(), token(service=b"ha-hdfs:ns1"))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that this process is given."""
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(tmp_path / "tokens"))
    return tmp_path / "tokens"


def test_a_token_says_whom_it_is_for_and_whose_it_is_and_shows_nothing_else(written: Path) -> None:
    written.write_bytes(REAL)
    [found] = read_tokens(written)
    assert (found.service, found.owner, found.user) == ("127.0.0.1:32420", "hdfs@TEST.LOCAL", "hdfs")
    padded = found.url_form + "=" * (-len(found.url_form) % 4)
    assert base64.urlsafe_b64decode(padded) == token().removeprefix(bytes([len(SERVICE)]) + SERVICE)
    assert found.url_form not in repr(found)


@pytest.mark.parametrize(
    ("hosts", "nameservices", "service"),
    [
        (["127.0.0.1"], [], "127.0.0.1:32420"),
        (["localhost"], [], "127.0.0.1:32420"),
        (["nn.example.org"], ["ns1"], "ha-hdfs:ns1"),
    ],
)
def test_a_token_is_found_by_its_hosts_name_or_number_or_nameservice(
    written: Path, hosts: Sequence[str], nameservices: Sequence[str], service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.write_bytes(OF_YARN)
    monkeypatch.setattr(socket, "getaddrinfo", _resolve)
    found = given_token(hosts, nameservices)
    assert found is not None
    assert found.service == service


def _resolve(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
    if host != "localhost":
        raise socket.gaierror(host)
    return [(0, 0, 0, "", ("127.0.0.1", 0))]


@pytest.mark.parametrize("content", [REAL, OF_YARN, file_of()])
def test_a_token_goes_to_no_other_cluster(written: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    written.write_bytes(content)
    monkeypatch.setattr(socket, "getaddrinfo", _resolve)
    with pytest.raises(ConfigurationError, match=r"none is for nn.example.org or ns2, but for .*Remedy: name"):
        given_token(["nn.example.org"], ["ns2"])


def test_an_error_with_all_that_led_to_it_shows_no_token(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written.write_bytes(REAL)
    monkeypatch.setattr(webhdfs_calls, "PAUSES_SECONDS", ())
    options = HdfsOptions((f"localhost:{free_port()}",), kerberos=True)
    with pytest.raises(StorageError, match="refuses connections") as told:
        WebHdfsStorage("hdfs://localhost/t", options).list()
    [token] = read_tokens(written)
    assert token.url_form not in "".join(traceback.format_exception(told.value))


def test_without_a_token_a_missing_library_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(TOKEN_FILE_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "requests_gssapi", None)
    options = HdfsOptions(("localhost:1",), kerberos=True)
    with pytest.raises(ConfigurationError, match=r"requests_gssapi.*pip install airflow-provider-acid.hdfs,kerberos"):
        WebHdfsStorage("hdfs://localhost/t", options).list()


def test_where_yarn_gave_none_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_FILE_VARIABLE, raising=False)
    assert given_token(["nn"], []) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, r"cannot be read \(No such file"),
        (b"", "ends early"),
        (b"HDTS", "ends early"),
        (b"HDTS\x01\x00", "no format that is known"),
        (b"PK\x03\x04" + REAL, "no format that is known"),
        (file_of(token(identifier=b"\x07" + IDENTIFIER[1:])), "no version that is known"),
        (file_of(token(service=b"\xff")), "no UTF-8"),
        (b"HDTS\x00\x01\x88" + b"\x7f" * 8, "ends early"),
        (b"HDTS\x00\x01\xff" + REAL, "ends early"),
        (b"HDTS\x00\x01\x8d\x20\x00\x00" + b"\x00" * 2 * MOST_BYTES, "ends early"),
    ],
)
def test_a_file_that_is_none_is_named(written: Path, content: bytes | None, reason: str) -> None:
    if content is not None:
        written.write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"{TOKEN_FILE_VARIABLE}: .*{reason}.*Remedy: look at what made it"):
        given_token(["127.0.0.1"], [])


@given(st.integers(0, len(OF_YARN) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_no_damage_to_a_file_is_taken_for_anything_else(
    tmp_path_factory: pytest.TempPathFactory, place: int, instead: bytes, left_out: int
) -> None:
    file = tmp_path_factory.mktemp("damaged") / "tokens"
    file.write_bytes(OF_YARN[:place] + instead + OF_YARN[place + left_out :])
    try:
        found = read_tokens(file)
    except ConfigurationError:
        return
    assert all(isinstance(each, DelegationToken) for each in found)
