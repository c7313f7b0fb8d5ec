"""The first bytes of a file, as if they were all of it."""

from __future__ import annotations

import io
from typing import BinaryIO


class FilePrefix(io.RawIOBase):
    """A reader of the first ``length_bytes`` of a seekable file."""

    def __init__(self, file: BinaryIO, length_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._length_bytes = length_bytes
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move within the prefix."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length_bytes}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, fewer only at the end of the prefix or the file."""
        left = max(self._length_bytes - self._position, 0)
        self._file.seek(self._position)
        data = self._file.read(left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
