"""The machine's own file system, and what is mounted into it."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages.flushed_file import FlushedFile
from airflow_provider_acid.storages.links import untrusted_link
from airflow_provider_acid.storages.local_input import LocalInput, storage_error
from airflow_provider_acid.storages.paths import relative_parts, split_location
from airflow_provider_acid.storages.private_directory import PRIVATE_MODE, check_is_private, no_home
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})


class LocalStorage:
    """A directory of the machine's own file system (also NFS and other mounts with POSIX renames)."""

    rules = StoreRules(is_remote=False)

    def __init__(self, location: str) -> None:
        self._location = location
        self._path = str(Path(_local_path(location)))

    @property
    def location(self) -> str:
        """The URI this storage was opened for."""
        return self._location

    def home(self) -> str:
        """The home directory of the process's user."""
        try:
            # Not as a URI: what is percent-encoded in a location is part of a name.
            return f"file:{Path.home()}"
        except RuntimeError as error:
            raise no_home("the home directory", str(error)) from error

    def may_change(self) -> bool:
        """Whether names may be made and removed right in the location by the process's user."""
        return os.access(self._path, os.R_OK | os.W_OK | os.X_OK)

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Everything below ``path``; see :meth:`~..filesystem.Storage.list`."""
        files: list[FileEntry] = []
        directories: list[str] = []
        _walk(self._resolve(path, "listed")[0] if path else self._path, "", files, directories)
        return Listing(tuple(sorted(files, key=attrgetter("path"))), tuple(sorted(directories)))

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        return self._resolve(path, "looked at")[1] is not None

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        """The bytes of a small file; see :meth:`~..filesystem.Storage.read`."""
        with self.open_input(path) as file:
            return read_whole(file, f"{self.location}/{path}", most_bytes)

    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader of a file; the caller closes it."""
        place, _ = self._resolve(path, "read")
        try:
            return LocalInput(place)
        except OSError as error:
            raise _storage_error(place, "cannot be read", error) from error

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A writer of a new file; see :meth:`~..filesystem.Storage.create`."""
        final, _ = self._resolve(path, "written")
        folder, name = os.path.split(final)
        partial = f"{folder}/_{name}.{uuid.uuid4().hex}.partial"
        with _writing(final):
            file = io.BufferedWriter(FlushedFile(partial, "xb"))
        try:
            with file:
                # Errors of the caller's block pass as they are; only this module's own calls are translated.
                yield file
                with _writing(final):
                    file.flush()
                    os.fsync(file.fileno())
            with _writing(final):
                _move_without_replacing(partial, final)
            _flush_directory(folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; see :meth:`~..filesystem.Storage.write_new`."""
        with self.create(path) as file:
            file.write(data)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents below the location; no error where it exists."""
        if not os.path.isdir(self._path):
            raise StorageError(self._path, "does not exist", "check the location in the metastore")
        place, _ = self._resolve(path, "made")
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _storage_error(place, "cannot be made", error) from error

    def make_private(self, path: str) -> None:
        """Make a directory that nobody else may enter; see :meth:`~..filesystem.Storage.make_private`."""
        place = self._place(path)
        try:
            os.mkdir(place, PRIVATE_MODE)
        except FileExistsError:
            pass
        except OSError as error:
            raise no_home(place, error.strerror or str(error)) from error
        self.check_private(path)

    def check_private(self, path: str) -> None:
        """Check a directory's kind, owner and mode; see :meth:`~..filesystem.Storage.check_private`."""
        place = self._place(path)
        try:
            seen = os.lstat(place)
        except OSError as error:
            raise _storage_error(place, "cannot be looked at", error) from error
        check_is_private(
            place, _kind(seen.st_mode), f"user {seen.st_uid}", f"user {os.geteuid()}", stat.S_IMODE(seen.st_mode)
        )

    def publish(self, source: str, target: str) -> None:
        """Rename atomically to a name that does not exist; see :meth:`~..filesystem.Storage.publish`."""
        self.move(source, target)
        _flush_directory(os.path.dirname(self._place(target)))

    def move(self, source: str, target: str) -> None:
        """The same, less the flush; see :meth:`~..filesystem.Storage.move`."""
        self._check_way()
        (old, old_mode), (new, new_mode) = self._below(source, "renamed"), self._below(target, "renamed to")
        if old_mode is None:
            raise StorageError(old, "does not exist", "start the compaction again; its output was removed")
        # POSIX replaces an existing empty directory without a word, hence the look before.
        if new_mode is not None:
            raise _name_taken(new)
        try:
            if stat.S_ISDIR(old_mode):
                os.rename(old, new)
            else:
                _move_without_replacing(old, new)
        except OSError as error:
            if os.path.exists(new):
                raise _name_taken(new) from error
            raise _storage_error(old, f"cannot be renamed to {os.path.basename(new)}", error) from error

    def flush(self) -> None:
        """Flush the location's directory; see :meth:`~..filesystem.Storage.flush`."""
        _flush_directory(self._path)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove exactly these files and directories; see :meth:`~..filesystem.Storage.delete`."""
        self._check_way()
        victims = [self._below(path, "deleted")[0] for path in paths]
        if self._path in victims:
            raise StorageError(self._path, "is the location itself", "name what is to be deleted below it")
        for victim in victims:
            try:
                _remove(victim)
            except OSError as error:
                raise _storage_error(victim, "cannot be deleted", error) from error

    def delete_files(self, paths: Iterable[str]) -> None:
        """The same, of files."""
        self.delete(paths)

    def _check_way(self) -> None:
        """Looked at each time: a partition's directory may have become a link since the last one."""
        try:
            link = untrusted_link(self._path, (0, os.geteuid()))
        except OSError as error:
            raise _storage_error(self._path, "cannot be looked at", error) from error
        if link is not None:
            raise StorageError(
                link,
                f"is a symbolic link on the way to {self.location}, made by somebody else than root and this user",
                "replace it by the directory itself, or let root make the link",
            )

    def _place(self, path: str) -> str:
        return "/".join((self._path, *relative_parts(self._location, path)))

    def _resolve(self, path: str, operation: str) -> tuple[str, int | None]:
        """As :meth:`_below`, after a look at the way there."""
        self._check_way()
        return self._below(path, operation)

    def _below(self, path: str, operation: str) -> tuple[str, int | None]:
        """The place of a path, which goes through no symbolic link, and its mode; None where nothing is there.

        :param operation: what cannot be done where it does.
        """
        place, mode = self._path, None
        parts = relative_parts(self._location, path)
        try:
            for part in parts:
                place = f"{place}/{part}"
                mode = _mode(place)
                if mode is not None and stat.S_ISLNK(mode):
                    raise _symbolic_link(place)
            return place, mode if parts else _mode(place)
        except OSError as error:
            raise _storage_error(self._place(path), f"cannot be {operation}", error) from error


def _mode(place: str) -> int | None:
    """What ``lstat`` says; None where nothing is there. Python's own looks hide, by version, what we may not see."""
    try:
        return os.lstat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    return "directory" if stat.S_ISDIR(mode) else "file"


def _local_path(location: str) -> str:
    if location.startswith("file:/") and not location.startswith("file://"):
        return location[len("file:") :]
    parts = split_location(location)
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


def _walk(directory: str, prefix: str, files: list[FileEntry], directories: list[str]) -> None:
    """What was removed since its name was read is not there; others may tidy up at any time."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_symlink():
                    raise _symbolic_link(entry.path)
                if entry.is_dir():
                    _walk_below(entry.path, name, files, directories)
                else:
                    with suppress(FileNotFoundError):
                        files.append(FileEntry(name, entry.stat().st_size))
    except OSError as error:
        raise _storage_error(directory, "cannot be listed", error) from error


def _walk_below(directory: str, name: str, files: list[FileEntry], directories: list[str]) -> None:
    try:
        _walk(directory, name + "/", files, directories)
    except StorageError as error:
        # Python's own looks say of what a failing mount does not show, too, that it does not exist.
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    else:
        directories.append(name)


def _move_without_replacing(source: str, target: str) -> None:
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


def _rename_under_reservation(source: str, target: str) -> None:
    folder, name = os.path.split(target)
    reservation = Path(folder, f"_{name}.reserved")
    reservation.touch(exist_ok=False)
    try:
        if _mode(target) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(source, target)
    finally:
        reservation.unlink()


def _flush_directory(directory: str) -> None:
    """Make changes of names in ``directory`` survive a power cut, before the metastore is told about them."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some network mounts cannot flush a directory; they made the rename durable themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise _storage_error(directory, "cannot be flushed", error) from error


def _remove(victim: str) -> None:
    """Remove a file or a directory with all below it, also while somebody else removes the same."""
    if not os.path.isdir(victim):
        with suppress(FileNotFoundError):
            os.unlink(victim)
    elif sys.version_info >= (3, 12):
        shutil.rmtree(victim, onexc=_unless_vanished)
    else:
        shutil.rmtree(victim, onerror=lambda function, path, info: _unless_vanished(function, path, info[1]))


def _unless_vanished(_function: object, _path: str, error: BaseException) -> None:
    """Go on where what was to be removed is gone already."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Translate the system's errors while ``path`` is written."""
    try:
        yield
    except FileExistsError as error:
        raise _name_taken(path) from error
    except OSError as error:
        raise _storage_error(path, "cannot be written", error) from error


def _name_taken(path: str) -> NameTakenError:
    return NameTakenError(
        path,
        "exists already, or another writer has reserved the name",
        f"find out who wrote it, or _{os.path.basename(path)}.reserved beside it, before removing it",
    )


def _symbolic_link(path: str) -> StorageError:
    return StorageError(path, "is a symbolic link inside a table", "replace it by the file or directory itself")


def _storage_error(path: str, reason: str, error: OSError) -> StorageError:
    return storage_error(path, reason, error, "check path, permissions and free space")
