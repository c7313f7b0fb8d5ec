"""Deleting on S3: markers, batches, and only as long as an anchor exists."""

from __future__ import annotations

import time

import pytest

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.s3 import objects as s3_objects
from tests.harness.s3_server import S3Server
from tests.storage.s3_faults import is_deletion, signed_long_ago, watched
from tests.storage.s3_site import TABLE, Site


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3)


def test_deleting_leaves_no_marker_of_what_is_deleted_and_makes_none(site: Site) -> None:
    for key in ("delta_1_1/f", "delta_1_1/", "delta_1_1_$folder$", "delta_1_1/sub/g", "delta_2_2/f"):
        site.put(key, b"")
    site.storage().delete(["delta_1_1", "never_there"])
    assert site.names() == ["delta_2_2/f"]
    site.storage().delete(["delta_2_2/f"])
    assert site.names() == []


def test_what_a_path_names_is_found_by_one_request(site: Site) -> None:
    for key in ("delta_1_1/f", "delta_1_1_$folder$", "delta_1_10/f", "delta_1_1.txt"):
        site.put(key, b"")
    asked: list[str] = []
    with watched(before=lambda method, url: asked.append(method)):
        site.storage().delete(["delta_1_1"])
    assert asked == ["GET", "POST"]
    assert site.names() == ["delta_1_1.txt", "delta_1_10/f"]


def test_where_more_keys_begin_alike_than_one_request_tells_exactly_what_is_named_goes(site: Site) -> None:
    own = ["p=1/f", "p=1/sub/g", "p=1_$folder$"]
    others = ["p=1-0", *(f"p=1.{number:04d}/f" for number in range(1000)), "p=10/f", "p=1_other"]
    for key in (*own, *others):
        site.put(key, b"")
    site.storage().delete(["p=1"])
    assert site.names() == sorted(others)


def test_more_objects_are_deleted_than_one_request_takes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_objects, "BATCH", 3)
    for number in range(10):
        site.put(f"delta_1_1/bucket_{number:05d}")
    site.storage().delete(["delta_1_1"])
    assert site.names() == []


def test_deleting_while_an_anchor_exists_deletes_exactly_what_is_named(site: Site) -> None:
    site.put("_acid_cleaning_1/anchor")
    for number in range(40):
        site.put(f"delta_1_1/bucket_{number:05d}")
    site.put("delta_2_2/bucket_00000")
    assert site.storage().delete_while_exists("_acid_cleaning_1/anchor", ["delta_1_1", "delta_3_3"])
    assert site.names() == ["_acid_cleaning_1/anchor", "delta_2_2/bucket_00000"]


def test_without_its_anchor_nothing_is_deleted(site: Site) -> None:
    site.put("delta_1_1/bucket_00000")
    assert not site.storage().delete_while_exists("_acid_cleaning_1/anchor", ["delta_1_1"])
    assert site.names() == ["delta_1_1/bucket_00000"]


def test_an_anchor_that_goes_stops_the_deletion(site: Site) -> None:
    site.put("_acid_cleaning_1/anchor")
    for number in range(40):
        site.put(f"delta_1_1/bucket_{number:05d}")

    def drop(method: str, url: str) -> None:
        if is_deletion(method, url) and "bucket_00000" in url:
            site.client.delete_objects(
                Bucket=site.bucket, Delete={"Objects": [{"Key": f"{TABLE}/_acid_cleaning_1/anchor"}]}
            )

    with watched(before=drop):
        assert not site.storage().delete_while_exists("_acid_cleaning_1/anchor", ["delta_1_1"])
    assert len(site.names()) == 40 - 16


@pytest.mark.needs_minio
def test_a_cleaner_who_slept_after_his_look_deletes_nothing(site: Site) -> None:
    site.put("_acid_cleaning_1/anchor")
    site.put("delta_1_1/bucket_00000")
    with signed_long_ago(seconds=60), pytest.raises(StorageError, match="came too late"):
        site.storage().delete_while_exists("_acid_cleaning_1/anchor", ["delta_1_1"])
    assert site.names() == ["_acid_cleaning_1/anchor", "delta_1_1/bucket_00000"]


def test_a_clock_that_is_ahead_of_the_stores_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("_acid_cleaning_1/anchor")
    site.put("delta_1_1/bucket_00000")
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 120)
    with pytest.raises(StorageError, match=r"clock is 1[12]\d s ahead of the store's. Remedy: set the clock"):
        site.storage().delete_while_exists("_acid_cleaning_1/anchor", ["delta_1_1"])
    assert len(site.names()) == 2
