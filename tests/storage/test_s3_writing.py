"""New objects on S3: whole, under a name that nobody has, by boto3 or by Arrow alone."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages.s3 import writing as s3_writing
from tests.harness.fault_proxy import Exchange, Fault, FaultProxy, Matching
from tests.harness.s3_server import S3Server
from tests.storage.s3_faults import is_completion, is_part, is_put, lost_answers, watched
from tests.storage.s3_site import LARGE, TABLE, Site


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some megabytes go up in parts already."""
    monkeypatch.setattr(s3_writing, "ONE_PUT_BYTES", 1024)
    monkeypatch.setattr(s3_writing, "PART_BYTES", 5 << 20)


@pytest.mark.parametrize("data", [b"", b"small", LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize("way", ["boto3", "arrow alone"])
def test_a_new_object_holds_the_written_bytes_and_leaves_nothing_beside_it(
    site: Site, small_parts: None, data: bytes, way: str, request: pytest.FixtureRequest
) -> None:
    if way == "arrow alone":
        request.getfixturevalue("no_boto3")
    site.storage().write_new("a/b/f.gz", data)
    assert site.get("a/b/f.gz") == data
    assert site.names() == ["a/b/f.gz"]
    assert site.uploads() == []


@pytest.mark.parametrize("way", ["boto3", "arrow alone"])
def test_an_exception_in_the_block_publishes_nothing_and_leaves_no_upload(
    site: Site, small_parts: None, way: str, request: pytest.FixtureRequest
) -> None:
    if way == "arrow alone":
        request.getfixturevalue("no_boto3")

    def create() -> None:
        with site.storage().create("f") as file:
            file.write(LARGE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        create()
    gc.collect()
    assert (site.names(), site.uploads()) == ([], [])


def test_an_upload_that_fails_in_its_midst_is_aborted(site: Site, small_parts: None) -> None:
    site.storage().write_new("probed", b"")

    def fail(method: str, url: str) -> None:
        if is_part(method, url) and "partNumber=2" in url:
            raise KeyboardInterrupt

    with watched(before=fail), pytest.raises(KeyboardInterrupt):
        site.storage().write_new("f", LARGE)
    assert (site.names(), site.uploads()) == (["probed"], [])


@pytest.mark.needs_minio
@pytest.mark.parametrize("data", [b"small", LARGE], ids=["in one request", "in parts"])
def test_of_eight_racing_writers_exactly_one_wins(site: Site, small_parts: None, data: bytes) -> None:
    outcomes: list[bytes | None] = []
    start = threading.Barrier(8)

    def write(mine: bytes) -> None:
        storage = site.storage()
        start.wait()
        try:
            storage.write_new("claim", mine)
        except NameTakenError:
            outcomes.append(None)
        else:
            outcomes.append(mine)

    threads = [threading.Thread(target=write, args=(data + str(number).encode(),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert [mine for mine in outcomes if mine is not None] == [site.get("claim")]
    assert (site.names(), site.uploads()) == (["claim"], [])


@pytest.mark.parametrize(("data", "chosen"), [(b"small", is_put), (LARGE, is_completion)], ids=["PUT", "completion"])
@pytest.mark.parametrize("times", [1, 100])
def test_a_lost_answer_is_found_out_to_have_been_a_success(
    site: Site, small_parts: None, data: bytes, chosen: Callable[[str, str], bool], times: int
) -> None:
    storage = site.storage()
    storage.write_new("probed", b"")
    with lost_answers(chosen, times):
        storage.write_new("f", data)
    assert site.get("f") == data
    assert site.uploads() == []


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["in one request", "in parts"])
def test_a_name_that_somebody_else_took_in_the_last_moment_is_taken(site: Site, small_parts: None, data: bytes) -> None:
    storage = site.storage()
    storage.write_new("probed", b"")

    taken = threading.Event()

    def take(method: str, url: str) -> None:
        if not taken.is_set() and (is_put(method, url) or is_completion(method, url)):
            taken.set()
            site.put("f", data)

    with watched(before=take), pytest.raises(NameTakenError, match=f"{TABLE}/f: exists already"):
        storage.write_new("f", data)
    assert site.uploads() == []


def test_of_names_that_nobody_else_writes_a_taken_one_is_found_without_boto3(site: Site, no_boto3: None) -> None:
    site.put("f", b"first")
    with pytest.raises(NameTakenError):
        site.storage().write_new("f", b"second")
    assert site.get("f") == b"first"


class EveryTry(Fault):
    """Loses every request that matches, not only one."""

    def __init__(self, matching: Matching) -> None:
        super().__init__(matching, request_limit=-1)

    def is_for(self, exchange: Exchange) -> bool:
        return self.matching(exchange)


def test_a_store_that_fails_in_mid_upload_never_gets_a_truncated_object_from_arrow(
    s3: S3Server, no_boto3: None
) -> None:
    with FaultProxy(s3.endpoint) as proxy:
        site = Site(s3, proxy.addresses[s3.endpoint])

        # All tries of the one part, and nothing else: the store is there when the stream is collected.
        proxy.add(EveryTry(lambda exchange: "/f?" in exchange.target and "partNumber=2" in exchange.target))
        with pytest.raises(StorageError, match="f: cannot be written"):
            site.storage().write_new("f", LARGE * 4)
        gc.collect()
        site.storage().write_new("g", LARGE * 4)
        # Not looked for in the bucket: a stream that is collected completes its upload some time later.
        completed = [one.target for one in proxy.exchanges if one.method == "POST" and "uploadId=" in one.target]
        assert [target.partition("?")[0].rpartition("/")[2] for target in completed] == ["g"]
        assert site.names() == ["g"]
        assert site.get("g") == LARGE * 4


def test_a_store_that_does_not_look_at_conditions_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_condition(self: Any, key: str, data: bytes) -> None:
        site.client.put_object(Bucket=site.bucket, Key=key, Body=data)

    monkeypatch.setattr(s3_writing.S3Writing, "_put", without_condition)
    with pytest.raises(StorageError, match="replaced by a request with If-None-Match"):
        site.storage().write_new("f", b"1")
    assert site.names() == []
