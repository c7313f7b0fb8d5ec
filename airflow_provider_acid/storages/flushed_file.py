"""A local file that is on its way to the disk while it is written."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Any

FLUSHED_BYTES = 32 << 20
"""So much is sent on its way at once."""


class FlushedFile(io.FileIO):
    """Written from its beginning to its end. Who flushes it then waits for the last part, and not for all of it.

    The system is only asked to begin: whether everything has arrived, and any error on the way, says ``fsync`` alone.
    """

    _written_bytes = 0
    _begun_bytes = 0

    def write(self, data: Any) -> int:
        """Write, and let the system begin with what it has."""
        written = super().write(data)
        self._written_bytes += written
        new_bytes = self._written_bytes - self._begun_bytes
        if new_bytes >= FLUSHED_BYTES and hasattr(os, "posix_fadvise"):
            # Linux begins to write what it is not to keep, and keeps it until that is done. Elsewhere nothing happens.
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), self._begun_bytes, new_bytes, os.POSIX_FADV_DONTNEED)
            self._begun_bytes = self._written_bytes
        return written
