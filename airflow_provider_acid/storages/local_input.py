"""A file of this machine, or of what is mounted into it, that is read."""

from __future__ import annotations

import errno
import io
import os
from types import TracebackType
from typing import Any

from airflow_provider_acid.exceptions import ForbiddenError, StorageError


class LocalInput(io.BufferedReader):
    """Reads a local file, whose mount may fail as any store.

    What reads through a C++ library hears of a failing mount as of a damaged file. So that error is raised again at the
    end of the ``with`` block, in place of what was made of it; see :class:`~.ranged_reader.RangedReader`.

    :param place: its path.
    :raises OSError: it cannot be opened.
    """

    def __init__(self, place: str) -> None:
        self._told = _ToldFile(place)
        # What the file system wants to be read at once, as other files of Python do.
        super().__init__(self._told, max(os.fstat(self._told.fileno()).st_blksize, io.DEFAULT_BUFFER_SIZE))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        failure = self._told.failure
        if failure is not None and isinstance(error, Exception) and error is not failure:
            raise failure from error


class _ToldFile(io.FileIO):
    """Tells what the system says as the error of a storage, and keeps it.

    :raises OSError: it cannot be opened.
    """

    failure: StorageError | None = None

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._place = place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            return super().seek(offset, whence)
        except OSError as error:
            # A damaged file sent its reader to a place before its beginning.
            if error.errno == errno.EINVAL:
                raise
            raise self._failed(error) from error

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise self._failed(error) from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StorageError:
        remedy = "check the disk, or the server that it is mounted from; then try again"
        self.failure = storage_error(self._place, "cannot be read", error, remedy)
        return self.failure


def storage_error(path: str, reason: str, error: OSError, remedy: str) -> StorageError:
    """The error of a storage for what the system says."""
    kind = ForbiddenError if isinstance(error, PermissionError) else StorageError
    return kind(path, f"{reason} ({error.strerror or error})", remedy)
