"""Requests that are signed first and sent later, and that the store refuses once they are older than a few seconds.

A process may fall asleep between a look and what follows from it, and wake up when all has changed. So what must not
happen late is signed before the look: where the process slept too long, the store refuses it. A request that is still
under way is bounded by the same few seconds until the store takes it; what it took it may carry out later
(:meth:`~..filesystem.ObjectStorage.end_uploads`). The seconds are the store's, measured from this machine's clock at
the signing, so a clock that is ahead of the store's would add to them, and is refused.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.s3.connection import S3Connection
from airflow_provider_acid.storages.s3.errors import answer_error, store_errors, unreachable
from airflow_provider_acid.storages.s3.location import S3Location
from airflow_provider_acid.storages.s3.objects import WRITE_ID, Head

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse

SIGNED_SECONDS = 10
"""Age at which the store refuses a signed request."""

AHEAD_SECONDS = 5
"""How far this machine's clock may be ahead of the store's."""

LATE_SECONDS = SIGNED_SECONDS + AHEAD_SECONDS
"""How long after a look the store can still take the request that follows from it, whatever becomes of its sender."""


@dataclass(frozen=True)
class SignedRequest:
    """A request for one object.

    :param key: of the object.
    :param doing: what errors say.
    :param url: with the signature, so that whoever reads it can send the request too: it is in no error and no log.
    :param headers: covered by the signature, so they are sent as they are.
    :param answer: the XML element by which the store says that it did it; None where its status says so.
    """

    key: str
    doing: str
    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str]
    answer: str | None = None


class SignedRequests:
    """Signs requests, and sends them once; whether to send one again is for the caller to judge."""

    def __init__(self, connection: S3Connection, location: S3Location) -> None:
        self._connection = connection
        self._location = location

    def deletion(self, key: str, etag: str) -> SignedRequest:
        """To delete an object, on Amazon only if it still has this ETag; other stores do not look at that."""
        return self._signed("DELETE", "delete_object", key, "cannot be deleted", {"IfMatch": etag}, {"If-Match": etag})

    def creation(self, key: str, write_id: str) -> SignedRequest:
        """To make an object of whatever bytes are sent, if there is none of this key."""
        parameters = {"IfNoneMatch": "*", "Metadata": {WRITE_ID: write_id}}
        headers = {"If-None-Match": "*", f"x-amz-meta-{WRITE_ID}": write_id}
        return self._signed("PUT", "put_object", key, "cannot be written", parameters, headers)

    def completion(self, key: str, upload_id: str) -> SignedRequest:
        """To make an object of an upload's parts, if there is none of this key."""
        parameters = {"UploadId": upload_id, "IfNoneMatch": "*"}
        headers = {"If-None-Match": "*", "Content-Type": "application/xml"}
        request = self._signed("POST", "complete_multipart_upload", key, "cannot be written", parameters, headers)
        # The status comes before the store begins, then blanks, and at the end whether it was done.
        return replace(request, answer="CompleteMultipartUploadResult")

    def send(self, request: SignedRequest, body: bytes = b"") -> None:
        """Send a request.

        :raises RefusedByStoreError: the store refused it.
        :raises NoAnswerError: it is not known whether it was done, or may yet be.
        """
        answer = self._answer(request, body)
        root, name = _document(answer.content), self._location.name(request.key)
        tag = None if root is None else _name_of(root)
        error = _error(root) if root is not None and tag == "Error" else None
        if answer.status_code >= 300 or error is not None:
            code, message = error or (str(answer.status_code), "")
            raise answer_error(name, request.doing, code, message, answer.status_code)
        if request.answer not in (None, tag):
            # A store, or what stands before it, that dies in the midst of its answer may end it like a whole one.
            raise unreachable(name, request.doing, f"an answer without {request.answer}")

    def _answer(self, request: SignedRequest, body: bytes) -> AWSResponse:
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        prepared = AWSRequest(request.method, request.url, dict(request.headers), data=body).prepare()
        try:
            return self._connection.signed_session.send(prepared)
        except BotoCoreError as error:
            kind = type(error).__name__
        # Its own text, and that of what it comes from, hold the signed URL; so this error has nothing to do with it.
        words = f"{kind} at {urlsplit(request.url).netloc}"
        raise unreachable(self._location.name(request.key), request.doing, words)

    def _signed(
        self,
        method: str,
        operation: str,
        key: str,
        doing: str,
        parameters: Mapping[str, object],
        headers: Mapping[str, str],
    ) -> SignedRequest:
        name = self._location.name(key)
        client = self._connection.boto(name, doing)
        with store_errors(name, doing):
            url = client.generate_presigned_url(
                operation,
                Params={"Bucket": self._location.bucket, "Key": key, **parameters},
                ExpiresIn=SIGNED_SECONDS,
            )
        return SignedRequest(key, doing, method, url, headers)


def check_clock(name: str, head: Head) -> None:
    """Check that signed requests do not live longer than they should.

    :raises StorageError: this machine's clock is ahead.
    """
    if head.ahead_seconds > AHEAD_SECONDS:
        raise StorageError(
            name,
            f"cannot be changed safely: this machine's clock is {head.ahead_seconds:.0f} s ahead of the store's",
            "set the clock",
        )


def parts_document(etags: Sequence[str]) -> bytes:
    """The body of a completion: the parts in their order."""
    parts = (
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<CompleteMultipartUpload xmlns="{namespace}">{"".join(parts)}</CompleteMultipartUpload>'.encode()


def _document(content: bytes) -> ElementTree.Element | None:
    """What an answer says, be it behind blanks; None where that is no whole document."""
    try:
        return ElementTree.fromstring(content.strip())
    except ElementTree.ParseError:
        return None


def _error(root: ElementTree.Element) -> tuple[str, str]:
    """Code and message of an error document, which a completion may send with status 200."""
    texts = {_name_of(child): child.text or "" for child in root}
    return texts.get("Code", ""), texts.get("Message", "")


def _name_of(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
