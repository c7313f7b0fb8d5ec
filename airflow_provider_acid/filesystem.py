"""The one place that knows storages: a location's URI in, the few operations the rest relies on out.

What may be relied on, whatever the store:

- a listing is complete, with sizes, taken once and not page by page from the caller's side;
- a file appears under its name whole or not at all, and never replaces another;
- publishing is one atomic rename of a directory to a name that does not exist, or it fails and changes nothing;
- deleting removes exactly the named directories and files.

Object stores and HDFS are added behind the same protocol.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError


class Storage(Protocol):
    """The files below one location. All paths are relative to it, with ``/`` as separator."""

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""

    def list(self, path: str = "") -> Listing:
        """Everything below ``path``.

        :raises StorageError: the directory does not exist or cannot be read.
        """

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""

    def read(self, path: str) -> bytes:
        """The bytes of a (small) file."""

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""

    def create(self, path: str) -> AbstractOutput:
        """A writer of a new file that becomes visible under its name when the block ends without an error.

        :raises NameTakenError: the name exists when the block ends; the existing file stays as it is.
        """

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all.

        :raises NameTakenError: the name exists already.
        """

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""

    def publish(self, source: str, target: str) -> None:
        """Rename a file or directory atomically to a name that does not exist.

        :raises NameTakenError: ``target`` exists already.
        :raises StorageError: ``source`` does not exist.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories (with all below them); missing ones are no error."""


class AbstractOutput(Protocol):
    """The context manager that :meth:`Storage.create` returns."""

    def __enter__(self) -> BinaryIO:
        """Begin the file."""

    def __exit__(self, *error: object) -> bool | None:
        """Make the file visible, or drop it after an error."""


class LocalStorage:
    """A directory of the machine's own file system (also NFS and other mounts with POSIX renames)."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._root = Path(_local_path(location))

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""
        return self._location

    def list(self, path: str = "") -> Listing:
        """Everything below ``path``; see :meth:`Storage.list`."""
        files: list[FileEntry] = []
        directories: list[str] = []
        top = self._resolve(path)
        self._walk(top, "", files, directories)
        return Listing(tuple(sorted(files)), tuple(sorted(directories)))

    def _walk(self, directory: Path, prefix: str, files: list[FileEntry], directories: list[str]) -> None:
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    if entry.is_symlink():
                        raise StorageError(
                            entry.path,
                            "is a symbolic link inside a table",
                            "replace it by the file or directory itself",
                        )
                    if entry.is_dir():
                        directories.append(name)
                        self._walk(Path(entry.path), name + "/", files, directories)
                    else:
                        files.append(FileEntry(name, entry.stat().st_size))
        except OSError as error:
            raise _storage_error(directory, "cannot be listed", error) from error

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        return self._resolve(path).exists()

    def read(self, path: str) -> bytes:
        """The bytes of a (small) file."""
        with self.open_input(path) as file:
            return file.read()

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""
        try:
            return self._resolve(path).open("rb")
        except OSError as error:
            raise _storage_error(self._resolve(path), "cannot be read", error) from error

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A writer of a new file; see :meth:`Storage.create`."""
        final = self._resolve(path)
        partial = final.with_name(f"_{final.name}.{uuid.uuid4().hex}.partial")
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            # A hard link fails where the name exists; a rename would replace what is there.
            os.link(partial, final)
        except FileExistsError as error:
            raise NameTakenError(str(final), "exists already", "find out who wrote it before removing it") from error
        except OSError as error:
            raise _storage_error(final, "cannot be written", error) from error
        finally:
            partial.unlink(missing_ok=True)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; see :meth:`Storage.write_new`."""
        with self.create(path) as file:
            file.write(data)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""
        if not self._root.is_dir():
            raise StorageError(str(self._root), "does not exist", "check the location in the metastore")
        try:
            self._resolve(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _storage_error(self._resolve(path), "cannot be made", error) from error

    def publish(self, source: str, target: str) -> None:
        """Rename atomically to a name that does not exist; see :meth:`Storage.publish`."""
        old, new = self._resolve(source), self._resolve(target)
        # POSIX replaces an existing empty directory without a word, hence the look before.
        if new.exists():
            raise NameTakenError(str(new), "exists already", "find out who wrote it before removing it")
        try:
            os.rename(old, new)
        except OSError as error:
            if new.exists():
                raise NameTakenError(str(new), "exists already", "find out who wrote it before removing it") from error
            raise _storage_error(old, f"cannot be renamed to {new.name}", error) from error

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories; see :meth:`Storage.delete`."""
        for path in paths:
            victim = self._resolve(path)
            if victim == self._root:
                raise StorageError(str(victim), "is the location itself", "name what is to be deleted below it")
            try:
                if victim.is_dir():
                    shutil.rmtree(victim)
                else:
                    victim.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _storage_error(victim, "cannot be deleted", error) from error

    def _resolve(self, path: str) -> Path:
        relative = PurePosixPath(path)
        if relative.is_absolute() or ".." in relative.parts:
            raise StorageError(path, f"leaves the location {self._location}", "use paths below the location only")
        return self._root / relative


def storage_for(location: str) -> Storage:
    """The storage that holds ``location``, a URI as the metastore keeps it or an absolute local path.

    :raises StorageError: no storage is known for the URI's scheme.
    """
    scheme = urlsplit(location).scheme
    if scheme in ("", "file"):
        return LocalStorage(location)
    raise StorageError(
        location,
        f"the storage {scheme}:// is not supported by this release",
        "compact tables on file systems that Airflow and the Spark executors mount, or wait for a later release",
    )


def join(location: str, *parts: str) -> str:
    """A URI below ``location``; ``parts`` are taken as they are, not escaped."""
    return "/".join((location.rstrip("/"), *parts))


def _local_path(location: str) -> str:
    parts = urlsplit(location)
    if parts.scheme == "":
        path = location
    elif parts.netloc in ("", "localhost"):
        # Hive writes the path of a file: URI as it is, so that "%2F" in it is part of a partition's name.
        path = location[location.index(":") + 1 :]
        path = path[len("//" + parts.netloc) :] if path.startswith("//") else path
    else:
        raise StorageError(location, f"names the host {parts.netloc}", "use file:/path or file:///path")
    if not path.startswith("/"):
        raise StorageError(location, "is not an absolute path", "use the full path of the directory")
    return path


def _storage_error(path: Path, reason: str, error: OSError) -> StorageError:
    return StorageError(str(path), f"{reason} ({error.strerror or error})", "check path, permissions and free space")
