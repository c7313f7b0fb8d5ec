"""A seekable file over a store that hands out ranges, each at the price of a call."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import TracebackType
from typing import Any

from airflow_provider_acid.exceptions import StorageError

FIRST_BYTES = 128 * 1024
LONGEST_BYTES = 4 * 1024 * 1024
KEPT_BYTES = 32 * 1024 * 1024


class RangedReader(io.RawIOBase):
    """Reads a file of known size by ranges.

    Readers of ORC go forward in many places of a stripe at once, some hundred kilobytes at a time. So a range that
    begins where another ended is twice as long as that one, up to ``LONGEST_BYTES``, while a first one in a new place
    is short, and a file's tail is no longer than it is. The last ranges are kept, up to ``KEPT_BYTES``.

    What reads through a C++ library hears of a failing store as of a damaged file. So the store's error is raised again
    at the end of the ``with`` block, in place of what was made of it.

    :param fetch: the bytes of an offset and a length, all of them.
    :param size_bytes: of the file.
    :param on_close: called once, when the reader is closed.
    """

    def __init__(
        self, fetch: Callable[[int, int], bytes], size_bytes: int, on_close: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._on_close = on_close
        self._size = size_bytes
        self._place = 0
        # By offset; what was used last is last.
        self._ranges: dict[int, bytes] = {}
        self._failure: StorageError | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        if self._failure is not None and isinstance(error, Exception) and error is not self._failure:
            raise self._failure from error

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go elsewhere; this alone fetches nothing."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative place {start + offset}")
        self._place = start + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, up to the end of the file."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self._size - self._place), 0)
        done = 0
        while done < wanted:
            part = self._part(self._place, wanted - done)
            view[done : done + len(part)] = part
            done += len(part)
            self._place += len(part)
        return wanted

    def readall(self) -> bytes:
        """All from here to the end."""
        return self.read(max(self._size - self._place, 0)) or b""

    def close(self) -> None:
        """Drop what is kept."""
        if not self.closed:
            self._ranges.clear()
            self._on_close()
        super().close()

    def _part(self, place: int, wanted: int) -> memoryview:
        """At least one of the wanted bytes."""
        for offset, data in self._ranges.items():
            if offset <= place < offset + len(data):
                self._ranges[offset] = self._ranges.pop(offset)
                return memoryview(data)[place - offset :][:wanted]
        # What is kept already is not fetched again.
        end = min((offset for offset in self._ranges if offset > place), default=self._size)
        length = min(max(wanted, self._ahead(place)), end - place)
        if length >= LONGEST_BYTES:
            # Whoever reads this much at a time keeps it himself.
            return memoryview(self._fetched(place, min(wanted, length)))
        data = self._fetched(place, length)
        self._keep(place, data)
        return memoryview(data)[:wanted]

    def _fetched(self, place: int, length: int) -> bytes:
        try:
            return self._fetch(place, length)
        except StorageError as error:
            self._failure = error
            raise

    def _ahead(self, place: int) -> int:
        """How much a reader who goes on at ``place`` will want."""
        for offset, data in self._ranges.items():
            if offset + len(data) == place:
                return min(2 * len(data), LONGEST_BYTES - 1)
        return FIRST_BYTES

    def _keep(self, place: int, data: bytes) -> None:
        self._ranges.pop(place, None)
        self._ranges[place] = data
        while sum(map(len, self._ranges.values())) > KEPT_BYTES:
            del self._ranges[next(iter(self._ranges))]
