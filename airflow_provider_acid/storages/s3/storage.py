"""Tables on S3, and on stores that speak its protocol.

There are no directories and no renames here, only objects, each of which appears whole and by itself. What follows for
publishing and for fencing is said where it is done: :mod:`.publication`, :mod:`.signed`, :mod:`.writing`.
"""

from __future__ import annotations

import io
import posixpath
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from pyarrow.fs import FileInfo, FileSelector, FileType

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import HalfPublishedError, StorageError
from airflow_provider_acid.storages.ranged_reader import RangedReader
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.s3.arrow_upload import upload_whole
from airflow_provider_acid.storages.s3.conditions import check_conditions
from airflow_provider_acid.storages.s3.connection import S3Connection, connection
from airflow_provider_acid.storages.s3.errors import NoAnswerError, arrow_error, name_taken
from airflow_provider_acid.storages.s3.listing import listing_of
from airflow_provider_acid.storages.s3.location import S3Location, below, is_marker
from airflow_provider_acid.storages.s3.objects import S3Object, S3Objects
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.publication import S3Publication, Step, delete_while, ignore
from airflow_provider_acid.storages.s3.signed import LATE_SECONDS
from airflow_provider_acid.storages.s3.writing import S3Writing, go_on
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole


class S3Storage:
    """The objects below one prefix of a bucket.

    Listing and reading take Arrow alone, and so does :meth:`create` for names of the writer's own. All else takes
    boto3, since Arrow makes no conditional requests, and leaves markers where it deletes.

    :param location: ``s3://``, ``s3a://`` or ``s3n://``, as the metastore has it.
    :param options: how the store is reached.
    :param credentials: a key; None for AWS's own chain.
    :param on_copy: called after each copy of a publication, with its key.
    """

    rules = StoreRules(renames=False, late_request_seconds=LATE_SECONDS, tasks_may_not_delete=True)

    def __init__(
        self, location: str, options: S3Options, credentials: S3Credentials | None = None, on_copy: Step = ignore
    ) -> None:
        self._location = S3Location.parse(location)
        self._options = options
        self._connection: S3Connection = connection(options, credentials)
        self._objects = S3Objects(self._connection, self._location)
        self._on_copy = on_copy

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""
        return self._location.uri

    def home(self) -> str:
        """The bucket: an object store knows no users' directories, and who may write where is its policy."""
        return self._location.name("").rstrip("/")

    def may_change(self) -> None:
        """Nobody knows but the policies of the store, which tell it to those who try."""

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Everything below ``path``; see :meth:`~..filesystem.Storage.list`.

        The location itself may hold nothing, which cannot be told from its not existing.
        """
        key = self._location.key(path)
        name, root = self._location.name(key), self._path(below(key))
        try:
            found = self._select(key)
        except FileNotFoundError as error:
            if path:
                raise arrow_error(name, "cannot be listed", error) from error
            return Listing()
        except OSError as error:
            raise arrow_error(name, "cannot be listed", error) from error
        # Arrow shows markers as directories, and directories that only other keys imply; both exist for Hive.
        return listing_of(name, ((_relative(info, root), info.size or 0) for info in found))

    def exists(self, path: str) -> bool:
        """Whether there is any object of this key or below it, be it a marker."""
        key = self._location.key(path)
        try:
            info = self._connection.arrow.get_file_info(self._path(key))
            if info.type is FileType.File:
                return True
            # Only a listing tells a missing bucket from a missing key.
            self._select(key, recursive=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise arrow_error(self._location.name(key), "cannot be looked at", error) from error
        return True

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        """The bytes of a small file; see :meth:`~..filesystem.Storage.read`."""
        with self.open_input(path) as file:
            return read_whole(file, f"{self.location}/{path}", most_bytes)

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""
        key = self._location.key(path)
        name = self._location.name(key)
        try:
            file = self._connection.arrow.open_input_file(self._path(key))
            size_bytes = file.size()
        except OSError as error:
            raise arrow_error(name, "cannot be read", error) from error

        def fetch(offset: int, length: int) -> bytes:
            try:
                data: bytes = cast(Any, file).read_at(length, offset)
            except OSError as error:
                raise arrow_error(name, "cannot be read", error) from error
            if len(data) != length:
                raise StorageError(name, f"ends after {offset + len(data)} bytes of {size_bytes}", "read it again")
            return data

        return cast(BinaryIO, RangedReader(fetch, size_bytes))

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A writer of a new file; see :meth:`~..filesystem.Storage.create`.

        The bytes stay in a local file until the block has ended. Without boto3, the name has to be the writer's own:
        of two who write it at the same moment the later one wins.
        """
        key = self._key_below(path)
        with self._temporary_file() as file:
            yield file
            size_bytes = file.seek(0, io.SEEK_END)
            file.flush()
            self._upload(key, file, size_bytes)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; see :meth:`create`."""
        with self.create(path) as file:
            file.write(data)

    def make_directory(self, path: str) -> None:
        """Nothing: a directory is there as soon as there is something in it, and markers would be taken for data."""
        self._location.key(path)

    def make_private(self, path: str) -> None:
        """Nothing, as :meth:`make_directory`."""
        self._location.key(path)

    def check_private(self, path: str) -> None:
        """Nothing: objects have no modes."""
        self._location.key(path)

    def publish(self, source: str, target: str) -> None:
        """Give an object, or all objects of a directory, another name that does not exist.

        The store copies them, data before hidden files, and the sources are deleted when all are there. Not atomic.

        :raises NameTakenError: there is an object of the target's name or below it; nothing was changed.
        :raises StorageError: there is no source.
        :raises HalfPublishedError: some objects have their new names, and could not be taken back.
        """
        old, new = self._key_below(source), self._key_below(target)
        found = self._objects.at(old)
        moved = [item for item in found if not is_marker(item.key, item.size_bytes)]
        if not moved:
            raise _nothing_to_publish(self._location.name(old))
        self._publish_objects([(item, new + item.key[len(old) :]) for item in moved], go_on, old, new)
        self._objects.delete(item.key for item in found)

    def move(self, source: str, target: str) -> None:
        """The same: what the store has answered is there for good."""
        self.publish(source, target)

    def flush(self) -> None:
        """Nothing: see :meth:`move`."""

    def publish_files(self, files: Mapping[str, str], check: Callable[[], None]) -> None:
        """Copy files into directories that do not exist; see :meth:`~..filesystem.ObjectStorage.publish_files`."""
        places = [(self._key_below(source), self._key_below(target)) for source, target in files.items()]
        parents = sorted({key.rpartition("/")[0] for key, _ in places})
        # One look at what holds all of them, as a rule the staging directory.
        found = {item.key: item for item in self._objects.at(posixpath.commonpath(parents))}
        for key, _ in places:
            if key not in found:
                raise _nothing_to_publish(self._location.name(key))
        targets = sorted({key.rpartition("/")[0] for _, key in places})
        self._publish_objects([(found[key], target) for key, target in places], check, parents[0], *targets)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories, markers included; see :meth:`~..filesystem.Storage.delete`."""
        self._objects.delete(one.key for one in self._found(paths))

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove exactly these files, which nobody has to look for first."""
        self._objects.delete(self._key_below(path) for path in paths)

    def delete_while_exists(self, anchor: str, paths: Iterable[str]) -> bool:
        """Remove these as long as the file ``anchor`` exists; for who may have slept since he decided upon it.

        :returns: False where the anchor is gone; what had not been deleted by then stays.
        """
        return delete_while(self._objects, [self._location.key(anchor)], self._found(paths))

    def end_uploads(self, paths: Iterable[str]) -> None:
        """End what may still be made of these paths; see :meth:`~..filesystem.ObjectStorage.end_uploads`."""
        self._objects.end_uploads([self._key_below(path) for path in paths])

    def _publish_objects(
        self, copies: Sequence[tuple[S3Object, str]], check: Callable[[], None], source: str, *targets: str
    ) -> None:
        check_conditions(self._objects)
        for target in targets:
            if self._objects.at(target):
                raise name_taken(self._location.name(target))
        try:
            S3Publication(self._objects, check, self._on_copy).copy_all(copies)
        except NoAnswerError as error:
            raise HalfPublishedError(
                self._location.name(source),
                f"is published as {', '.join(map(self._location.name, targets))} or not, which is not known: {error}",
                "check the endpoint and the network, and look at both again",
            ) from error

    def _found(self, paths: Iterable[str]) -> Sequence[S3Object]:
        return self._objects.at_each([self._key_below(path) for path in paths])

    def _key_below(self, path: str) -> str:
        key = self._location.key(path)
        if key == self._location.prefix:
            raise StorageError(self.location, "is the location itself", "name what is meant below it")
        return key

    def _upload(self, key: str, file: BinaryIO, size_bytes: int) -> None:
        if self._connection.has_conditions:
            check_conditions(self._objects)
            S3Writing(self._objects).upload(key, file, size_bytes)
            return
        name = self._location.name(key)
        if self.exists(key[len(below(self._location.prefix)) :]):
            raise name_taken(name)
        upload_whole(self._connection.arrow, name, self._path(key), file, size_bytes)

    @contextmanager
    def _temporary_file(self) -> Iterator[BinaryIO]:
        folder = self._options.temporary_directory or tempfile.gettempdir()
        try:
            # The system removes it, whatever becomes of this process.
            file = tempfile.TemporaryFile(dir=folder, prefix="acid-")  # noqa: SIM115 - closed below
        except OSError as error:
            raise StorageError(
                folder,
                f"takes no temporary file for an upload to {self.location} ({error.strerror})",
                "free space there, or name another directory by the option temporary_directory",
            ) from error
        with file:
            yield cast(BinaryIO, file)

    def _select(self, key: str, *, recursive: bool = True) -> Sequence[FileInfo]:
        selector = FileSelector(self._path(key), recursive=recursive)
        return self._connection.arrow.get_file_info(selector)

    def _path(self, key: str) -> str:
        """As Arrow calls it."""
        return f"{self._location.bucket}/{key}" if key else self._location.bucket


def _relative(info: FileInfo, root: str) -> str:
    """The key below the listed directory, a directory's with a slash at its end."""
    name = info.path[len(root) :].lstrip("/")
    return f"{name}/" if info.type is FileType.Directory else name


def _nothing_to_publish(name: str) -> StorageError:
    return StorageError(name, "does not exist", "start the compaction again; its output was removed")
