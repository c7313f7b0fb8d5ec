"""What bad settings, missing rights and missing packages get on S3."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable

import pytest

from airflow_provider_acid.exceptions import AcidError, ConfigurationError, StorageError
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.ports import HOST, free_port
from tests.harness.s3_server import S3Server
from tests.storage.s3_site import Site, staged_result, temporary


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3)


OPERATIONS: dict[str, Callable[[S3Storage], object]] = {
    "listed": lambda storage: storage.list("delta_1_1"),
    "looked at": lambda storage: storage.exists("delta_1_1"),
    "read": lambda storage: storage.read("delta_1_1/bucket_00000"),
    "written": lambda storage: storage.write_new("_new", b"1"),
    "deleted": lambda storage: storage.delete(["delta_1_1"]),
    "published": lambda storage: storage.publish("delta_1_1", "base_1"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_bucket_is_named(site: Site, operation: str) -> None:
    storage = S3Storage("s3a://no-such-bucket/x", site.options, site.credentials)
    with pytest.raises(StorageError) as caught:
        OPERATIONS[operation](storage)
    text = str(caught.value)
    assert "s3a://no-such-bucket/x" in text
    if operation != "read":
        # Arrow's HEAD has no body to say so.
        assert "Remedy: check the bucket's name" in text


@pytest.mark.needs_minio
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("wrong", ["access key", "secret key"])
def test_a_wrong_key_is_named_without_its_secret(site: Site, operation: str, wrong: str) -> None:
    site.put("delta_1_1/bucket_00000")
    good = site.credentials
    credentials = (
        S3Credentials("nobody", good.secret_key)
        if wrong == "access key"
        else S3Credentials(good.access_key, "not-the-secret-key")
    )
    with pytest.raises(StorageError) as caught:
        OPERATIONS[operation](S3Storage(site.location, site.options, credentials))
    text = str(caught.value)
    assert site.location in text
    assert "Remedy: check the" in text
    assert credentials.secret_key not in text
    assert site.names() == ["delta_1_1/bucket_00000"]


@pytest.mark.needs_minio
@pytest.mark.parametrize("operation", ["written", "deleted", "published"])
def test_who_may_only_read_is_told_what_to_grant(site: Site, operation: str) -> None:
    site.put("delta_1_1/bucket_00000")
    reader = temporary(site, "s3:ListBucket", "s3:GetObject")
    with pytest.raises(StorageError, match="AccessDenied.*Remedy: check the credentials.*s3:PutObject"):
        OPERATIONS[operation](S3Storage(site.location, site.options, reader))
    assert site.names() == ["delta_1_1/bucket_00000"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_endpoint_where_nobody_listens_is_named(operation: str) -> None:
    options = S3Options(endpoint=f"http://{HOST}:{free_port()}", region="us-east-1", timeout_seconds=2)
    storage = S3Storage("s3a://bucket/x", options, S3Credentials("key", "secret"))
    with pytest.raises(StorageError, match="Remedy: check the endpoint"):
        OPERATIONS[operation](storage)


# Options and packages


def test_options_survive_json_and_hold_no_secret() -> None:
    options = S3Options("https://minio:9000", "eu-west-1", True, "/ca.pem", "my_minio", "/scratch", 10.0)
    assert S3Options.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert S3Options().to_json() == {}


@pytest.mark.parametrize(
    "data",
    [
        {"secret_key": "x"},
        {"region": 1},
        {"path_style": "yes"},
        {"timeout_seconds": True},
        {"timeout_seconds": 0},
        {"endpoint": "minio:9000"},
        {"endpoint": "https://key:secret@minio:9000"},
        {"endpoint": "https://minio:9000/bucket"},
    ],
)
def test_options_that_cannot_be_used_are_refused(data: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="S3 option"):
        S3Options.from_json(data)


@pytest.mark.parametrize(
    "data",
    [
        {"secret_key": "hunter2"},
        {"region": ["hunter2"]},
        {"endpoint": "key:hunter2@minio:9000"},
        {"endpoint": "https://key:hunter2@minio:9000"},
        {"endpoint": "https://minio:9000?key=hunter2"},
        {"endpoint": "https://key:hunter2@mini\u2100o"},
    ],
)
def test_what_was_written_into_the_wrong_place_is_not_repeated(data: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        S3Options.from_json(data)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_credentials_are_neither_printed_nor_sent_elsewhere() -> None:
    credentials = S3Credentials("public", "hidden", "token")
    assert "hidden" not in repr(credentials)
    assert "token" not in repr(credentials)
    with pytest.raises(ConfigurationError, match="not sent to other processes"):
        pickle.dumps(credentials)


def test_without_boto3_what_takes_conditions_says_so(site: Site, no_boto3: None) -> None:
    staged_result(site, 1)
    before = site.names()
    for change in (OPERATIONS["deleted"], lambda storage: storage.publish("_staging/output", "base_1")):
        with pytest.raises(AcidError, match="boto3 is not installed. Remedy: pip install boto3"):
            change(site.storage())
    assert site.names() == before


def test_the_environments_endpoint_is_taken_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://one:1/")
    assert S3Options().endpoint_url == "http://one:1"
    assert S3Options(endpoint="http://two:2").endpoint_url == "http://two:2"
    assert S3Options().uses_path_style
