"""A file that is sent while it is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.hdfs.streamed_file import CHUNK_BYTES, QUEUED_CHUNKS, StreamedFile


class Server:
    """Takes one body, as a whole or in chunks."""

    def __init__(self) -> None:
        self.body: bytes | None = None
        self.pieces: list[int] = []
        self.broke: BaseException | None = None
        self.could_repeat: list[bool] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def take(self, body: bytes | Iterator[bytes], may_repeat: Callable[[], bool]) -> None:
        self.could_repeat.append(may_repeat())
        if isinstance(body, bytes):
            self.body = body
            return
        received = b""
        try:
            for chunk in body:
                self.go_on.wait()
                received += chunk
                self.pieces.append(len(chunk))
        except BaseException as error:
            self.broke = error
            raise
        finally:
            self.could_repeat.append(may_repeat())
        self.body = received


def test_a_small_file_is_sent_in_one_piece_when_it_is_whole() -> None:
    server = Server()
    file = StreamedFile(server.take)
    file.write(b"plan")
    file.write(memoryview(b".json"))
    assert server.could_repeat == []
    file.finish()
    assert server.body == b"plan.json"
    assert server.could_repeat == [True]
    assert file.size_bytes == file.tell() == 9


def test_an_empty_file_is_sent_too() -> None:
    server = Server()
    StreamedFile(server.take).finish()
    assert server.body == b""


def test_a_large_file_is_sent_in_chunks_and_in_order() -> None:
    server = Server()
    file = StreamedFile(server.take)
    parts = [bytes([number]) * 700_000 for number in range(20)]
    for part in parts:
        assert file.write(part) == len(part)
    file.finish()
    assert server.body == b"".join(parts)
    assert len(server.pieces) > 5
    assert server.could_repeat == [True, False]


def test_a_slow_server_holds_up_the_writer() -> None:
    server = Server()
    server.go_on.clear()
    file = StreamedFile(server.take)
    written = []

    def write() -> None:
        for number in range(4 * QUEUED_CHUNKS):
            file.write(bytes(CHUNK_BYTES))
            written.append(number)
        file.finish()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(0.3)
    assert len(written) <= QUEUED_CHUNKS + 2
    server.go_on.set()
    thread.join()
    assert server.body == bytes(4 * QUEUED_CHUNKS * CHUNK_BYTES)


@pytest.mark.parametrize("chunks", [1, 3 * QUEUED_CHUNKS])
def test_an_aborted_file_never_looks_whole(chunks: int) -> None:
    server = Server()
    file = StreamedFile(server.take)
    for _ in range(chunks):
        file.write(bytes(CHUNK_BYTES))
    assert file.abort()
    assert server.body is None
    assert server.broke is not None


def test_a_file_of_which_nothing_was_sent_has_nothing_to_abort() -> None:
    server = Server()
    file = StreamedFile(server.take)
    file.write(b"half")
    assert not file.abort()
    assert server.could_repeat == []


@pytest.mark.parametrize("size", [10, 10 * CHUNK_BYTES])
def test_the_writer_hears_of_the_servers_refusal(size: int) -> None:
    def refuse(body: bytes | Iterator[bytes], may_repeat: Callable[[], bool]) -> None:
        raise StorageError("f", "no room", "make some")

    file = StreamedFile(refuse)

    def write() -> None:
        for _ in range(10):
            file.write(bytes(size // 10))
        file.finish()

    with pytest.raises(StorageError, match="no room"):
        write()
    assert not file.abort()


def test_a_server_that_is_done_too_early_is_not_believed() -> None:
    file = StreamedFile(lambda body, may_repeat: None)

    def write() -> None:
        for _ in range(4 * QUEUED_CHUNKS):
            file.write(bytes(CHUNK_BYTES))
        file.finish()

    with pytest.raises(EOFError, match="before the file was whole"):
        write()
