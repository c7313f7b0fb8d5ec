"""HDFS by libhdfs: reading is several times faster than over HTTP; every change still goes over WebHDFS.

libhdfs has but one rename, and pyarrow's ``HadoopFileSystem`` makes of it (measured with pyarrow 26, Hadoop 3.4.3):

- a directory renamed onto a directory is moved *into* it, without an error. To look before does not help: the other may
  appear in between. To look afterwards and move it back does not help either: meanwhile, and for ever where the process
  dies, readers that go below hidden names see its rows twice, and the staging directory is empty;
- ``move`` of a file onto a file **deletes the other and tries again**, so that not even a file can be published;
- ``create`` makes missing parents, so that a task of a dead attempt would find a place to write to;
- ``get_file_info`` says "not found" when permission is denied and when no NameNode answers, too. Callers here conclude
  from "not found" that somebody else was faster; so existence is found out by listing, whose errors are told apart.

Nothing in libhdfs makes up for the first three, so none of them is used: creating, publishing, making and deleting are
those of :class:`~.webhdfs.WebHdfsStorage`, whose rename is checked by the NameNode. Where no web address is known, they
are refused before anything was changed. (hdfs-native 0.14 renames safely, too, and lists faster, but each new file
takes it half a second, and one way to change names is enough.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, cast

from pyarrow import fs

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import ConfigurationError, ForbiddenError, StorageError
from airflow_provider_acid.storages.hdfs.libhdfs import close_quietly, connection
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.paths import relative_parts
from airflow_provider_acid.storages.ranged_reader import RangedReader
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole

_LIST_ATTEMPTS = 5


class ArrowHdfsStorage:
    """A directory of an HDFS, read by libhdfs and changed over WebHDFS.

    Names with characters beyond U+FFFF, which libhdfs garbles, are read over WebHDFS, too. HDFS has no symbolic links
    unless its administrators compiled them in; libhdfs does not show them.

    :param location: ``hdfs://host:port/path``, ``hdfs://nameservice/path`` or ``hdfs:///path``.
    :raises StorageError: libhdfs does not connect, or the location is not on the HDFS of the options.
    :raises ConfigurationError: libhdfs is not installed.
    """

    rules = StoreRules()

    def __init__(self, location: str, options: HdfsOptions) -> None:
        self._place = HdfsLocation.of(location)
        self._web = WebHdfsStorage(location, options) if options.web_addresses else None
        self._hdfs = connection(self._place, options)

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""
        return self._place.location

    def home(self) -> str:
        """The home directory of the user that the options act for."""
        return self._changes().home()

    def may_change(self) -> bool:
        """Whether the user that the options act for may change names in it; see :meth:`~..filesystem.Storage`."""
        return self._changes().may_change()

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Everything below ``path``; see :meth:`~..filesystem.Storage.list`."""
        root = self._resolve(path)
        if _is_garbled(root):
            return self._over_http().list(path)
        try:
            with self._errors(path, "cannot be listed"):
                found = [(info.path[len(root) + 1 :], info) for info in self._infos(root)]
        except UnicodeDecodeError:
            return self._over_http().list(path)
        files = [FileEntry(name, info.size) for name, info in found if info.type == fs.FileType.File]
        directories = [name for name, info in found if info.type == fs.FileType.Directory]
        return Listing(tuple(sorted(files)), tuple(sorted(directories)))

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        parts = relative_parts(self.location, path)
        if _is_garbled(self._resolve(path)):
            return self._over_http().exists(path)
        try:
            with self._errors(path, "cannot be looked at"):
                return self._type_of(parts) != fs.FileType.NotFound
        except UnicodeDecodeError:
            return self._over_http().exists(path)

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        """The bytes of a small file; see :meth:`~..filesystem.Storage.read`."""
        with self.open_input(path) as file:
            return read_whole(file, f"{self.location}/{path}", most_bytes)

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""
        if _is_garbled(self._resolve(path)):
            return self._over_http().open_input(path)
        with self._errors(path, "cannot be read"):
            file = self._hdfs.open_input_file(self._resolve(path))
            size_bytes = file.size()

        def fetch(offset: int, length: int) -> bytes:
            with self._errors(path, "cannot be read"):
                data: bytes = file.read_at(length, offset)  # type: ignore[call-arg]  # the stubs lack the offset
            if len(data) != length:
                raise StorageError(self._uri(path), f"ends {length - len(data)} bytes early", "find out who changes it")
            return data

        return cast(BinaryIO, RangedReader(fetch, size_bytes, lambda: close_quietly(file)))

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writer of a new file; see :meth:`~..filesystem.Storage.create`."""
        return self._changes().create(path)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; see :meth:`~..filesystem.Storage.write_new`."""
        self._changes().write_new(path, data)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""
        self._changes().make_directory(path)

    def make_private(self, path: str) -> None:
        """Make a directory that nobody else may enter; see :meth:`~..filesystem.Storage.make_private`."""
        self._changes().make_private(path)

    def check_private(self, path: str) -> None:
        """Check a directory's kind, owner and mode; see :meth:`~..filesystem.Storage.check_private`."""
        self._changes().check_private(path)

    def publish(self, source: str, target: str) -> None:
        """Rename atomically to a name that does not exist; see :meth:`~..filesystem.Storage.publish`."""
        self._changes().publish(source, target)

    def move(self, source: str, target: str) -> None:
        """The same: the NameNode notes each change before it answers."""
        self.publish(source, target)

    def flush(self) -> None:
        """Nothing: see :meth:`move`."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories; see :meth:`~..filesystem.Storage.delete`."""
        self._changes().delete(paths)

    def delete_files(self, paths: Iterable[str]) -> None:
        """The same, of files."""
        self.delete(paths)

    def _changes(self) -> WebHdfsStorage:
        return self._web_in_its_place(
            "can only be read, for libhdfs can neither create nor rename without risk to what is there"
        )

    def _over_http(self) -> WebHdfsStorage:
        return self._web_in_its_place("holds names with characters beyond U+FFFF, which libhdfs garbles")

    def _web_in_its_place(self, reason: str) -> WebHdfsStorage:
        if self._web is None:
            remedy = "set web_addresses of the HDFS options to the NameNodes' dfs.namenode.http-address"
            raise ConfigurationError(self.location, reason, remedy)
        return self._web

    def _type_of(self, parts: tuple[str, ...]) -> fs.FileType:
        """What is at a path, by a listing of its parent; the location itself is a directory or an error."""
        directory = self._place.below(parts[:-1])
        try:
            infos = self._hdfs.get_file_info(fs.FileSelector(directory))
        except FileNotFoundError:
            return fs.FileType.NotFound
        except PermissionError:
            raise
        except OSError:
            # pyarrow gives no other sign of a path that goes through a file.
            if len(parts) < 2 or self._type_of(parts[:-1]) != fs.FileType.File:
                raise
            return fs.FileType.NotFound
        if not parts:
            return fs.FileType.Directory
        return next((info.type for info in infos if info.base_name == parts[-1]), fs.FileType.NotFound)

    def _infos(self, root: str) -> Sequence[fs.FileInfo]:
        selector = fs.FileSelector(root, recursive=True)
        for _ in range(_LIST_ATTEMPTS - 1):
            try:
                return self._hdfs.get_file_info(selector)
            except FileNotFoundError:
                # A directory below vanished meanwhile, or this one is not there at all.
                self._hdfs.get_file_info(fs.FileSelector(root))
        return self._hdfs.get_file_info(selector)

    @contextmanager
    def _errors(self, path: str, operation: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            remedy = "give the user the right, or act for the tables' owner"
            raise self._error(path, operation, error, remedy, ForbiddenError) from error
        except FileNotFoundError as error:
            remedy = "check the location in the metastore; somebody may have dropped the table meanwhile"
            raise self._error(path, operation, error, remedy) from error
        except OSError as error:
            remedy = "see whether the NameNode runs, and libhdfs's messages in the log"
            raise self._error(path, operation, error, remedy) from error

    def _error(
        self, path: str, operation: str, error: OSError, remedy: str, kind: type[StorageError] = StorageError
    ) -> StorageError:
        return kind(self._uri(path), f"{operation} ({error.strerror or error})", remedy)

    def _resolve(self, path: str) -> str:
        return self._place.below(relative_parts(self.location, path))

    def _uri(self, path: str) -> str:
        return "/".join((self.location.rstrip("/"), *filter(None, (path,))))


def _is_garbled(path: str) -> bool:
    """Whether libhdfs takes a path for another: it takes UTF-8 for Java's own encoding, which differs there."""
    return any(character > "\uffff" for character in path)
