"""The directories of runs on local disks: nobody else's from the first moment, and refused where they are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import ConfigurationError, RefusedError, StorageError
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.private_directory import check_is_private


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o7777


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_made_for_the_user_alone_at_once(
    tmp_path: Path, storage: LocalStorage, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    make = os.mkdir

    def mkdir(path: str, mode: int = 0o777) -> None:
        asked.append(mode)
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    before = os.umask(umask)
    try:
        storage.make_private("runs")
    finally:
        os.umask(before)
    assert (asked, mode(tmp_path / "runs")) == ([0o700], 0o700)
    storage.make_private("runs")
    storage.check_private("runs")
    LocalStorage(str(tmp_path / "runs")).check_private("")


def test_one_that_others_may_read_is_left_as_it_is(tmp_path: Path, storage: LocalStorage) -> None:
    (tmp_path / "runs").mkdir(mode=0o755)
    storage.make_private("runs")
    assert mode(tmp_path / "runs") & 0o700 == 0o700


def link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to(place.parent / "elsewhere")


def open_to(bits: int) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        place.mkdir()
        place.chmod(bits)

    return make


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (link, "is a symbolic link, and no directory"),
        (Path.touch, "is a file, and no directory"),
        (open_to(0o777), "may be written to by others (its mode is 777)"),
        (open_to(0o720), "may be written to by others (its mode is 720)"),
        (open_to(0o1702), "may be written to by others (its mode is 1702)"),
    ],
    ids=["link", "file", "all", "group", "others"],
)
@pytest.mark.parametrize("how", ["make_private", "check_private"])
def test_anything_else_of_that_name_is_refused(
    tmp_path: Path, storage: LocalStorage, make: Callable[[Path], None], reason: str, how: str
) -> None:
    make(tmp_path / "runs")
    with pytest.raises(RefusedError) as raised:
        getattr(storage, how)("runs")
    assert str(raised.value).startswith(f"{tmp_path}/runs: ")
    assert reason in str(raised.value)
    assert "run_directory" in raised.value.remedy


def test_somebody_elses_is_refused(tmp_path: Path, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.make_private("runs")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    for refuse in (storage.make_private, storage.check_private):
        with pytest.raises(RefusedError, match=f"belongs to user {me}, and not to user {me + 1}"):
            refuse("runs")


def test_the_home_directory_is_the_users(
    tmp_path: Path, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", f"{tmp_path}/a%2Fb #1")
    assert storage.home() == f"file:{tmp_path}/a%2Fb #1"


def test_where_it_cannot_be_made_the_remedy_is_another_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory") as raised:
        LocalStorage(str(tmp_path / "no-home")).make_private(".airflow_acid")
    assert "name another place by run_directory" in raised.value.remedy


def test_what_is_not_there_is_not_private(tmp_path: Path, storage: LocalStorage) -> None:
    with pytest.raises(StorageError, match="cannot be looked at"):
        storage.check_private("runs")


@pytest.mark.parametrize("bits", [0o700, 0o755, 0o750, 0o500, 0o1755])
def test_who_may_only_look_harms_nobody(bits: int) -> None:
    check_is_private("/x", "directory", "a", "a", bits)
