"""Several objects under new keys: data first, hidden files after, and back again where one of them cannot be.

Not atomic. The order is for readers that look at directories: one with hidden files only is an empty directory for them
(an empty base hides rows), while data without its hidden files is at worst refused. What several data objects mean for
a reader that comes between them is for the caller to judge.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_provider_acid.exceptions import HalfPublishedError, StorageError
from airflow_provider_acid.storages.s3.connection import POOL
from airflow_provider_acid.storages.s3.errors import NoAnswerError, RefusedByStoreError
from airflow_provider_acid.storages.s3.location import is_hidden
from airflow_provider_acid.storages.s3.objects import S3Object, S3Objects
from airflow_provider_acid.storages.s3.signed import SignedRequest, SignedRequests, check_clock
from airflow_provider_acid.storages.s3.writing import S3Writing

log = logging.getLogger(__name__)

DELETE_ATTEMPTS = 3

Step = Callable[[str], None]
"""Hears of each copy that is there, by its key."""


def ignore(key: str) -> None:
    """Do nothing."""


class S3Publication:
    """Copies objects to their final keys.

    :param objects: of the location.
    :param check: called before each copy appears; what it raises ends the publication.
    :param on_copy: called after each copy.
    """

    def __init__(self, objects: S3Objects, check: Callable[[], None], on_copy: Step = ignore) -> None:
        self._objects = objects
        self._check = check
        self._writing = S3Writing(objects)
        self._on_copy = on_copy

    def copy_all(self, copies: Sequence[tuple[S3Object, str]]) -> None:
        """Make all copies, or none.

        The first data object goes alone: of two who publish the same directory one already fails there.

        :param copies: sources, each with its new key.
        :raises NameTakenError: one of the keys exists; none of them is ours.
        :raises HalfPublishedError: some are there, and could not be taken back, or are left to who took over.
        :raises NoAnswerError: one may be there or not; the others were taken back.
        """
        data = sorted((copy for copy in copies if not is_hidden(copy[1])), key=lambda copy: copy[1])
        hidden = [copy for copy in copies if is_hidden(copy[1])]
        done: list[tuple[S3Object, str]] = []
        try:
            for group in (data[:1], data[1:], hidden):
                self._copy_group(group, done)
        except BaseException as error:
            self._take_back(done, error)
            raise

    def _copy_group(self, group: Sequence[tuple[S3Object, str]], done: list[tuple[S3Object, str]]) -> None:
        if not group:
            return
        with ThreadPoolExecutor(max_workers=min(POOL, len(group))) as pool:
            futures = [pool.submit(self._copy, source, key, done) for source, key in group]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            # Of one of which nobody knows whether it is there, all the others' errors must not tell otherwise.
            raise next((error for error in errors if isinstance(error, NoAnswerError)), errors[0])

    def _copy(self, source: S3Object, key: str, done: list[tuple[S3Object, str]]) -> None:
        self._writing.copy(source, key, self._check)
        done.append((source, key))
        self._on_copy(key)

    def _take_back(self, done: Sequence[tuple[S3Object, str]], error: BaseException) -> None:
        """Delete what was copied, as long as its sources are there.

        :raises HalfPublishedError: that cannot be done, or they are gone: who removes them takes back the rest himself,
            and needs for it all that tells what belongs together.
        """
        again = "its staging directory was taken over meanwhile; who did that takes back the rest"
        try:
            for source, key in done:
                name = self._objects.location.name(source.key)
                log.info("%s: taking back its copy %s", name, key)
                if not delete_while(self._objects, [source.key], _still_there(self._objects, [key])):
                    break
            else:
                return
        except StorageError as failure:
            again = str(failure)
        raise HalfPublishedError(
            self._objects.location.name(done[0][1]),
            f"and {len(done)} objects in all were published without the rest ({error}), and could not be taken back "
            f"({again})",
            "run the compaction of this partition again, which does it first",
        ) from error


def delete_while(objects: S3Objects, anchors: Sequence[str], found: Sequence[S3Object]) -> bool:
    """Delete objects as long as others are there.

    Every deletion is signed before the look at the anchors, so that it does not happen later than
    :data:`~.signed.SIGNED_SECONDS` after it, however long this process sleeps.

    :returns: False where one of the anchors is gone; what had not been deleted by then stays.
    :raises StorageError: one cannot be deleted.
    """
    signed = SignedRequests(objects.connection, objects.location)
    pending = list(found)
    for _ in range(DELETE_ATTEMPTS):
        late: list[str] = []
        # Also of none the anchors are looked at: that somebody else deleted them may be why.
        for start in range(0, max(len(pending), 1), POOL):
            batch = pending[start : start + POOL]
            # The ETag is looked at on Amazon only; it is no proof, but it costs nothing.
            requests = [signed.deletion(one.key, one.etag) for one in batch]
            for anchor in anchors:
                head = objects.head(anchor)
                if head is None:
                    return False
                check_clock(objects.location.name(anchor), head)
            with ThreadPoolExecutor(max_workers=POOL) as pool:
                outcomes = list(pool.map(lambda request: _sent(signed, request), requests))
            late += [request.key for request, outcome in zip(requests, outcomes, strict=True) if not outcome]
        if not late:
            return True
        # Of some only the answer was lost.
        pending = _still_there(objects, late)
    if not pending:
        return True
    raise StorageError(
        objects.location.name(pending[0].key),
        "could not be deleted: requests came too late, or their answers not at all",
        "check this machine's clock and the network, and try again",
    )


def _still_there(objects: S3Objects, keys: Sequence[str]) -> list[S3Object]:
    """The objects of these keys."""
    with ThreadPoolExecutor(max_workers=POOL) as pool:
        heads = zip(keys, pool.map(objects.head, keys), strict=True)
        return [S3Object(key, head.size_bytes, head.etag) for key, head in heads if head is not None]


def _sent(signed: SignedRequests, request: SignedRequest) -> bool:
    """Whether the object is gone; False where nobody knows, or the request came too late."""
    try:
        signed.send(request)
    except NoAnswerError:
        return False
    except RefusedByStoreError as error:
        if error.code in ("NoSuchKey", "404"):
            return True
        if error.came_too_late:
            return False
        raise
    return True
