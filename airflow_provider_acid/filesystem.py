"""The one place that knows storages: a location's URI in, the few operations the rest relies on out.

What may be relied on, whatever the store:

- a listing is complete, with sizes, taken once and not page by page from the caller's side;
- a file appears under its name whole or not at all, and never replaces another;
- publishing is one atomic rename of a directory to a name that does not exist, or it fails and changes nothing; where
  there are no renames (:class:`ObjectStorage`), it is a copy of each file, and says so;
- deleting removes exactly the named directories and files;
- a symbolic link inside a table is refused: what it points to belongs to somebody else.

The kinds of storage are in :mod:`~airflow_provider_acid.storages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.storages.hdfs.location import HDFS_SCHEMES
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.paths import split_location
from airflow_provider_acid.storages.s3.location import SCHEMES as S3_SCHEMES
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES


class Storage(Protocol):
    """The files below one location. All paths are relative to it, with ``/`` as separator."""

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""

    def home(self) -> str:
        """URI of the place on the same store that belongs to the user for whom this storage acts; it may not exist.

        :raises ConfigurationError: there is none.
        """

    @property
    def publishes_atomically(self) -> bool:
        """Whether nobody ever sees a part of a directory that is being published under its new name."""

    def list(self, path: str = "") -> Listing:
        """Everything below ``path``.

        :raises StorageError: the directory does not exist or cannot be read.
        """

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        """The bytes of a small file.

        :raises CorruptFileError: it has more than ``most_bytes``; then nothing of it is read.
        """

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writer of a new file that becomes visible under its name when the block ends without an error.

        :raises NameTakenError: the name exists when the block ends; the existing file stays as it is.
        """

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all.

        :raises NameTakenError: the name exists already.
        """

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""

    def make_private(self, path: str) -> None:
        """Make a directory that nobody else may enter, at no moment; where there are no rights of files, do nothing.

        One that exists stays as it is and is checked.

        :raises RefusedError: see :meth:`check_private`.
        :raises ConfigurationError: it cannot be made.
        """

    def check_private(self, path: str) -> None:
        """Do nothing where nobody else may write into a directory, as far as the store knows rights of files.

        :raises RefusedError: it is somebody else's, others may write into it, or it is no directory.
        """

    def publish(self, source: str, target: str) -> None:
        """Rename a file or directory atomically to a name that does not exist.

        :raises NameTakenError: ``target`` exists already.
        :raises StorageError: ``source`` does not exist.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories (with all below them); missing ones are no error."""


@runtime_checkable
class ObjectStorage(Storage, Protocol):
    """A storage without directories and renames: each file appears, and goes, by itself.

    What a process may do long after it looked, because it fell asleep in between, is bound to a file whose removal
    by somebody else prevents it.
    """

    def publish_files(self, files: Mapping[str, str], check: Callable[[], None]) -> None:
        """Copy files into directories that do not exist: those of data first, then hidden ones; all of them or none.

        None is taken any more once its source is gone, but for :data:`~.storages.s3_signed.LATE_SECONDS`; what was
        taken until then ends with :meth:`end_uploads`.

        :param files: path of each source, with its new path; the sources stay.
        :param check: called by any thread before a copy appears; what it raises ends the publication.
        :raises NameTakenError: one of the directories exists.
        :raises StorageError: a source is not there (any more).
        :raises HalfPublishedError: some copies are there, or may be, and were not taken back.
        """

    def delete_while_exists(self, anchor: str, paths: Iterable[str]) -> bool:
        """Remove files and directories as long as the file ``anchor`` exists.

        :returns: False where the anchor is gone; what had not been deleted by then stays.
        """

    def end_uploads(self, paths: Iterable[str]) -> None:
        """End uploads to these paths that the store has begun, and that it may still be completing.

        A request that was taken in time may make its file minutes later; after this no more.

        :raises StorageError: one of them may still be under way.
        """


@dataclass(frozen=True)
class Storages:
    """Opens the storages of locations, as a site has set them up.

    :param hdfs: how the site's HDFS is reached.
    :param s3: how the site's S3 store is reached.
    :param s3_credentials: a key for it; None for what the machine has itself. Secret: it never leaves this process,
        and is no part of :meth:`to_json`.
    """

    hdfs: HdfsOptions = field(default_factory=HdfsOptions)
    s3: S3Options = field(default_factory=S3Options)
    s3_credentials: S3Credentials | None = field(default=None, repr=False)

    def open(self, location: str) -> Storage:
        """The storage that holds ``location``, a URI as the metastore keeps it or an absolute local path.

        :raises StorageError: no storage is known for the URI's scheme, or it does not answer.
        :raises ConfigurationError: what is set is not enough to reach it, or something it needs is not installed.
        """
        scheme = "file" if is_local(location) else split_location(location).scheme
        if scheme in ("", "file"):
            return LocalStorage(location)
        if scheme == "hdfs" and self.hdfs.libhdfs:
            # Importing pyarrow takes half a second, which no DAG file's parsing is worth.
            from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage

            return ArrowHdfsStorage(location, self.hdfs)
        if scheme in HDFS_SCHEMES:
            return WebHdfsStorage(location, self.hdfs)
        if scheme in S3_SCHEMES:
            from airflow_provider_acid.storages.s3.storage import S3Storage

            return S3Storage(location, self.s3, self.s3_credentials)
        raise StorageError(
            location,
            f"the storage {scheme}:// is not supported by this release",
            "compact tables on HDFS, S3, or file systems that Airflow and the Spark executors mount",
        )

    def to_json(self) -> str:
        """A JSON document, for the Spark application; empty parts are left out, and so is what is secret."""
        options = {"hdfs": self.hdfs.to_json(), "s3": self.s3.to_json()}
        return json.dumps({name: values for name, values in options.items() if values}, sort_keys=True)

    @classmethod
    def from_json(cls, document: str) -> Storages:
        """Storages from a JSON document as :meth:`to_json` writes it.

        :raises ConfigurationError: it is no such document.
        """
        try:
            data = json.loads(document)
        except ValueError as error:
            # Not as its cause: it holds the document.
            raise _no_options(f"are not JSON ({error})") from None
        return cls.from_options(data)

    @classmethod
    def from_options(cls, data: object) -> Storages:
        """Storages from what people write into a connection: an object with the keys ``hdfs`` and ``s3``.

        :raises ConfigurationError: a name is unknown, or a value cannot be used.
        """
        if not isinstance(data, dict):
            raise _no_options("are not an object")
        if unknown := sorted(set(data) - {"hdfs", "s3"}):
            raise _no_options(f"have the unknown key {unknown[0]}")
        if wrong := sorted(name for name, part in data.items() if not isinstance(part, dict)):
            raise _no_options(f"have no object as {wrong[0]}")
        return cls(HdfsOptions.from_json(data.get("hdfs", {})), S3Options.from_json(data.get("s3", {})))


def _no_options(reason: str) -> ConfigurationError:
    """Without the options themselves: somebody may have written a key among them."""
    remedy = 'write {"hdfs": {"web_addresses": ["namenode.example.com:9870"]}}, for example'
    return ConfigurationError("storage options", reason, remedy)


def is_local(location: str) -> bool:
    """Whether a location lies on a file system of this machine, its own or a mounted one."""
    return location.startswith("/") or location[: len("file:")].lower() == "file:"


def join(location: str, *parts: str) -> str:
    """A URI below ``location``; ``parts`` are taken as they are, not escaped."""
    return "/".join((location.rstrip("/"), *parts))
