"""A listing and what is read by it, while somebody else deletes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.snapshot import MOST_LOOKS, list_with_base_formats
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.local import LocalStorage

COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'


class Busy(LocalStorage):
    """A partition in which something happens after each listing."""

    def __init__(self, folder: Path, happens: Callable[[], None]) -> None:
        super().__init__(str(folder))
        self.listings = 0
        self._happens = happens

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        listing = super().list(path, into)
        self.listings += 1
        self._happens()
        return listing


def make_base(folder: Path, write_id: int) -> Path:
    base = folder / f"base_{write_id:07d}"
    base.mkdir()
    (base / "bucket_00000").touch()
    (base / "_metadata_acid").write_bytes(COMPACTED)
    return base


def test_a_base_that_went_meanwhile_is_in_neither(tmp_path: Path) -> None:
    old, _ = make_base(tmp_path, 1), make_base(tmp_path, 2)
    listing, formats = list_with_base_formats(Busy(tmp_path, lambda: shutil.rmtree(old, ignore_errors=True)))
    assert listing.directories == ("base_0000002",)
    assert formats == {"base_0000002": "compacted"}


def test_a_base_that_is_there_and_cannot_be_read_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(storage: LocalStorage, path: str) -> bytes:
        raise StorageError(path, "permission denied", "ask its owner")

    make_base(tmp_path, 1)
    storage = Busy(tmp_path, lambda: None)
    monkeypatch.setattr(Busy, "read", denied)
    with pytest.raises(StorageError, match="permission denied"):
        list_with_base_formats(storage)
    assert storage.listings == 2


def test_where_each_base_goes_before_it_is_read_it_ends_with_an_error(tmp_path: Path) -> None:
    make_base(tmp_path, 0)

    def replace_it() -> None:
        [base] = tmp_path.iterdir()
        shutil.rmtree(base)
        make_base(tmp_path, int(base.name.removeprefix("base_")) + 1)

    storage = Busy(tmp_path, replace_it)
    with pytest.raises(StorageError, match="cannot be read"):
        list_with_base_formats(storage)
    assert storage.listings == MOST_LOOKS
