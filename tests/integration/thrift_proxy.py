"""A network between a client and a real metastore, or its database, that can be told to misbehave."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

CHUNK_BYTES = 65_536


class ThriftProxy:
    """Forwards bytes both ways. As a context manager it listens until the block ends.

    :param host: where the metastore listens.
    :param port: where the metastore listens.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._answers_until_loss = 0
        self._words_until_loss: list[bytes] = []
        self._is_refusing = False
        self.host, self.port = self._listener.getsockname()
        self.accepted = 0

    def __enter__(self) -> ThriftProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def lose_answer(self, *, after: int = 0) -> None:
        """An answer of the metastore gets lost with its connection: the next one, or the next but ``after``."""
        self._answers_until_loss = after + 1

    def lose_answer_to(self, *words: bytes) -> None:
        """The answer to what is sent next with the last of these words, after the others, gets lost."""
        self._words_until_loss = list(words)

    def refuse(self, is_refusing: bool) -> None:
        """Whether new connections are closed at once; those that stand are cut."""
        self._is_refusing = is_refusing
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        while self._pairs:
            for end in self._pairs.pop():
                _close(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                if self._is_refusing:
                    _close(client)
                    continue
                server = socket.create_connection(self._target)
                self._pairs.append((client, server))
                threading.Thread(target=self._forward, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, True), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, carries_answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if carries_answers and self._is_lost():
                    break
                if not carries_answers:
                    self._read(data)
                sink.sendall(data)
        _close(source)
        _close(sink)

    def _read(self, data: bytes) -> None:
        if self._words_until_loss and self._words_until_loss[0] in data:
            self._words_until_loss.pop(0)
            if not self._words_until_loss:
                self.lose_answer()

    def _is_lost(self) -> bool:
        """Counts answers down to the one that gets lost; small answers come in one piece."""
        self._answers_until_loss -= 1
        return self._answers_until_loss == 0


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
