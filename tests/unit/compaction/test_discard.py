"""What is deleted goes by way of a directory that is older than the decision."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX, Discard
from airflow_provider_acid.compaction.publish.publisher import remove_discards
from airflow_provider_acid.exceptions import OwnershipLostError, StorageError
from airflow_provider_acid.storages.local import LocalStorage


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    for name in ("delta_0000001_0000001", "delta_0000002_0000002", "base_0000002"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bucket_00000").write_bytes(b"ORC")
    (tmp_path / "000000_0").write_bytes(b"ORC")
    return LocalStorage(str(tmp_path))


def ignore() -> None:
    """The lock is there."""


def names(storage: LocalStorage) -> list[str]:
    return sorted(path.name for path in Path(storage.location).iterdir())


def test_directories_and_files_are_deleted_and_missing_ones_are_no_error(storage: LocalStorage) -> None:
    with Discard(storage) as discard:
        discard.take(["delta_0000001_0000001", "delta_0000009_0000009", "000000_0"], ignore)
        assert names(storage) == [discard.name, "base_0000002", "delta_0000002_0000002"]
        discard.empty()
        assert names(storage) == ["base_0000002", "delta_0000002_0000002"]
    assert names(storage) == ["base_0000002", "delta_0000002_0000002"]


def test_without_a_decision_nothing_is_left_behind(storage: LocalStorage) -> None:
    before = names(storage)
    with Discard(storage) as discard:
        assert names(storage) == sorted([*before, discard.name])
    assert names(storage) == before


def test_what_has_the_same_name_in_a_table_made_anew_stays(storage: LocalStorage) -> None:
    with Discard(storage) as discard:
        location = Path(storage.location)
        shutil.rmtree(location)
        (location / "delta_0000001_0000001").mkdir(parents=True)
        with pytest.raises(OwnershipLostError, match="was dropped and made again, or is cleaned by somebody else"):
            discard.take(["delta_0000001_0000001"], ignore)
    assert names(storage) == ["delta_0000001_0000001"]


def test_what_cannot_be_moved_is_an_error(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise StorageError(source, "may not be renamed", "grant it")

    with Discard(storage) as discard:
        monkeypatch.setattr(storage, "move", refuse)
        with pytest.raises(StorageError, match="may not be renamed"):
            discard.take(["delta_0000001_0000001"], ignore)


def test_a_dead_cleaners_directory_is_removed_by_the_next_one(storage: LocalStorage) -> None:
    dead = f"{DISCARD_PREFIX}dead"
    storage.make_directory(f"{dead}/0")
    storage.make_directory(f"delta_0000002_0000002/{DISCARD_PREFIX}inside")
    with Discard(storage) as discard:
        assert remove_discards(storage, storage.list(), discard) == (dead,)
        assert dead not in names(storage)
        discard.take(["delta_0000001_0000001"], ignore)
    assert names(storage) == ["000000_0", "base_0000002", "delta_0000002_0000002"]


def test_of_two_cleaners_of_one_partition_at_most_one_loses_its_directory(storage: LocalStorage) -> None:
    with Discard(storage) as one:
        one.empty()
        with Discard(storage) as other:
            other.take(["delta_0000001_0000001"], ignore)
            with pytest.raises(OwnershipLostError):
                one.take(["delta_0000002_0000002"], ignore)
    assert names(storage) == ["000000_0", "base_0000002", "delta_0000002_0000002"]


def test_what_two_cleaners_delete_at_once_is_deleted_once(storage: LocalStorage) -> None:
    doomed = ["delta_0000001_0000001", "delta_0000002_0000002", "000000_0"]
    with Discard(storage) as one, Discard(storage) as other:
        one.take(doomed[:2], ignore)
        other.take(doomed, ignore)
    assert names(storage) == ["base_0000002"]


def test_rows_are_taken_for_good_before_deletes_of_rows_are(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a power cut undoes, nobody finds rows whose deletes are gone."""
    seen: list[str] = []
    monkeypatch.setattr(storage, "move", lambda source, target: seen.append(source))
    monkeypatch.setattr(storage, "flush", lambda: seen.append("flush"))
    rows, deletes = (
        ["delta_0000001_0000001", "000000_0"],
        ["delete_delta_0000002_0000002", "delete_delta_0000003_0000003"],
    )
    with Discard(storage) as discard:
        discard.take([*rows, *deletes], ignore)
    assert seen == [*rows, "flush", *deletes]


def test_nothing_more_is_taken_once_the_lock_is_lost(storage: LocalStorage) -> None:
    taken: list[str] = []

    def check() -> None:
        if taken:
            raise OwnershipLostError("transaction 7", "was aborted", "look again")
        taken.append("one")

    with Discard(storage) as discard, pytest.raises(OwnershipLostError):
        discard.take(["delta_0000001_0000001", "delta_0000002_0000002"], check)
    assert names(storage) == ["000000_0", "base_0000002", "delta_0000002_0000002"]
