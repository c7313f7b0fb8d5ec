"""A network between a client and a real server that can be told to misbehave."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType

from typing_extensions import Self

CHUNK_BYTES = 65_536


class Proxy(ABC):
    """Takes connections on the loopback interface and serves each with one of its own to the server.

    As a context manager it listens until the block ends.

    :param host: where the server listens.
    :param port: where the server listens.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        # Looked at before each request too: connections are cut one by one, and whose first one is cut tries the next.
        self.is_refusing = False
        self.host, self.port = self._listener.getsockname()
        self.accepted = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def refuse(self, is_refusing: bool) -> None:
        """Whether new connections are closed at once; those that stand are cut, and nothing more gets through them."""
        self.is_refusing = is_refusing
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        while self._pairs:
            for end in self._pairs.pop():
                close(end)

    @abstractmethod
    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Carry what both say until one of them ends, and close both; runs in a thread of its own."""

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                if self.is_refusing:
                    close(client)
                    continue
                server = socket.create_connection(self._target)
                self._pairs.append((client, server))
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()


class NetworkProxy(Proxy):
    """Forwards bytes both ways, whatever they mean.

    :param told_instead: what the client is told in place of what; both are equally long.
    :ivar refuses_after_loss: whether nobody gets through any more once something was lost.
    """

    def __init__(self, host: str, port: int, told_instead: Mapping[bytes, bytes] | None = None) -> None:
        super().__init__(host, port)
        self._told_instead = told_instead or {}
        self._bytes_until_cut: int | None = None
        self._answers_until_loss = 0
        self._words_until_loss: list[bytes] = []
        self._watched: list[tuple[bytes, Callable[[], object] | None]] = []
        self.refuses_after_loss = False

    def lose_answer(self, *, after: int = 0) -> None:
        """An answer of the server gets lost with its connection: the next one, or the next but ``after``."""
        self._answers_until_loss = after + 1

    def cut_answer(self, after_bytes: int) -> None:
        """The connection breaks when so many bytes of what the server says from now on have reached the client."""
        self._bytes_until_cut = after_bytes

    def lose_answer_to(self, *words: bytes) -> None:
        """The answer to what is sent next with the last of these words, after the others, gets lost."""
        self._words_until_loss = list(words)

    def lose_request(self, word: bytes) -> None:
        """What is sent next with this word does not reach the server; its connection breaks."""
        self._watched.append((word, None))

    def do_before(self, word: bytes, action: Callable[[], object]) -> None:
        """Something happens before the server gets what is sent next with this word."""
        self._watched.append((word, action))

    @property
    def is_done(self) -> bool:
        """Whether all that was to happen has happened."""
        is_cut = self._bytes_until_cut is None
        return is_cut and not self._words_until_loss and not self._watched and self._answers_until_loss <= 0

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=self._forward, args=(server, client, True), daemon=True).start()
        self._forward(client, server, False)

    def _forward(self, source: socket.socket, sink: socket.socket, carries_answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if self.is_refusing and not carries_answers:
                    break
                if self._is_lost(data, carries_answers):
                    self.is_refusing |= self.refuses_after_loss
                    break
                told = self._told(data) if carries_answers else data
                sink.sendall(told)
                if len(told) < len(data):
                    break
        close(source)
        close(sink)

    def _told(self, data: bytes) -> bytes:
        """What the client gets of an answer; less of it where the connection is to break."""
        for said, instead in self._told_instead.items():
            data = data.replace(said, instead)
        if self._bytes_until_cut is None:
            return data
        told = data[: self._bytes_until_cut]
        self._bytes_until_cut = None if len(told) < len(data) else self._bytes_until_cut - len(told)
        return told

    def _is_lost(self, data: bytes, carries_answers: bool) -> bool:
        if not carries_answers:
            self._read(data)
            return self._is_lost_request(data)
        # Counts answers down to the one that gets lost; small answers come in one piece.
        self._answers_until_loss -= 1
        return self._answers_until_loss == 0

    def _is_lost_request(self, data: bytes) -> bool:
        for watched in self._watched:
            word, action = watched
            if word in data:
                self._watched.remove(watched)
                if action is None:
                    return True
                action()
                break
        return False

    def _read(self, data: bytes) -> None:
        if self._words_until_loss and self._words_until_loss[0] in data:
            self._words_until_loss.pop(0)
            if not self._words_until_loss:
                self.lose_answer()


def close(end: socket.socket) -> None:
    """Close a connection for both sides, also where another thread waits for it."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
