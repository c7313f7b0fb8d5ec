"""A local file that is on its way to the disk while it is written."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Any

FLUSHED_BYTES = 32 << 20
"""So much is sent on its way at once."""


class FlushedFile(io.FileIO):
    """Written from its beginning to its end. Who flushes it then waits for the last part, and not for all of it.

    The system is only asked to begin, in a thread, since it answers when the disk has room for more: whether everything
    has arrived, and any error on the way, says ``fsync`` alone.
    """

    _written_bytes = 0
    _begun_bytes = 0

    def write(self, data: Any) -> int:
        """Write, and let the system begin with what it has."""
        written = super().write(data)
        self._written_bytes += written
        new_bytes = self._written_bytes - self._begun_bytes
        if new_bytes >= FLUSHED_BYTES and hasattr(os, "posix_fadvise"):
            self._thread.submit(self._begin, self._begun_bytes, new_bytes)
            self._begun_bytes = self._written_bytes
        return written

    def close(self) -> None:
        """Close it once nobody asks for it any more."""
        if "_thread" in vars(self):
            self._thread.shutdown()
        super().close()

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    def _begin(self, start: int, length: int) -> None:
        # Linux begins to write what it is not to keep, and keeps it until that is done. Elsewhere nothing happens.
        with suppress(OSError):
            os.posix_fadvise(self.fileno(), start, length, os.POSIX_FADV_DONTNEED)
