"""What a failing mount does not show is there: a directory that a listing left out would count as gone."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages import local
from airflow_provider_acid.storages.local import LocalStorage


def failing(call: Callable[..., Any], name: str, number: int) -> Callable[..., Any]:
    """The same, but for paths with that end."""

    def fail(path: Any, *arguments: Any, **named: Any) -> Any:
        if str(path).endswith(name):
            raise OSError(number, os.strerror(number), path)
        return call(path, *arguments, **named)

    return fail


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
def test_a_directory_that_a_mount_does_not_show_is_not_taken_for_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for write_id in (1, 2):
        (tmp_path / f"delta_{write_id}").mkdir()
        (tmp_path / f"delta_{write_id}" / "bucket_00000").touch()
    for call in ("scandir", "stat", "lstat"):
        monkeypatch.setattr(os, call, failing(getattr(os, call), "delta_2", number))
    with pytest.raises(StorageError, match="delta_2: cannot be listed"):
        LocalStorage(str(tmp_path)).list()


def test_a_directory_that_went_meanwhile_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stays").mkdir()
    (tmp_path / "goes").mkdir()
    scan = os.scandir

    def remove_and_scan(path: str) -> Any:
        if path.endswith("goes"):
            os.rmdir(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", remove_and_scan)
    assert LocalStorage(str(tmp_path)).list().directories == ("stays",)


def test_what_a_mount_does_not_show_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no hard links, a look comes before the rename."""
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(os, "link", failing(os.link, "old", errno.ENOTSUP))
    with pytest.raises(NameTakenError):
        LocalStorage(str(tmp_path)).write_new("new", b"")
    moving = vars(local)["_rename_under_reservation"]
    for call in ("stat", "lstat"):
        monkeypatch.setattr(os, call, failing(getattr(os, call), "new", errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        moving(str(tmp_path / "old"), str(tmp_path / "new"))
    monkeypatch.undo()
    assert (tmp_path / "new").read_text() == "new"
