"""Whether a store looks at conditions at all: one that does not know them replaces what is there without a word."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from io import BytesIO

from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages.s3.objects import S3Objects
from airflow_provider_acid.storages.s3.writing import S3Writing

PROBE_PREFIX = "_acid_probe_"
"""Begin of the name of the object that is written twice; hidden from every reader."""

_kept: set[tuple[str, str]] = set()
_lock = threading.Lock()


def check_conditions(objects: S3Objects) -> None:
    """Try it, once for each bucket of a store that is not Amazon's.

    :raises StorageError: the store replaces objects although it was told not to.
    """
    endpoint = objects.connection.options.endpoint_url
    if endpoint is None:
        return
    bucket = (endpoint, objects.location.bucket)
    with _lock:
        if bucket not in _kept:
            _try(objects)
            _kept.add(bucket)


def _try(objects: S3Objects) -> None:
    key = objects.location.key(PROBE_PREFIX + uuid.uuid4().hex)
    writing = S3Writing(objects)
    writing.upload(key, BytesIO(b"1"), 1)
    try:
        source = objects.at(key)[0]
        _must_fail(objects, key, lambda: writing.upload(key, BytesIO(b"2"), 1))
        _must_fail(objects, key, lambda: writing.copy(source, key))
    finally:
        objects.delete([key])


def _must_fail(objects: S3Objects, key: str, write: Callable[[], None]) -> None:
    try:
        write()
    except NameTakenError:
        return
    endpoint = objects.connection.options.endpoint_url
    raise StorageError(
        objects.location.name(key),
        f"was replaced by a request with If-None-Match, which {endpoint} does not look at",
        "use a store that makes conditional writes, or compact this table with Hive",
    )
