"""The list of what a compaction replaced: read as written, and nothing where there is any doubt."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.publish.replaced import read_replaced, write_replaced
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.local import LocalStorage

STAGING = "_acid_compaction_0123456789abcdef"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / STAGING).mkdir()
    return LocalStorage(str(tmp_path))


@pytest.mark.parametrize("names", [(), ("delta_0000001_0000001_0000", "000000_0", "HIVE_UNION_SUBDIR_1")])
def test_it_is_read_as_it_was_written(storage: LocalStorage, names: tuple[str, ...]) -> None:
    write_replaced(storage, STAGING, names)
    assert read_replaced(storage, STAGING) == frozenset(names)


def test_the_list_of_an_adopted_predecessor_is_replaced(storage: LocalStorage) -> None:
    write_replaced(storage, STAGING, ["delta_0000001_0000001", "delta_0000002_0000002"])
    write_replaced(storage, STAGING, ["delta_0000001_0000001"])
    assert read_replaced(storage, STAGING) == frozenset({"delta_0000001_0000001"})


def test_an_attempt_whose_staging_directory_was_removed_notes_nothing(storage: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / STAGING).rmdir()
    with pytest.raises(StorageError):
        write_replaced(storage, STAGING, ["delta_0000001_0000001"])
    assert list(tmp_path.iterdir()) == []


def test_without_a_list_or_a_staging_directory_there_is_none(storage: LocalStorage) -> None:
    assert read_replaced(storage, STAGING) is None
    assert read_replaced(storage, "_acid_compaction_fedcba9876543210") is None


def test_a_list_that_another_cleaner_removes_just_now_is_none(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = LocalStorage.read

    def read_too_late(self: LocalStorage, path: str, most_bytes: int) -> bytes:
        shutil.rmtree(tmp_path / STAGING)
        return read(self, path, most_bytes)

    write_replaced(storage, STAGING, ["delta_0000001_0000001"])
    monkeypatch.setattr(LocalStorage, "read", read_too_late)
    assert read_replaced(storage, STAGING) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        json.dumps({"names": ["delta_0000001_0000001"]}).encode(),
        json.dumps({"format_version": 2, "names": ["delta_0000001_0000001"]}).encode(),
        json.dumps({"format_version": 1, "names": [1]}).encode(),
        json.dumps({"format_version": 1}).encode(),
    ],
)
def test_a_list_that_cannot_be_understood_is_none(storage: LocalStorage, tmp_path: Path, content: bytes) -> None:
    (tmp_path / STAGING / "replaced.json").write_bytes(content)
    assert read_replaced(storage, STAGING) is None


def test_a_list_that_cannot_be_read_now_is_an_error_and_not_taken_for_none(
    storage: LocalStorage, tmp_path: Path
) -> None:
    (tmp_path / STAGING / "replaced.json").mkdir()
    with pytest.raises(StorageError, match=r"replaced\.json: cannot be read"):
        read_replaced(storage, STAGING)
