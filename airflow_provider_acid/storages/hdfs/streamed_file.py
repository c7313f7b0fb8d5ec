"""A new file that is sent while it is written, in bounded memory and without local disk."""

from __future__ import annotations

import io
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CHUNK_BYTES = 1024 * 1024
QUEUED_CHUNKS = 4
_POLL_SECONDS = 1.0

Send = Callable[[bytes | Iterator[bytes], Callable[[], bool]], None]
"""Sends a body, and sends it again where that failed and the second argument says that it can be."""


class _AbortedError(Exception):
    """Ends a body in its midst, so that the server does not take it for whole."""


class StreamedFile(io.RawIOBase):
    """What is written goes into the body of one request; small files are sent in one piece, at the end.

    :ivar size_bytes: written so far.
    :param send: raises what the caller of :meth:`write` and :meth:`finish` is to see.
    """

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send
        self._buffer = bytearray()
        self._stream: _Stream | None = None
        self.size_bytes = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes written so far."""
        return self.size_bytes

    def write(self, data: Any) -> int:
        """Take bytes (any buffer)."""
        chunk = memoryview(data).cast("B")
        self._buffer += chunk
        self.size_bytes += len(chunk)
        if len(self._buffer) >= CHUNK_BYTES:
            self._stream = self._stream or _Stream(self._send)
            self._stream.put(bytes(self._buffer))
            self._buffer.clear()
        return len(chunk)

    def finish(self) -> None:
        """Send the rest and wait for the server's confirmation."""
        if self._stream is None:
            self._send(bytes(self._buffer), lambda: True)
        else:
            self._stream.put(bytes(self._buffer))
            self._stream.end()
        self._buffer.clear()

    def abort(self) -> bool:
        """Send nothing more; whether a request was cut by it."""
        return self._stream is not None and self._stream.abort()


class _Stream:
    """The body of a request that runs in a thread of its own."""

    def __init__(self, send: Send) -> None:
        self._chunks: queue.Queue[bytes | None] = queue.Queue(QUEUED_CHUNKS)
        self._has_begun = False
        self._is_aborted = False
        self._thread = ThreadPoolExecutor(1, "webhdfs-upload")
        self._request = self._thread.submit(send, self._body(), lambda: not self._has_begun)

    def put(self, chunk: bytes | None) -> None:
        """Hand on a chunk, None for the end; waits while the server is behind."""
        while True:
            if self._request.done():
                self._request.result()
                raise EOFError("the server answered before the file was whole")
            try:
                self._chunks.put(chunk, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return

    def end(self) -> None:
        """End the body and wait for the answer."""
        self.put(None)
        self._request.result()
        self._thread.shutdown()

    def abort(self) -> bool:
        """End the request without its body's end, and wait until it has ended; False where it had ended."""
        is_cut = not self._request.done()
        self._is_aborted = True
        while not self._request.done():
            # There may be no room, and the request may end while we wait for it.
            try:
                self._chunks.put(None, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            self._request.exception()
        self._thread.shutdown()
        return is_cut

    def _body(self) -> Iterator[bytes]:
        self._has_begun = True
        while (chunk := self._chunks.get()) is not None:
            if self._is_aborted:
                break
            yield chunk
        if self._is_aborted:
            raise _AbortedError
