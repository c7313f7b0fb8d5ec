"""A reader over ranges reads what is there, in few and fitting ranges."""

from __future__ import annotations

import io
import random

import pytest

from airflow_provider_acid.exceptions import CorruptFileError, StorageError
from airflow_provider_acid.storages import ranged_reader
from airflow_provider_acid.storages.ranged_reader import FIRST_BYTES, KEPT_BYTES, LONGEST_BYTES, RangedReader

MEGABYTE = 1 << 20


class Store:
    """Bytes, and the ranges asked for."""

    def __init__(self, size: int) -> None:
        self.data = random.Random(7).randbytes(size)
        self.ranges: list[tuple[int, int]] = []

    def fetch(self, offset: int, length: int) -> bytes:
        assert 0 < length <= len(self.data) - offset
        self.ranges.append((offset, length))
        return self.data[offset : offset + length]

    def open(self) -> RangedReader:
        return RangedReader(self.fetch, len(self.data))


@pytest.mark.parametrize("kept_bytes", [KEPT_BYTES, 300_000])
def test_it_reads_like_any_other_file(kept_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranged_reader, "KEPT_BYTES", kept_bytes)
    chance = random.Random(1)
    store = Store(3 * MEGABYTE + 17)
    reference = io.BytesIO(store.data)
    with store.open() as file:
        for _ in range(300):
            if chance.random() < 0.5:
                place = (chance.randrange(len(store.data) + 9), io.SEEK_SET)
                assert file.seek(*place) == reference.seek(*place)
            elif chance.random() < 0.2:
                assert file.seek(-5, io.SEEK_END) == reference.seek(-5, io.SEEK_END)
            length = chance.choice([0, 1, 1000, 200_000])
            assert file.read(length) == reference.read(length)
            assert file.tell() == reference.tell()
        file.seek(11)
        assert file.read() == store.data[11:]
        assert file.read(1) == b""


def test_nothing_is_fetched_before_it_is_read() -> None:
    store = Store(MEGABYTE)
    with store.open() as file:
        assert file.seek(0, io.SEEK_END) == MEGABYTE
        assert file.read(9) == b""
    assert store.ranges == []


def test_a_tail_is_fetched_without_anything_before_it() -> None:
    store = Store(5 * MEGABYTE)
    with store.open() as file:
        file.seek(-16384, io.SEEK_END)
        file.read(16384)
        file.seek(-100, io.SEEK_END)
        file.read()
    assert store.ranges == [(5 * MEGABYTE - 16384, 16384)]


def test_whoever_reads_on_gets_longer_and_longer_ranges() -> None:
    store = Store(20 * MEGABYTE)
    with store.open() as file:
        while file.read(65536):
            pass
    lengths = [length for _, length in store.ranges]
    assert lengths[:5] == [FIRST_BYTES << doubled for doubled in range(5)]
    assert max(lengths) < LONGEST_BYTES
    assert sum(lengths) == len(store.data)


def test_whoever_reads_on_in_many_places_fetches_nothing_twice() -> None:
    store = Store(16 * MEGABYTE)
    places = [number * 2 * MEGABYTE for number in range(8)]
    with store.open() as file:
        for step in range(16):
            for place in places:
                file.seek(place + step * 131072)
                file.read(131072)
    assert sum(length for _, length in store.ranges) == len(store.data)
    assert len(store.ranges) <= 8 * 5


def test_long_reads_are_not_kept() -> None:
    store = Store(3 * LONGEST_BYTES)
    with store.open() as file:
        assert file.read(LONGEST_BYTES) == store.data[:LONGEST_BYTES]
        assert file._ranges == {}
    assert store.ranges == [(0, LONGEST_BYTES)]


def test_no_more_is_kept_than_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranged_reader, "KEPT_BYTES", 4 * FIRST_BYTES)
    store = Store(64 * FIRST_BYTES)
    with store.open() as file:
        for place in range(0, 60, 2):
            file.seek(place * FIRST_BYTES)
            file.read(1)
            assert sum(map(len, file._ranges.values())) <= 4 * FIRST_BYTES


def test_what_a_library_makes_of_a_failing_store_does_not_hide_it() -> None:
    def fail(offset: int, length: int) -> bytes:
        raise StorageError("hdfs://ns1/t/f", "the connection broke", "try again")

    def read() -> None:
        with RangedReader(fail, 100) as file:
            try:
                file.read(10)
            except StorageError as error:
                raise CorruptFileError("f", "cannot be read exactly", "restore it") from error

    with pytest.raises(StorageError, match="the connection broke"):
        read()


def test_errors_of_the_reader_pass_as_they_are() -> None:
    def read() -> None:
        with Store(100).open() as file:
            file.read(10)
            raise CorruptFileError("f", "is damaged", "restore it")

    with pytest.raises(CorruptFileError):
        read()


def test_a_closed_reader_reads_no_more_and_tells_once() -> None:
    closed: list[bool] = []
    file = RangedReader(Store(10).fetch, 10, lambda: closed.append(True))
    file.close()
    file.close()
    assert closed == [True]
    with pytest.raises(ValueError, match="closed"):
        file.read(1)
