"""Requests of which nobody knows whether they were carried out: told as such, and never with what signs them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from airflow_provider_acid.exceptions import HalfPublishedError, NameTakenError, StorageError
from airflow_provider_acid.storages.s3 import writing as s3_writing
from airflow_provider_acid.storages.s3.errors import NoAnswerError
from tests.harness.fault_proxy import Exchange, FaultProxy
from tests.harness.s3_server import S3Server
from tests.storage.s3_faults import answered, is_completion, is_deletion, watched
from tests.storage.s3_site import TABLE, Site

RESULT = {f"_staging/{number}": f"base_5/bucket_{number:05d}" for number in range(3)}


@pytest.fixture
def site(s3: S3Server) -> Site:
    """Three files that wait for their publication."""
    site = Site(s3)
    site.storage().write_new("_probed", b"")
    for source in RESULT:
        site.put(source, b"rows")
    return site


def publish(site: Site, files: int = len(RESULT)) -> None:
    site.storage().publish_files(dict(list(RESULT.items())[:files]), lambda: None)


def published(site: Site) -> list[str]:
    return [name for name in site.names() if name.startswith("base_5/")]


def is_publication(method: str, url: str) -> bool:
    """The request by which a file of the result, empty or not, appears."""
    makes = is_completion(method, url) or (method == "PUT" and "uploadId" not in url)
    return makes and "/base_5/" in url


def error_document(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>We failed.</Message></Error>".encode()


@pytest.mark.parametrize("rows", [b"rows", b""], ids=["data", "empty"])
@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (503, error_document("SlowDown"), "SlowDown We failed."),
        (500, error_document("Unheard"), "Unheard We failed."),
        (502, b"Bad Gateway", "502"),
        (200, error_document("InternalError"), "InternalError We failed."),
        (400, error_document("RequestTimeout"), "RequestTimeout We failed."),
    ],
)
def test_a_store_that_fails_itself_is_asked_again_and_then_nobody_knows(
    site: Site, rows: bytes, status: int, content: bytes, words: str
) -> None:
    site.put("_staging/0", rows)
    with answered(is_publication, status, content, times=100), pytest.raises(HalfPublishedError) as told:
        publish(site, 1)
    assert f"which is not known: s3a://{site.bucket}/warehouse" in str(told.value)
    assert f"cannot be written ({words})" in str(told.value)
    with answered(is_publication, status, content, times=2):
        publish(site, 1)
    assert site.get("base_5/bucket_00000") == rows


def test_a_completion_of_which_the_answer_ends_before_it_says_anything_is_not_done(site: Site) -> None:
    begun = b'<?xml version="1.0" encoding="UTF-8"?>\n   '
    with answered(is_completion, 200, begun, times=100), pytest.raises(HalfPublishedError, match="which is not known"):
        publish(site, 1)
    with answered(is_completion, 200, begun, times=2):
        publish(site, 1)
    assert site.get("base_5/bucket_00000") == b"rows"


def test_a_deletion_that_the_store_fails_at_is_tried_again(site: Site) -> None:
    site.put("anchor")
    with answered(is_deletion, 503, error_document("SlowDown")):
        assert site.storage().delete_while_exists("anchor", ["_staging"])
    assert site.names() == ["_probed", "anchor"]


def test_that_one_copy_surely_failed_does_not_tell_of_another_beside_it(site: Site) -> None:
    def lose(method: str, url: str) -> None:
        if is_completion(method, url) and "bucket_00001" in url:
            site.put("base_5/bucket_00001", b"somebody else's")
        if is_completion(method, url) and "bucket_00002" in url:
            raise ConnectionClosedError(endpoint_url=url)

    with watched(before=lose), pytest.raises(HalfPublishedError, match=r"which is not known: .*bucket_00002") as told:
        publish(site)
    assert isinstance(told.value.__cause__, NoAnswerError)
    assert published(site) == ["base_5/bucket_00001"]


@pytest.mark.parametrize("rows", [b"rows", b""], ids=["data", "empty"])
def test_that_the_source_went_after_a_try_without_an_answer_does_not_tell_what_became_of_that(
    site: Site, rows: bytes
) -> None:
    site.put("_staging/0", rows)

    def lose(method: str, url: str) -> None:
        if is_publication(method, url):
            site.storage().delete(["_staging"])
            raise ConnectionClosedError(endpoint_url=url)

    with watched(before=lose), pytest.raises(HalfPublishedError, match="which is not known") as told:
        publish(site, 1)
    silence = told.value.__cause__
    assert isinstance(silence, NoAnswerError)
    assert "was removed or replaced while it was published" in str(silence.__cause__)


@pytest.mark.parametrize("status", [403, 503])
def test_where_the_store_does_not_show_the_object_nobody_knows(site: Site, status: int) -> None:
    def is_unknown(method: str, url: str) -> bool:
        return is_publication(method, url) or (method == "HEAD" and "/base_5/" in url)

    with answered(is_unknown, status, error_document("AccessDenied"), times=100), pytest.raises(HalfPublishedError):
        publish(site, 1)


class Late:
    """A completion of which the answer gets lost, and that the store takes later, when its source is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: Callable[[], None]) -> None:
        self._send = URLLib3Session.send
        self._after = after
        self._held: list[tuple[Any, Any]] = []
        self.arrived = 0
        monkeypatch.setattr(URLLib3Session, "send", lambda session, request: self.send(session, request))

    def send(self, session: URLLib3Session, request: Any) -> Any:
        if is_publication(request.method, request.url) and not self._held:
            self._held.append((session, request))
            raise ConnectionClosedError(endpoint_url=request.url)
        if request.method == "HEAD" and "/_staging/" in request.url and self._held and not self.arrived:
            self.arrived += 1
            self._send(*self._held[0])
            self._after()
        return self._send(session, request)


def test_what_appeared_after_all_is_found_to_be_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sources: Any = [{"Key": f"{TABLE}/{source}"} for source in RESULT]

    def take_over() -> None:
        site.client.delete_objects(Bucket=site.bucket, Delete={"Objects": sources})

    late = Late(monkeypatch, take_over)
    publish(site, 1)
    assert late.arrived == 1
    assert site.names() == ["_probed", "base_5/bucket_00000"]


# What signs a request


def told_by(error: BaseException) -> str:
    """All that may be logged of an error, and of those it comes from."""
    texts: list[str] = []
    chain: list[BaseException | None] = [error]
    while chain:
        one = chain.pop()
        if one is not None:
            texts += [str(one), repr(one), *traceback.format_exception(one)]
            chain += [one.__cause__, one.__context__]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "failure",
    [
        lambda url: ConnectionClosedError(endpoint_url=url),
        lambda url: ReadTimeoutError(endpoint_url=url),
        lambda url: HTTPClientError(error=OSError(url)),
    ],
    ids=["closed", "timed out", "other"],
)
@pytest.mark.parametrize("operation", ["publish", "delete"])
def test_no_error_holds_a_signed_url(site: Site, failure: Callable[[str], Exception], operation: str) -> None:
    site.put("anchor")
    operations: dict[str, Callable[[], object]] = {
        "publish": lambda: publish(site),
        "delete": lambda: site.storage().delete_while_exists("anchor", ["_staging"]),
    }

    def fail(method: str, url: str) -> None:
        if "X-Amz-Signature" in url:
            raise failure(url)

    with watched(before=fail), pytest.raises(StorageError) as caught:
        operations[operation]()
    told = told_by(caught.value)
    assert "X-Amz-" not in told
    if operation == "publish":
        endpoint = site.options.endpoint_url or ""
        assert f"{type(failure('')).__name__} at {endpoint.removeprefix('http://')}" in told


def test_no_error_of_a_connection_that_really_breaks_holds_a_signed_url(s3: S3Server) -> None:
    def is_signed(exchange: Exchange) -> bool:
        return "X-Amz-Signature" in exchange.target

    with FaultProxy(s3.endpoint) as proxy:
        site = Site(s3, proxy.addresses[s3.endpoint])
        site.put("_staging/0")
        site.storage().write_new("_probed", b"")
        for number in range(1, s3_writing.ATTEMPTS + 1):
            proxy.lose_request(is_signed, number)
        with pytest.raises(HalfPublishedError) as caught:
            publish(site, 1)
    assert "X-Amz-" not in told_by(caught.value)
    assert "Error at 127.0.0.1:" in str(caught.value)


def test_a_name_that_is_taken_is_known_to_be_taken(site: Site) -> None:
    """Also after a try without an answer: what has somebody else's name is not ours."""

    def lose(method: str, url: str) -> None:
        if is_completion(method, url) and not published(site):
            site.put("base_5/bucket_00000", b"somebody else's")
            raise ConnectionClosedError(endpoint_url=url)

    with watched(before=lose), pytest.raises(NameTakenError):
        publish(site, 1)
    assert site.get("base_5/bucket_00000") == b"somebody else's"
