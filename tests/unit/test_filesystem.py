"""What every storage promises, shown on the local one; later storages run the same sentences."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storage, join, storage_for


@pytest.fixture(params=["hard links", "no hard links"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    if request.param == "no hard links":

        def refuse(*names: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)
    return storage_for(str(tmp_path))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# Listing


def test_a_listing_holds_every_file_with_its_size_and_every_directory(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "delta_1_1").mkdir()
    (tmp_path / "delta_1_1" / "bucket_00000").write_bytes(b"12345")
    (tmp_path / "_tmp" / "empty").mkdir(parents=True)
    (tmp_path / ".hidden").write_bytes(b"")
    assert storage.list() == Listing(
        (FileEntry(".hidden", 0), FileEntry("delta_1_1/bucket_00000", 5)), ("_tmp", "_tmp/empty", "delta_1_1")
    )


def test_a_listing_of_a_directory_has_paths_relative_to_it(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"1")
    assert storage.list("a") == Listing((FileEntry("b/f", 1),), ("b",))


def test_listing_a_missing_directory_is_an_error_that_names_it(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nothing_here: cannot be listed"):
        storage.list("nothing_here")


def test_listing_refuses_a_symbolic_link(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/")
    with pytest.raises(StorageError, match="a/link: is a symbolic link"):
        storage.list()


# Creating files


def test_a_new_file_is_not_seen_before_it_is_whole(storage: Storage, tmp_path: Path) -> None:
    with storage.create("result.json") as file:
        file.write(b"half")
        file.flush()
        assert not storage.exists("result.json")
        assert all(name.startswith("_") for name in names(tmp_path))
    assert storage.read("result.json") == b"half"
    assert names(tmp_path) == ["result.json"]


def test_a_file_whose_writer_fails_leaves_nothing(storage: Storage, tmp_path: Path) -> None:
    def create() -> None:
        with storage.create("result.json") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        create()
    assert names(tmp_path) == []


def test_an_error_of_the_writing_block_is_not_mistaken_for_one_of_the_storage(storage: Storage) -> None:
    with pytest.raises(FileExistsError) as caught, storage.create("result.json"):
        raise FileExistsError("some other file")
    assert str(caught.value) == "some other file"


def test_a_file_that_appears_while_another_is_written_stays_as_it_is(storage: Storage, tmp_path: Path) -> None:
    def create() -> None:
        with storage.create("result.json") as file:
            file.write(b"second")
            (tmp_path / "result.json").write_bytes(b"first")

    with pytest.raises(NameTakenError, match="result.json"):
        create()
    assert storage.read("result.json") == b"first"
    assert names(tmp_path) == ["result.json"]


def test_write_new_never_replaces_a_file(storage: Storage) -> None:
    storage.write_new("plan.json", b"first")
    with pytest.raises(NameTakenError):
        storage.write_new("plan.json", b"second")
    assert storage.read("plan.json") == b"first"


def test_write_new_never_replaces_an_empty_directory(storage: Storage, tmp_path: Path) -> None:
    storage.make_directory("plan.json")
    with pytest.raises(NameTakenError):
        storage.write_new("plan.json", b"second")
    assert (tmp_path / "plan.json").is_dir()


def test_of_many_writers_of_one_name_exactly_one_wins(storage: Storage, tmp_path: Path) -> None:
    outcomes: list[bytes | None] = []
    start = threading.Barrier(8)

    def write(data: bytes) -> None:
        start.wait()
        try:
            storage.write_new("claim", data)
        except NameTakenError:
            outcomes.append(None)
        else:
            outcomes.append(data)

    threads = [threading.Thread(target=write, args=(str(number).encode(),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert [data for data in outcomes if data is not None] == [storage.read("claim")]
    assert names(tmp_path) == ["claim"]


def test_without_hard_links_a_reserved_name_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "_plan.json.reserved").touch()
    with pytest.raises(NameTakenError, match=r"_plan\.json\.reserved"):
        storage_for(str(tmp_path)).write_new("plan.json", b"1")
    assert names(tmp_path) == ["_plan.json.reserved"]


def test_writing_into_a_missing_directory_is_a_storage_error(storage: Storage) -> None:
    with pytest.raises(StorageError, match="missing/plan.json: cannot be written"):
        storage.write_new("missing/plan.json", b"1")


def test_directories_are_made_with_their_parents_and_again(storage: Storage, tmp_path: Path) -> None:
    storage.make_directory("_run/results")
    storage.make_directory("_run/results")
    assert (tmp_path / "_run" / "results").is_dir()


def test_a_directory_is_not_made_below_a_location_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        storage_for(str(tmp_path / "dropped_table")).make_directory("_run")
    assert names(tmp_path) == []


# Reading


def test_an_input_can_be_read_from_anywhere(storage: Storage) -> None:
    storage.write_new("bucket_00000", b"0123456789")
    with storage.open_input("bucket_00000") as file:
        file.seek(-3, os.SEEK_END)
        assert file.read() == b"789"


@pytest.mark.parametrize("path", ["missing", "directory"])
def test_reading_what_is_no_file_is_an_error_that_names_it(storage: Storage, path: str) -> None:
    storage.make_directory("directory")
    with pytest.raises(StorageError, match=f"{path}: cannot be read"):
        storage.read(path)


# Publishing


def test_publishing_renames_a_directory_with_all_in_it(storage: Storage, tmp_path: Path) -> None:
    storage.make_directory("_staging/output")
    storage.write_new("_staging/output/bucket_00000", b"rows")
    storage.publish("_staging/output", "base_0000005_v0000012")
    assert storage.read("base_0000005_v0000012/bucket_00000") == b"rows"
    assert names(tmp_path / "_staging") == []


def test_publishing_renames_a_file(storage: Storage, tmp_path: Path) -> None:
    storage.write_new("_new", b"1")
    storage.publish("_new", "_metadata")
    assert names(tmp_path) == ["_metadata"]


@pytest.mark.parametrize("target", ["empty_directory", "full_directory", "file"])
@pytest.mark.parametrize("source", ["source_directory", "source_file"])
def test_publishing_under_a_name_that_exists_fails_and_changes_nothing(
    storage: Storage, source: str, target: str
) -> None:
    storage.make_directory("empty_directory")
    storage.make_directory("full_directory")
    storage.write_new("full_directory/bucket_00000", b"old")
    storage.write_new("file", b"old")
    storage.make_directory("source_directory")
    storage.write_new("source_directory/bucket_00000", b"new")
    storage.write_new("source_file", b"new")
    before = storage.list()
    with pytest.raises(NameTakenError, match=target):
        storage.publish(source, target)
    assert storage.list() == before
    assert storage.read("file") == storage.read("full_directory/bucket_00000") == b"old"


def test_publishing_what_does_not_exist_is_an_error_that_names_it(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="output: does not exist") as caught:
        storage.publish("output", "base_5")
    assert not isinstance(caught.value, NameTakenError)
    assert names(tmp_path) == []


def test_publishing_into_a_directory_that_does_not_exist_changes_nothing(storage: Storage) -> None:
    storage.make_directory("output")
    with pytest.raises(StorageError, match="cannot be renamed"):
        storage.publish("output", "dropped/base_5")
    assert storage.exists("output")


# Deleting


def test_deleting_removes_exactly_what_is_named(storage: Storage) -> None:
    for directory in ("delta_1_1", "delta_1_1_0000", "delta_2_2"):
        storage.make_directory(directory)
        storage.write_new(f"{directory}/bucket_00000", b"1")
    storage.write_new("000000_0", b"1")
    storage.write_new("000001_0", b"1")
    storage.delete(["delta_1_1", "000000_0", "never_there"])
    assert storage.list() == Listing(
        (FileEntry("000001_0", 1), FileEntry("delta_1_1_0000/bucket_00000", 1), FileEntry("delta_2_2/bucket_00000", 1)),
        ("delta_1_1_0000", "delta_2_2"),
    )


@pytest.mark.parametrize("bad", ["", ".", "../other", "/etc", "link/inside", "link"])
def test_one_bad_path_and_nothing_is_deleted(storage: Storage, tmp_path: Path, bad: str) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}_outside"
    outside.mkdir()
    (outside / "inside").touch()
    (tmp_path / "link").symlink_to(outside)
    storage.make_directory("delta_1_1")
    with pytest.raises(StorageError):
        storage.delete(["delta_1_1", bad])
    assert storage.exists("delta_1_1")
    assert (outside / "inside").exists()


def test_deleting_finishes_when_somebody_else_deletes_the_same(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.make_directory("delta_1_1")
    storage.write_new("delta_1_1/bucket_00000", b"1")
    real = shutil.rmtree
    vanished = iter([True, False])

    def rmtree(path: Path) -> None:
        if next(vanished):
            raise FileNotFoundError(errno.ENOENT, "gone", "delta_1_1/bucket_00001")
        real(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    storage.delete(["delta_1_1"])
    assert names(tmp_path) == []


# Names and locations


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/etc/passwd", "link/secret"])
def test_a_path_that_leaves_the_location_is_refused(storage: Storage, tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path.parent)
    for operation in (storage.list, storage.exists, storage.read, storage.make_directory):
        with pytest.raises(StorageError):
            operation(path)
    with pytest.raises(StorageError):
        storage.write_new(path, b"1")
    with pytest.raises(StorageError):
        storage.publish(path, "target")


def test_publishing_onto_a_dangling_link_is_refused(storage: Storage, tmp_path: Path) -> None:
    storage.write_new("file", b"1")
    (tmp_path / "target").symlink_to("nowhere")
    with pytest.raises(StorageError, match="symbolic link"):
        storage.publish("file", "target")
    assert (tmp_path / "target").is_symlink()


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
@pytest.mark.parametrize("directory", ["plain", "ds=a%2Fb", "ds=a b", "ds=50%", "ds=ü#1?x=2"])
def test_every_spelling_of_a_local_location_means_the_same_directory(tmp_path: Path, form: str, directory: str) -> None:
    (tmp_path / directory).mkdir()
    (tmp_path / directory / "f").touch()
    location = form.format(tmp_path / directory)
    storage = storage_for(location)
    assert storage.list() == Listing((FileEntry("f", 0),))
    assert storage.location == location


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("gopher://host/wh/t", "gopher://"),
        ("file://otherhost/wh/t", "names the host otherhost"),
        ("file:relative/t", "not an absolute path"),
        ("relative/t", "not an absolute path"),
        ("", "not an absolute path"),
        ("file://[half/t", "not a URI"),
    ],
)
def test_a_location_that_cannot_be_served_is_refused_by_name(location: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason) as caught:
        storage_for(location)
    assert caught.value.subject == location


def test_join_keeps_escaped_partition_values() -> None:
    assert join("file:/wh/t/", "ds=a%2Fb", "base_1") == "file:/wh/t/ds=a%2Fb/base_1"


def test_a_file_that_is_removed_while_its_directory_is_listed_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "vanishes"):
        (tmp_path / name).write_bytes(b"1")
    scan = os.scandir

    def scan_and_lose(directory: Path) -> Any:
        with scan(directory) as entries:
            found = list(entries)
        (tmp_path / "vanishes").unlink()
        return nullcontext(found)

    monkeypatch.setattr(os, "scandir", scan_and_lose)
    assert [file.path for file in storage_for(str(tmp_path)).list().files] == ["stays"]


def test_a_directory_that_is_removed_while_its_parent_is_listed_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "vanishes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1")
    scan = os.scandir

    def scan_and_lose(directory: Path) -> Any:
        if directory == tmp_path / "vanishes":
            (directory / "file").unlink()
            directory.rmdir()
        return scan(directory)

    monkeypatch.setattr(os, "scandir", scan_and_lose)
    listing = storage_for(str(tmp_path)).list()
    assert [file.path for file in listing.files] == ["stays/file"]
    assert listing.directories == ("stays",)
