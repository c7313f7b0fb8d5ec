"""What is read whole is small, or not read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, cast

import pytest

from airflow_provider_acid.compaction.snapshot import list_with_base_formats
from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.ranged_reader import RangedReader
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole


def sparse(path: Path, size_bytes: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def test_a_file_of_the_most_bytes_is_read_and_one_of_more_is_refused_by_name_and_size(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    sparse(tmp_path / "a", SIDE_FILE_BYTES)
    sparse(tmp_path / "b", SIDE_FILE_BYTES + 1)
    assert len(storage.read("a")) == SIDE_FILE_BYTES
    with pytest.raises(CorruptFileError, match=r"/b: has 1048577 bytes, and a file of its kind has 1048576 at most"):
        storage.read("b")
    assert len(storage.read("b", SIDE_FILE_BYTES + 1)) == SIDE_FILE_BYTES + 1


def test_of_a_file_that_is_too_large_nothing_is_fetched() -> None:
    fetched: list[tuple[int, int]] = []

    def fetch(offset: int, length: int) -> bytes:
        fetched.append((offset, length))
        return b"x" * length

    def remote(size_bytes: int) -> BinaryIO:
        return cast(BinaryIO, RangedReader(fetch, size_bytes))

    with pytest.raises(CorruptFileError):
        read_whole(remote(2 << 30), "it", SIDE_FILE_BYTES)
    assert fetched == []
    assert read_whole(remote(100), "it", SIDE_FILE_BYTES) == b"x" * 100
    assert read_whole(remote(0), "it", SIDE_FILE_BYTES) == b""


def test_a_base_whose_metadata_file_has_two_gibibytes_is_refused_without_reading_it(tmp_path: Path) -> None:
    """Seen: 2.5 GB of memory."""
    sparse(tmp_path / "base_0000001" / "_metadata_acid", 2 << 30)
    with pytest.raises(CorruptFileError, match="base_0000001/_metadata_acid: has 2147483648 bytes"):
        list_with_base_formats(LocalStorage(str(tmp_path)))
