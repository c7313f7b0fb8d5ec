"""Local files are on their way to the disk while they are written, and hold what was written whatever comes of that."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from threading import Event

import pytest

from airflow_provider_acid.storages import flushed_file
from airflow_provider_acid.storages.local import LocalStorage

PIECES = [b"a" * 700, b"", b"b" * 5000, b"c" * 20_000, b"d" * 3]
CONTENT = b"".join(PIECES)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushed_file, "FLUSHED_BYTES", 4096)


def written(folder: Path) -> bytes:
    with LocalStorage(str(folder)).create("f") as file:
        for piece in PIECES:
            file.write(piece)
    return (folder / "f").read_bytes()


def test_every_part_is_sent_on_its_way_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, length, advice: sent.append((start, length, advice)))
    assert written(tmp_path) == CONTENT
    ends = [start + length for start, length, _ in sent]
    assert [start for start, _, _ in sent] == [0, *ends[:-1]]
    assert len(sent) > 1
    assert len(CONTENT) - 4096 < ends[-1] <= len(CONTENT)
    assert {advice for _, _, advice in sent} == {os.POSIX_FADV_DONTNEED}


def refuse(*_: object) -> None:
    raise OSError(errno.EINVAL, "no")


def test_the_writer_does_not_wait_for_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered, in_time = Event(), []
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: in_time.append(answered.wait(60)))
    with LocalStorage(str(tmp_path)).create("f") as file:
        for piece in PIECES:
            file.write(piece)
        answered.set()
    assert in_time
    assert all(in_time)


@pytest.mark.parametrize("way", ["asked", "refused", "not to be asked"])
def test_a_file_holds_what_was_written_to_it(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "refused":
        monkeypatch.setattr(os, "posix_fadvise", refuse)
    elif way == "not to be asked":
        monkeypatch.delattr(os, "posix_fadvise")
    assert written(tmp_path) == CONTENT
