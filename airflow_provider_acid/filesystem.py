"""The one place that knows storages: a location's URI in, the few operations the rest relies on out.

What may be relied on, whatever the store:

- a listing is complete, with sizes, taken once and not page by page from the caller's side;
- a file appears under its name whole or not at all, and never replaces another;
- publishing is one atomic rename of a directory to a name that does not exist, or it fails and changes nothing; where
  there are no renames (:class:`ObjectStorage`), it is a copy of each file;
- deleting removes exactly the named directories and files;
- a symbolic link inside a table is refused: what it points to belongs to somebody else.

The kinds of stores are in :mod:`~airflow_provider_acid.storages`, a room each, and a line each in :data:`STORES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Protocol, TypeVar

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import ConfigurationError, UnsupportedStorageError
from airflow_provider_acid.storages.hdfs.location import HDFS_SCHEMES
from airflow_provider_acid.storages.hdfs.opening import open_hdfs
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.paths import split_location
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.s3.location import SCHEMES as S3_SCHEMES
from airflow_provider_acid.storages.s3.opening import open_s3
from airflow_provider_acid.storages.s3.options import S3Options
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

    def may_change(self) -> bool | None:
        """Whether names may be made and removed right in the location; None where that cannot be asked.

        Where it is not there: whether the first name in it makes it, too.
        """

    @property
    def rules(self) -> StoreRules:
        """What its kind of store does its own way."""

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Everything below ``path``.

        :param into: whether a directory right below ``path`` matters, by its name; what lies in the others need not be
            found out, where that costs calls. None where all do.
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

    def move(self, source: str, target: str) -> None:
        """The same, but a power cut may undo it until :meth:`flush`."""

    def flush(self) -> None:
        """Let no power cut undo any more what was moved that lay right below the location, whoever moved it."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories (with all below them); missing ones are no error."""

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove exactly these files; missing ones are no error.

        For who knows that they are no directories: some stores have to look for what lies below a name.
        """


class ObjectStorage(Storage, Protocol):
    """A storage without directories and renames: each file appears, and goes, by itself.

    What a process may do long after it looked, because it fell asleep in between, is bound to a file whose removal
    by somebody else prevents it.
    """

    def publish_files(self, files: Mapping[str, str], check: Callable[[], None]) -> None:
        """Copy files into directories that do not exist: those of data first, then hidden ones; all of them or none.

        None is taken any more once its source is gone, but for the rules' ``late_request_seconds``; what was taken
        until then ends with :meth:`end_uploads`.

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


class StoreOptions(Protocol):
    """How stores of one kind are reached at a site. They travel to the Spark application, but for what is secret."""

    def to_json(self) -> dict[str, object]:
        """A JSON object; what has its default is left out, and so is what is secret."""

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> StoreOptions:
        """Options from a JSON object, as :meth:`to_json` or a person writes them.

        :raises ConfigurationError: a name is unknown, or a value has the wrong type or cannot be used.
        """


Options = TypeVar("Options", bound=StoreOptions)


@dataclass(frozen=True)
class StoreKind:
    """One kind of store.

    :param name: its key among the storage options.
    :param schemes: of the locations on it.
    :param options: the class of its options.
    :param open: opens a location by such options; cheap to import.
    """

    name: str
    schemes: frozenset[str]
    options: type[StoreOptions]
    open: Callable[[str, Any], Storage]


STORES = (
    StoreKind("hdfs", HDFS_SCHEMES, HdfsOptions, open_hdfs),
    StoreKind("s3", S3_SCHEMES, S3Options, open_s3),
)
"""The kinds of stores beside the file systems of this machine."""


@dataclass(frozen=True)
class Storages:
    """Opens the storages of locations, as a site has set them up.

    :param options: at most one per kind of store; one without has its defaults.
    """

    options: tuple[StoreOptions, ...] = ()

    def of(self, kind: type[Options]) -> Options:
        """The options of a kind."""
        return next((options for options in self.options if isinstance(options, kind)), kind())

    def using(self, options: StoreOptions) -> Storages:
        """The same with other options of one kind."""
        kept = (other for other in self.options if type(other) is not type(options))
        return replace(self, options=(*kept, options))

    def open(self, location: str) -> Storage:
        """The storage that holds ``location``, a URI as the metastore keeps it or an absolute local path.

        :raises UnsupportedStorageError: no storage is known for the URI's scheme.
        :raises StorageError: it does not answer.
        :raises ConfigurationError: what is set is not enough to reach it, or something it needs is not installed.
        """
        scheme = "file" if location.startswith("/") else split_location(location).scheme
        if scheme in ("", "file"):
            return LocalStorage(location)
        kind = next((kind for kind in STORES if scheme in kind.schemes), None)
        if kind is not None:
            return kind.open(location, self.of(kind.options))
        raise UnsupportedStorageError(
            location,
            f"the storage {scheme}:// is not supported by this release",
            "compact tables on HDFS, S3, or file systems that Airflow and the Spark executors mount",
        )

    def to_json(self) -> str:
        """A JSON document, for the Spark application; empty parts are left out, and so is what is secret."""
        options = {kind.name: self.of(kind.options).to_json() for kind in STORES}
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
        """Storages from what people write into a connection: an object with a key for each kind of store.

        :raises ConfigurationError: a name is unknown, or a value cannot be used.
        """
        if not isinstance(data, dict):
            raise _no_options("are not an object")
        kinds = {kind.name: kind.options for kind in STORES}
        if unknown := sorted(set(data) - set(kinds)):
            raise _no_options(f"have the unknown key {unknown[0]}")
        if wrong := sorted(name for name, part in data.items() if not isinstance(part, dict)):
            raise _no_options(f"have no object as {wrong[0]}")
        return cls(tuple(kinds[name].from_json(part) for name, part in data.items()))


def _no_options(reason: str) -> ConfigurationError:
    """Without the options themselves: somebody may have written a key among them."""
    remedy = 'write {"hdfs": {"web_addresses": ["namenode.example.com:9870"]}}, for example'
    return ConfigurationError("storage options", reason, remedy)


def join(location: str, *parts: str) -> str:
    """A URI below ``location``; ``parts`` are taken as they are, not escaped."""
    return "/".join((location.rstrip("/"), *parts))
