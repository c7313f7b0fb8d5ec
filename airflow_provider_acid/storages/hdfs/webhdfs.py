"""HDFS over HTTP: no native library, no Java.

What is relied on (measured with Hadoop 3.4.3):

- ``RENAME`` with ``renameoptions=NONE`` is one step of the NameNode, and fails where the target exists, also as an
  empty directory, or its parent does not. Without the option, and in every other client but Java's ``FileContext``, a
  rename onto a directory moves *into* it. That a server heeds the option is found out before it is relied on.
- ``CREATE`` with ``createparent=false`` makes no directories. What it writes is seen from the first packet on, and
  stays where the connection breaks; so it goes to a hidden name, is measured, and then renamed.
- The id of a file survives renames and is never given again. So where the answer to a rename is lost, the file at the
  target says whether it was done.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages.hdfs.errors import SYMBOLIC_LINK_REMEDY, storage_errors
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.streamed_file import StreamedFile
from airflow_provider_acid.storages.hdfs.webhdfs_calls import FileStatus, RemoteError, name_nodes
from airflow_provider_acid.storages.hdfs.webhdfs_session import NoAnswerError
from airflow_provider_acid.storages.paths import relative_parts
from airflow_provider_acid.storages.private_directory import PRIVATE_MODE, check_is_private, no_home
from airflow_provider_acid.storages.ranged_reader import RangedReader
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole

_NO_PLACE = frozenset({"AccessControlException", "ParentNotDirectoryException", "FileAlreadyExistsException"})
_LATE_CREATE_PAUSES_SECONDS = (0.05, 0.2, 0.5)

log = logging.getLogger(__name__)


class WebHdfsStorage:
    """A directory of an HDFS, over the web servers of its NameNodes and DataNodes.

    New directories and files get the group of their parent, as always on HDFS, the owner that the options act for
    (Hive's compactor acts for the owner of the table's directory), and the permissions that the umask leaves.

    :param location: ``hdfs://…``, ``webhdfs://…`` or ``swebhdfs://…``.
    :raises StorageError: it is not on the HDFS of the options.
    :raises ConfigurationError: no web address is known.
    """

    rules = StoreRules()

    def __init__(self, location: str, options: HdfsOptions) -> None:
        self._place = HdfsLocation.of(location)
        self._name_nodes = name_nodes(self._place.web_addresses(options), options)

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""
        return self._place.location

    def home(self) -> str:
        """The home directory of the user that the options act for."""
        with storage_errors(self.location, "has a NameNode that does not name the home directory"):
            return self._place.beside(self._name_nodes.home())

    def may_change(self) -> bool:
        """Whether the user that the options act for may change names in it; see :meth:`~..filesystem.Storage`."""
        with storage_errors(self.location, "cannot be looked at"):
            return self._name_nodes.may_change(self._resolve(""))

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Everything below ``path``; see :meth:`~..filesystem.Storage.list`. One call per directory that matters."""
        files: list[FileEntry] = []
        directories: list[str] = []
        with storage_errors(self._uri(path), "cannot be listed"):
            root = self._resolve(path)
            level: Sequence[tuple[str, Sequence[FileStatus]]] = [("", self._name_nodes.children(root))]
            while level:
                found = [(prefix + status.name, status) for prefix, statuses in level for status in statuses]
                self._refuse_links(path, found)
                files += [FileEntry(name, status.size_bytes) for name, status in found if status.kind == "FILE"]
                below = [name for name, status in found if status.kind == "DIRECTORY"]
                if into is not None:
                    directories += [name for name in below if not into(name)]
                    below = [name for name in below if into(name)]
                    into = None
                listed = self._name_nodes.parallel(self._children_if_there, [f"{root}/{name}" for name in below])
                level = [(f"{name}/", found) for name, found in zip(below, listed, strict=True) if found is not None]
                directories += [prefix.rstrip("/") for prefix, _ in level]
        return Listing(tuple(sorted(files)), tuple(sorted(directories)))

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        return self._status(path, "cannot be looked at") is not None

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        """The bytes of a small file; see :meth:`~..filesystem.Storage.read`."""
        with self.open_input(path) as file:
            return read_whole(file, f"{self.location}/{path}", most_bytes)

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""
        full, uri = self._resolve(path), self._uri(path)
        status = self._status(path, "cannot be read")
        if status is None or status.kind != "FILE":
            reason = "does not exist" if status is None else "is no file"
            raise StorageError(uri, f"cannot be read (it {reason})", "look again; somebody may have removed it")
        name_nodes = self._name_nodes

        def fetch(offset: int, length: int) -> bytes:
            with storage_errors(uri, "cannot be read"):
                data = name_nodes.read(full, offset, length)
            if len(data) != length:
                raise StorageError(uri, f"ends {length - len(data)} bytes early", "find out who changes it")
            return data

        return cast(BinaryIO, RangedReader(fetch, status.size_bytes))

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A writer of a new file; see :meth:`~..filesystem.Storage.create`."""
        final, uri = self._below(path), self._uri(path)
        directory, _, name = final.rpartition("/")
        partials: list[str] = []

        def new_partial() -> str:
            partials.append(f"{directory}/_{name}.{uuid.uuid4().hex}.partial")
            return partials[-1]

        with storage_errors(uri, "cannot be written"):
            self._name_nodes.require_checked_renames(self._place.path)
        file = StreamedFile(lambda body, may_repeat: self._send(uri, directory, new_partial, body, may_repeat))
        is_cut = False
        try:
            yield cast(BinaryIO, file)
            file.finish()
            self._finish(uri, partials[-1], final, file.size_bytes)
            partials.pop()
        except BaseException:
            is_cut = file.abort()
            raise
        finally:
            file.close()
            for partial in partials:
                self._remove_partial(partial, is_cut)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; see :meth:`~..filesystem.Storage.write_new`."""
        with self.create(path) as file:
            file.write(data)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""
        parts, uri = relative_parts(self.location, path), self._uri(path)
        with storage_errors(uri, "cannot be made"):
            root = self._name_nodes.status(self._place.path)
            if root is None:
                raise self._no_location()
            self._name_nodes.make_directories(self._place.below(parts))
            now = self._name_nodes.status(self._place.path)
            if now is not None and now.file_id == root.file_id:
                return
            # The location was dropped meanwhile. What was made goes again, but not the location itself, which MKDIRS
            # may have brought back, empty: it may be that of a new table as well.
            for length in range(len(parts), 0, -1):
                self._delete_if_empty(self._place.below(parts[:length]))
        raise self._no_location()

    def make_private(self, path: str) -> None:
        """Make a directory that nobody else may enter; see :meth:`~..filesystem.Storage.make_private`."""
        with storage_errors(self._uri(path), "cannot be made"):
            place = self._below(path)
            try:
                # Parents that are missing would else be made with these rights, and be closed for everybody else.
                self._name_nodes.make_directories(place.rpartition("/")[0])
                self._name_nodes.make_directories(place, PRIVATE_MODE)
            except RemoteError as error:
                if error.kind in _NO_PLACE:
                    raise no_home(self._uri(path), str(error)) from error
                raise
        self.check_private(path)

    def check_private(self, path: str) -> None:
        """Check a directory's kind, owner and mode; see :meth:`~..filesystem.Storage.check_private`."""
        uri = self._uri(path)
        with storage_errors(uri, "cannot be looked at"):
            seen = self._name_nodes.status(self._resolve(path))
            # The last part of its path is the user's name, as HDFS calls whoever owns a file.
            me = self._name_nodes.home().rpartition("/")[2]
        if seen is None:
            raise StorageError(uri, "does not exist", "start the compaction again; somebody removed it")
        check_is_private(uri, seen.kind.lower(), seen.owner, me, seen.mode)

    def publish(self, source: str, target: str) -> None:
        """Rename atomically to a name that does not exist; see :meth:`~..filesystem.Storage.publish`."""
        uri, new = self._uri(source), self._below(target)
        operation = f"cannot be renamed to {target}"
        status = self._status(source, operation)
        old = self._below(source)
        if status is None:
            raise StorageError(uri, "does not exist", "start the compaction again; its output was removed")
        with storage_errors(uri, operation):
            self._name_nodes.require_checked_renames(self._place.path)
        self._rename(uri, self._uri(target), old, new, status.file_id)

    def move(self, source: str, target: str) -> None:
        """The same: the NameNode notes each change before it answers."""
        self.publish(source, target)

    def flush(self) -> None:
        """Nothing: see :meth:`move`."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories; see :meth:`~..filesystem.Storage.delete`."""
        victims = [(path, self._below(path)) for path in paths]
        self._name_nodes.parallel(self._delete, victims)

    def delete_files(self, paths: Iterable[str]) -> None:
        """The same, of files."""
        self.delete(paths)

    def _delete(self, victim: tuple[str, str]) -> None:
        with storage_errors(self._uri(victim[0]), "cannot be deleted"):
            self._name_nodes.delete(victim[1], recursive=True)

    def _status(self, path: str, operation: str) -> FileStatus | None:
        with storage_errors(self._uri(path), operation):
            status = self._name_nodes.status(self._resolve(path))
        if status is not None:
            self._refuse_links("", [(path, status)])
        return status

    def _children_if_there(self, directory: str) -> Sequence[FileStatus] | None:
        """What lies in a directory that was there a moment ago; None where it is gone."""
        try:
            return self._name_nodes.children(directory)
        except RemoteError as error:
            if error.says_missing:
                return None
            raise

    def _send(
        self,
        uri: str,
        directory: str,
        new_path: Callable[[], str],
        body: bytes | Iterator[bytes],
        may_repeat: Callable[[], bool],
    ) -> None:
        with storage_errors(uri, "cannot be written"):
            try:
                self._name_nodes.create(new_path, body, may_repeat)
            except NoAnswerError:
                # A server that refuses a body in its midst is not heard, as a rule.
                if self._name_nodes.status(directory) is None:
                    raise RemoteError("FileNotFoundException", "its directory does not exist") from None
                raise

    def _finish(self, uri: str, partial: str, final: str, size_bytes: int) -> None:
        with storage_errors(uri, "cannot be written"):
            status = self._name_nodes.status(partial)
            if status is None or status.size_bytes != size_bytes:
                found = "is gone" if status is None else f"has {status.size_bytes} bytes"
                raise RemoteError("IOException", f"{size_bytes} bytes were written, what was written {found}")
        self._rename(uri, uri, partial, final, status.file_id, "cannot be written")

    def _rename(
        self, uri: str, target_uri: str, old: str, new: str, file_id: int, operation: str | None = None
    ) -> None:
        """Rename; the answer to an earlier attempt at it may have been lost, so the file says what was done."""
        operation = operation or f"cannot be renamed to {new.rpartition('/')[2]}"
        with storage_errors(uri, operation):
            try:
                self._name_nodes.rename(old, new)
            except RemoteError as error:
                self._explain(target_uri, self._name_nodes.status(new), file_id, error)
            except NoAnswerError as error:
                if error.is_final:
                    raise
                found = self._status_after_silence(uri, new, error)
                if found is None:
                    raise self._unknown(uri, new, f"{error}; it was not a moment later") from error
                self._explain(target_uri, found, file_id, error)

    @staticmethod
    def _explain(target_uri: str, found: FileStatus | None, file_id: int, error: RemoteError | NoAnswerError) -> None:
        """Return if the file is at the target after all."""
        if found is None:
            raise error
        if found.file_id != file_id:
            raise NameTakenError(target_uri, "exists already", "find out who wrote it before removing it") from error

    def _status_after_silence(self, uri: str, new: str, error: NoAnswerError) -> FileStatus | None:
        try:
            return self._name_nodes.status(new)
        except NoAnswerError as again:
            raise self._unknown(uri, new, f"{error}; {again}") from again

    @staticmethod
    def _unknown(uri: str, new: str, reason: str) -> StorageError:
        return StorageError(
            uri,
            f"was to be renamed to {new}, and whether that was done is not known ({reason})",
            f"look whether {new} exists when HDFS answers again",
        )

    def _remove_partial(self, partial: str, is_cut: bool) -> None:
        """Remove what was written; what the server makes of a request that was cut may come after the first look."""
        try:
            for pause in (0.0, *(_LATE_CREATE_PAUSES_SECONDS if is_cut else ())):
                time.sleep(pause)
                if self._name_nodes.delete(partial, recursive=False):
                    return
        except (RemoteError, NoAnswerError) as error:
            log.warning("%s: what was written for it lies in %s, which stays: %s", self.location, partial, error)

    def _delete_if_empty(self, path: str) -> None:
        try:
            self._name_nodes.delete(path, recursive=False)
        except RemoteError as error:
            if error.kind != "PathIsNotEmptyDirectoryException":
                raise

    def _refuse_links(self, path: str, found: Iterable[tuple[str, FileStatus]]) -> None:
        for name, status in found:
            if status.kind == "SYMLINK":
                uri = self._uri(f"{path}/{name}" if path else name)
                raise StorageError(uri, "is a symbolic link inside a table", SYMBOLIC_LINK_REMEDY)

    def _no_location(self) -> StorageError:
        return StorageError(self.location, "does not exist", "check the location in the metastore")

    def _resolve(self, path: str) -> str:
        return self._place.below(relative_parts(self.location, path))

    def _below(self, path: str) -> str:
        """An absolute path that is not the location's own.

        :raises StorageError: it is.
        """
        parts = relative_parts(self.location, path)
        if not parts:
            raise StorageError(self.location, "is the location itself", "name something below it")
        return self._place.below(parts)

    def _uri(self, path: str) -> str:
        return "/".join((self.location.rstrip("/"), *filter(None, (path,))))
