"""A mount that fails while a file on it is read is told as that, whatever was made of it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from airflow_provider_acid.exceptions import CorruptFileError, StorageError
from airflow_provider_acid.storages.local import LocalStorage

CONTENT = random.Random(5).randbytes(400_000)
WAYS: dict[str, Callable[[BinaryIO], bytes | int]] = {
    "read": lambda file: file.read(1000),
    "readinto": lambda file: file.readinto(bytearray(300_000)),  # type: ignore[attr-defined]
    "all": lambda file: file.read(),
}


def break_mount(file: BinaryIO) -> None:
    """Every reading of an open file fails from now on, by the system's own word; its size is known as before."""
    only_written = os.open(os.readlink(f"/proc/self/fd/{file.fileno()}"), os.O_WRONLY)
    os.dup2(only_written, file.fileno())
    os.close(only_written)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / "file").write_bytes(CONTENT)
    return LocalStorage(str(tmp_path))


def test_it_reads_like_any_other_file(storage: LocalStorage) -> None:
    with storage.open_input("file") as file:
        assert file.seek(0, os.SEEK_END) == len(CONTENT)
        assert file.seek(-9, os.SEEK_END) == len(CONTENT) - 9
        assert (file.read(), file.read(1)) == (CONTENT[-9:], b"")
        assert file.seek(17) == file.tell() == 17
        assert file.read(300_000) == CONTENT[17:300_017]
    assert file.closed


@pytest.mark.parametrize("way", WAYS)
def test_a_mount_that_fails_is_told_by_the_files_name(storage: LocalStorage, way: str) -> None:
    with storage.open_input("file") as file:
        break_mount(file)
        with pytest.raises(StorageError, match=r"/file: cannot be read \(Bad file descriptor\)"):
            WAYS[way](file)
    assert file.closed


DAMAGED = CorruptFileError("the file", "cannot be read exactly", "restore it")


def read_through_a_library(storage: LocalStorage, *, fails: bool) -> None:
    with storage.open_input("file") as file:
        if fails:
            break_mount(file)
        with suppress(StorageError):
            file.read(1000)
        raise DAMAGED


def test_what_a_library_made_of_a_failing_mount_is_not_believed(storage: LocalStorage) -> None:
    with pytest.raises(StorageError, match="Bad file descriptor") as raised:
        read_through_a_library(storage, fails=True)
    assert raised.value.__cause__ is DAMAGED


def test_damage_stays_damage(storage: LocalStorage) -> None:
    with pytest.raises(CorruptFileError) as raised:
        read_through_a_library(storage, fails=False)
    assert raised.value is DAMAGED
    # Where wrong offsets lead.
    with storage.open_input("file") as file, pytest.raises(OSError, match="Invalid argument"):
        file.seek(-5)
