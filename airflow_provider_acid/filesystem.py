"""The one place that knows storages: a location's URI in, the few operations the rest relies on out.

What may be relied on, whatever the store:

- a listing is complete, with sizes, taken once and not page by page from the caller's side;
- a file appears under its name whole or not at all, and never replaces another;
- publishing is one atomic rename of a directory to a name that does not exist, or it fails and changes nothing;
- deleting removes exactly the named directories and files;
- a symbolic link inside a table is refused: what it points to belongs to somebody else.

Object stores and HDFS are added behind the same protocol.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol
from urllib.parse import SplitResult, urlsplit

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})
_DELETE_ATTEMPTS = 5


class Storage(Protocol):
    """The files below one location. All paths are relative to it, with ``/`` as separator."""

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""

    @property
    def publishes_atomically(self) -> bool:
        """Whether nobody ever sees a part of a directory that is being published under its new name."""

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

    def publish(self, source: str, target: str) -> None:
        """Rename a file or directory atomically to a name that does not exist.

        :raises NameTakenError: ``target`` exists already.
        :raises StorageError: ``source`` does not exist.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories (with all below them); missing ones are no error."""


class LocalStorage:
    """A directory of the machine's own file system (also NFS and other mounts with POSIX renames)."""

    publishes_atomically = True

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
        _walk(self._resolve(path), "", files, directories)
        return Listing(tuple(sorted(files)), tuple(sorted(directories)))

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        return self._resolve(path).exists()

    def read(self, path: str) -> bytes:
        """The bytes of a (small) file."""
        with self.open_input(path) as file:
            try:
                return file.read()
            except OSError as error:
                raise _storage_error(self._resolve(path), "cannot be read", error) from error

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
        with _writing(final):
            file = partial.open("xb")
        try:
            with file:
                # Errors of the caller's block pass as they are; only this module's own calls are translated.
                yield file
                with _writing(final):
                    file.flush()
                    os.fsync(file.fileno())
            with _writing(final):
                _move_without_replacing(partial, final)
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
        if not old.exists():
            raise StorageError(str(old), "does not exist", "start the compaction again; its output was removed")
        # POSIX replaces an existing empty directory without a word, hence the look before.
        if new.exists():
            raise _name_taken(new)
        try:
            if old.is_dir():
                os.rename(old, new)
                _flush_directory(new.parent)
            else:
                _move_without_replacing(old, new)
        except OSError as error:
            if new.exists():
                raise _name_taken(new) from error
            raise _storage_error(old, f"cannot be renamed to {new.name}", error) from error

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories; see :meth:`Storage.delete`."""
        victims = [self._resolve(path) for path in paths]
        if self._root in victims:
            raise StorageError(str(self._root), "is the location itself", "name what is to be deleted below it")
        for victim in victims:
            try:
                _remove(victim)
            except OSError as error:
                raise _storage_error(victim, "cannot be deleted", error) from error

    def _resolve(self, path: str) -> Path:
        relative = PurePosixPath(path)
        if relative.is_absolute() or ".." in relative.parts:
            raise StorageError(path, f"leaves the location {self._location}", "use paths below the location only")
        resolved = self._root
        for part in relative.parts:
            resolved /= part
            if resolved.is_symlink():
                raise _symbolic_link(str(resolved))
        return resolved


def storage_for(location: str) -> Storage:
    """The storage that holds ``location``, a URI as the metastore keeps it or an absolute local path.

    :raises StorageError: no storage is known for the URI's scheme.
    """
    scheme = _split(location).scheme
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


def _split(location: str) -> SplitResult:
    try:
        return urlsplit(location)
    except ValueError as error:
        raise StorageError(location, f"is not a URI ({error})", "check the location in the metastore") from error


def _local_path(location: str) -> str:
    parts = _split(location)
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


def _walk(directory: Path, prefix: str, files: list[FileEntry], directories: list[str]) -> None:
    """What was removed since its name was read is not there; others may tidy up at any time."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_symlink():
                    raise _symbolic_link(entry.path)
                if entry.is_dir():
                    _walk_below(Path(entry.path), name, files, directories)
                else:
                    with suppress(FileNotFoundError):
                        files.append(FileEntry(name, entry.stat().st_size))
    except OSError as error:
        raise _storage_error(directory, "cannot be listed", error) from error


def _walk_below(directory: Path, name: str, files: list[FileEntry], directories: list[str]) -> None:
    try:
        _walk(directory, name + "/", files, directories)
    except StorageError:
        if directory.exists():
            raise
    else:
        directories.append(name)


def _move_without_replacing(source: Path, target: Path) -> None:
    """Give a file another name that must not exist yet; what exists is never replaced.

    A hard link fails where the name exists, a rename would replace what is there. File systems without hard links
    (CIFS, most FUSE mounts) get a reservation instead: a file beside the target that only one writer can make and
    that is held for the look and the rename. A writer that dies in that moment leaves it behind, and the name stays
    refused until somebody looks; that is the safe side.

    :raises FileExistsError: the name, or a reservation of it, exists.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _rename_under_reservation(source, target)
    else:
        os.unlink(source)
    _flush_directory(target.parent)


def _rename_under_reservation(source: Path, target: Path) -> None:
    reservation = target.with_name(f"_{target.name}.reserved")
    reservation.touch(exist_ok=False)
    try:
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)
    finally:
        reservation.unlink()


def _flush_directory(directory: Path) -> None:
    """Make new names in ``directory`` survive a power cut, before the metastore is told about them."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network mounts cannot flush a directory; they made the rename durable themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _remove(victim: Path) -> None:
    """Remove a file or a directory with all below it, also while somebody else removes the same."""
    for _ in range(_DELETE_ATTEMPTS):
        try:
            if victim.is_dir():
                shutil.rmtree(victim)
            else:
                victim.unlink(missing_ok=True)
        except FileNotFoundError:
            # A file below vanished meanwhile; the rest is still to be removed.
            continue
        return
    raise OSError(errno.EBUSY, "it changes all the time", str(victim))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Translate the system's errors while ``path`` is written."""
    try:
        yield
    except FileExistsError as error:
        raise _name_taken(path) from error
    except OSError as error:
        raise _storage_error(path, "cannot be written", error) from error


def _name_taken(path: Path) -> NameTakenError:
    return NameTakenError(
        str(path),
        "exists already, or another writer has reserved the name",
        f"find out who wrote it, or _{path.name}.reserved beside it, before removing it",
    )


def _symbolic_link(path: str) -> StorageError:
    return StorageError(path, "is a symbolic link inside a table", "replace it by the file or directory itself")


def _storage_error(path: Path, reason: str, error: OSError) -> StorageError:
    return StorageError(str(path), f"{reason} ({error.strerror or error})", "check path, permissions and free space")
