"""New objects that never replace another: from local bytes, or as a copy that the store makes itself.

One request makes an object visible, with the condition that there is none of its key: a PUT, or the completion of a
multipart upload. CopyObject is not used: not every store looks at its condition (MinIO replaces what is there). Where
an answer got lost, the object's own metadata tells whether it is ours.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypedDict

from airflow_provider_acid.exceptions import AcidError, StorageError
from airflow_provider_acid.storages.s3.errors import NoAnswerError, RefusedByStoreError, name_taken, store_errors
from airflow_provider_acid.storages.s3.objects import WRITE_ID, S3Object, S3Objects, vanished
from airflow_provider_acid.storages.s3.signed import SignedRequest, SignedRequests, check_clock, parts_document

log = logging.getLogger(__name__)

ONE_PUT_BYTES = 16 * 1024 * 1024
"""Longest file that goes up in one request."""

PART_BYTES = 16 * 1024 * 1024
COPIED_PART_BYTES = 1024 * 1024 * 1024
MAX_PARTS = 9_000
ATTEMPTS = 3

_DOING = "cannot be written"
_CONFLICTS = frozenset({"ConditionalRequestConflict", "OperationAborted"})
"""Somebody else was writing or deleting the same key."""


class _Range(TypedDict, total=False):
    CopySourceRange: str


def go_on() -> None:
    """Nothing else than its source has to be there for a copy."""


class S3Writing:
    """Writes the objects of one location.

    :param objects: of the location.
    """

    def __init__(self, objects: S3Objects) -> None:
        self._objects = objects
        self._signed = SignedRequests(objects.connection, objects.location)

    def upload(self, key: str, file: BinaryIO, size_bytes: int) -> None:
        """Make an object of a file's bytes.

        :raises NameTakenError: the key exists.
        """
        if size_bytes <= ONE_PUT_BYTES:
            file.seek(0)
            data = file.read(size_bytes)
            self._retried(lambda: self._put(key, data))
            return
        length = max(PART_BYTES, -(-size_bytes // MAX_PARTS))

        def parts(upload_id: str) -> Iterator[str]:
            file.seek(0)
            for number in range(1, -(-size_bytes // length) + 1):
                yield self._upload_part(key, upload_id, number, file.read(length))

        self._retried(lambda: self._multipart(key, parts, lambda: None))

    def copy(self, source: S3Object, key: str, check: Callable[[], None] = go_on) -> None:
        """Make an object of another's bytes, without their passing through this machine.

        The source is looked at between signing and sending of the request that makes the copy visible: a process whose
        staging directory was removed, and that was asleep, makes none.

        :param check: called at that moment too.
        :raises NameTakenError: the key exists.
        :raises StorageError: the source is not there any more.
        """

        def look() -> None:
            name = self._objects.location.name(source.key)
            head = self._objects.head(source.key)
            if head is None or head.etag != source.etag:
                raise vanished(name)
            check_clock(name, head)
            check()

        def parts(upload_id: str) -> Iterator[str]:
            if source.size_bytes <= COPIED_PART_BYTES:
                # Amazon takes no range of a small object.
                yield self._copy_part(source, key, upload_id, 1, {})
                return
            for number, start in enumerate(range(0, source.size_bytes, COPIED_PART_BYTES), 1):
                end = min(start + COPIED_PART_BYTES, source.size_bytes)
                span: _Range = {"CopySourceRange": f"bytes={start}-{end - 1}"}
                yield self._copy_part(source, key, upload_id, number, span)

        if source.size_bytes == 0:
            # An upload has at least one part, and a part of no bytes cannot be copied.
            self._retried(lambda: self._make_empty(key, look))
        else:
            self._retried(lambda: self._multipart(key, parts, look))

    def _retried(self, write: Callable[[], None]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                write()
            except RefusedByStoreError as error:
                if error.code not in _CONFLICTS or attempt == ATTEMPTS:
                    raise
            else:
                return

    def _put(self, key: str, data: bytes) -> None:
        location, write_id = self._objects.location, uuid.uuid4().hex
        client = self._objects.client(key, _DOING)
        try:
            with store_errors(location.name(key), _DOING):
                client.put_object(
                    Bucket=location.bucket, Key=key, Body=data, IfNoneMatch="*", Metadata={WRITE_ID: write_id}
                )
        except (NoAnswerError, RefusedByStoreError) as error:
            if not self._is_done(key, write_id, error):
                raise

    def _make_empty(self, key: str, look: Callable[[], None]) -> None:
        write_id = uuid.uuid4().hex
        self._make_visible(key, write_id, lambda: self._signed.creation(key, write_id), look)

    def _multipart(self, key: str, parts: Callable[[str], Iterator[str]], look: Callable[[], None]) -> None:
        location, write_id = self._objects.location, uuid.uuid4().hex
        client = self._objects.client(key, _DOING)
        with store_errors(location.name(key), _DOING):
            started = client.create_multipart_upload(
                Bucket=location.bucket, Key=key, Metadata={WRITE_ID: write_id}, ContentType="binary/octet-stream"
            )
        upload_id = started["UploadId"]
        try:
            body = parts_document(list(parts(upload_id)))
            self._make_visible(key, write_id, lambda: self._signed.completion(key, upload_id), look, body)
        except AcidError as error:
            # After it no completion that is still under way can succeed, so that the look says what holds.
            self._abort(key, upload_id)
            if not self._is_done(key, write_id, error):
                raise
        except BaseException:
            self._abort(key, upload_id)
            raise

    def _make_visible(
        self, key: str, write_id: str, sign: Callable[[], SignedRequest], look: Callable[[], None], body: bytes = b""
    ) -> None:
        """Send the request by which an object appears, and again where that may help.

        :raises NoAnswerError: one of the tries may have been carried out, or may yet be, whatever came after it.
        """
        silence: NoAnswerError | None = None
        for attempt in range(1, ATTEMPTS + 1):
            request = sign()
            try:
                look()
                self._signed.send(request, body)
            except AcidError as error:
                if self._is_done(key, write_id, error):
                    return
                silence = error if isinstance(error, NoAnswerError) else silence
                if attempt == ATTEMPTS or not _may_be_sent_again(error):
                    if silence is None or silence is error:
                        raise
                    raise silence from error
            else:
                return

    def _is_done(self, key: str, write_id: str, error: AcidError) -> bool:
        """Whether a request whose answer got lost, or an earlier try of it, was carried out.

        :raises NameTakenError: somebody else's object has the key.
        :raises NoAnswerError: the store cannot be asked.
        """
        name = self._objects.location.name(key)
        try:
            head = self._objects.head(key)
        except StorageError as unseen:
            reason = f"{error.reason}, and may be written all the same, which is not known ({unseen.reason})"
            raise NoAnswerError(name, reason, error.remedy) from unseen
        if head is not None and head.write_id == write_id:
            return True
        if isinstance(error, RefusedByStoreError) and error.code in ("PreconditionFailed", "412"):
            raise name_taken(name) from error
        return False

    def _upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        location = self._objects.location
        client = self._objects.client(key, _DOING)
        with store_errors(location.name(key), _DOING):
            answer = client.upload_part(
                Bucket=location.bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=data
            )
        return answer["ETag"]

    def _copy_part(self, source: S3Object, key: str, upload_id: str, number: int, span: _Range) -> str:
        location = self._objects.location
        client = self._objects.client(key, _DOING)
        try:
            with store_errors(location.name(key), _DOING):
                answer = client.upload_part_copy(
                    Bucket=location.bucket,
                    Key=key,
                    UploadId=upload_id,
                    PartNumber=number,
                    CopySource={"Bucket": location.bucket, "Key": source.key},
                    CopySourceIfMatch=source.etag,
                    **span,
                )
        except RefusedByStoreError as error:
            if error.code in ("NoSuchKey", "PreconditionFailed", "404", "412"):
                raise vanished(location.name(source.key)) from error
            raise
        return answer["CopyPartResult"]["ETag"]

    def _abort(self, key: str, upload_id: str) -> None:
        """Nobody sees the parts of an upload, but they are paid for until it is aborted."""
        location = self._objects.location
        client = self._objects.client(key, _DOING)
        try:
            with store_errors(location.name(key), "its upload cannot be aborted"):
                client.abort_multipart_upload(Bucket=location.bucket, Key=key, UploadId=upload_id)
        except RefusedByStoreError as error:
            if error.code != "NoSuchUpload":
                log.warning("%s", error)
        except StorageError as error:
            log.warning("%s", error)


def _may_be_sent_again(error: AcidError) -> bool:
    return isinstance(error, NoAnswerError) or (isinstance(error, RefusedByStoreError) and error.came_too_late)
