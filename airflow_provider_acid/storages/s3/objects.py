"""The objects of one location: what is there, and deleting it in batches."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.s3.connection import POOL, S3Connection
from airflow_provider_acid.storages.s3.errors import RefusedByStoreError, refused, store_errors
from airflow_provider_acid.storages.s3.location import FOLDER_SUFFIX, S3Location, below

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

WRITE_ID = "acid-write"
"""User metadata by which a writer knows its own object again when the answer to its request got lost."""

BATCH = 1000
"""Keys that one request can delete."""


@dataclass(frozen=True)
class S3Object:
    """An object as a listing shows it.

    :param etag: changes with the content; the same content can have the same one.
    """

    key: str
    size_bytes: int
    etag: str


@dataclass(frozen=True)
class Head:
    """What the store says of one object.

    :param write_id: whose it is; None where it was written by somebody else.
    :param ahead_seconds: how far this machine's clock is ahead of the store's, to the second.
    """

    etag: str
    size_bytes: int
    write_id: str | None
    ahead_seconds: float


class S3Objects:
    """Finds and deletes objects.

    :param connection: to the store.
    :param location: names bucket and location in errors.
    """

    def __init__(self, connection: S3Connection, location: S3Location) -> None:
        self._connection = connection
        self._location = location

    @property
    def location(self) -> S3Location:
        """Bucket and prefix."""
        return self._location

    @property
    def connection(self) -> S3Connection:
        """To the store."""
        return self._connection

    def client(self, key: str, doing: str) -> S3Client:
        """The boto3 client.

        :raises ConfigurationError: boto3 is not installed.
        """
        return self._connection.boto(self._location.name(key), doing)

    def at(self, key: str) -> tuple[S3Object, ...]:
        """The object of this key and all below it as a directory, markers included; by key.

        As a rule one request finds them, among others whose keys begin like this one. Where those are more than it
        tells, each kind is asked for by itself.
        """
        if not key:
            return tuple(self._list(key))
        begin_alike = self._list_at_once(key)
        if begin_alike is None:
            begin_alike = [*self._list(key, delimiter="/"), *self._list(key + FOLDER_SUFFIX), *self._list(below(key))]
        return _of(key, begin_alike)

    def at_each(self, keys: Sequence[str]) -> tuple[S3Object, ...]:
        """What :meth:`at` finds of each; several in one directory by one request, where that tells all of it."""
        found: dict[str, S3Object] = {}
        for parent in sorted({key.rpartition("/")[0] for key in keys}):
            some = [key for key in keys if key.rpartition("/")[0] == parent]
            together = self._list_at_once(below(parent)) if len(some) > 1 else None
            for key in some:
                found |= {one.key: one for one in (self.at(key) if together is None else _of(key, together))}
        return tuple(found.values())

    def head(self, key: str) -> Head | None:
        """What the store says of an object; None where there is none."""
        name, doing = self._location.name(key), "cannot be looked at"
        client = self.client(key, doing)
        try:
            with store_errors(name, doing):
                found = client.head_object(Bucket=self._location.bucket, Key=key)
        except RefusedByStoreError as error:
            if error.code in ("404", "NoSuchKey", "NotFound"):
                return None
            raise
        date = found["ResponseMetadata"]["HTTPHeaders"].get("date")
        if date is None:
            raise StorageError(name, "was shown without the store's time", "find out which proxy takes it out")
        ahead_seconds = time.time() - email.utils.parsedate_to_datetime(date).timestamp()
        return Head(found["ETag"], found["ContentLength"], found["Metadata"].get(WRITE_ID), ahead_seconds)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects at once; missing ones are no error."""
        pending = list(keys)
        for start in range(0, len(pending), BATCH):
            self._delete_batch(pending[start : start + BATCH])

    def end_uploads(self, keys: Sequence[str]) -> None:
        """End multipart uploads to these keys that were neither completed nor aborted, and those in completion.

        Where one is completed first, its object is there.
        """
        with ThreadPoolExecutor(max_workers=POOL) as pool:
            for _ in pool.map(self._end_uploads_of, keys):
                pass

    def _end_uploads_of(self, key: str) -> None:
        name, doing, bucket = self._location.name(key), "its open uploads cannot be ended", self._location.bucket
        client = self.client(key, doing)
        # Each key by itself: MinIO lists uploads for whole keys only.
        with store_errors(name, doing):
            pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=key)
            found = [one["UploadId"] for page in pages for one in page.get("Uploads", ()) if one["Key"] == key]
        for upload_id in found:
            try:
                with store_errors(name, doing):
                    client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
            except RefusedByStoreError as error:
                if error.code != "NoSuchUpload":
                    raise

    def _list_at_once(self, prefix: str) -> list[S3Object] | None:
        """All objects whose keys begin so; None where they are more than one request tells."""
        name, doing = self._location.name(prefix), "cannot be listed"
        with store_errors(name, doing):
            answer = self.client(prefix, doing).list_objects_v2(Bucket=self._location.bucket, Prefix=prefix)
        if answer["IsTruncated"]:
            return None
        return [S3Object(found["Key"], found["Size"], found["ETag"]) for found in answer.get("Contents", ())]

    def _list(self, prefix: str, delimiter: str = "") -> Iterator[S3Object]:
        name, doing = self._location.name(prefix), "cannot be listed"
        pages = self.client(prefix, doing).get_paginator("list_objects_v2")
        with store_errors(name, doing):
            for page in pages.paginate(Bucket=self._location.bucket, Prefix=prefix, Delimiter=delimiter):
                for found in page.get("Contents", ()):
                    yield S3Object(found["Key"], found["Size"], found["ETag"])

    def _delete_batch(self, keys: Sequence[str]) -> None:
        name, doing = self._location.name(keys[0]), "cannot be deleted"
        client = self.client(keys[0], doing)
        objects: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in keys]
        with store_errors(name, doing):
            answer = client.delete_objects(Bucket=self._location.bucket, Delete={"Objects": objects, "Quiet": True})
        for error in answer.get("Errors", ()):
            if error.get("Code") != "NoSuchKey":
                subject = self._location.name(error.get("Key", keys[0]))
                raise refused(subject, doing, error.get("Code", ""), error.get("Message", ""), 0)


def _of(key: str, objects: Iterable[S3Object]) -> tuple[S3Object, ...]:
    """The object of a key and those below it as a directory, by key."""
    names = (key, key + FOLDER_SUFFIX)
    found = {one.key: one for one in objects if one.key in names or one.key.startswith(below(key))}
    return tuple(found[name] for name in sorted(found))


def vanished(name: str) -> StorageError:
    """The error for an object that went while it was copied."""
    return StorageError(name, "was removed or replaced while it was published", "start the compaction again")
