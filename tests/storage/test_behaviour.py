"""What every storage promises (:class:`~airflow_provider_acid.filesystem.Storage`), on every kind of store."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError
from airflow_provider_acid.filesystem import Storage
from tests.storage.outcomes import PATIENCE_SECONDS, error_of, files
from tests.storage.stores import Store

LARGE_BYTES = 20 * 1024 * 1024


def write_slowly(storage: Storage, path: str, *parts: bytes, then: Callable[[], object] = lambda: None) -> None:
    with storage.create(path) as file:
        for part in parts:
            file.write(part)
        then()


# Listing


@pytest.mark.promise("directories")
def test_a_listing_holds_every_file_with_its_size_and_every_directory(store: Store) -> None:
    store.plant({"delta_1_1/bucket_00000": b"12345", ".hidden": b"", "_orc_acid_version": b"2"})
    store.plant_directory("_tmp/empty")
    assert store.storage.list() == Listing(
        (FileEntry(".hidden", 0), FileEntry("_orc_acid_version", 1), FileEntry("delta_1_1/bucket_00000", 5)),
        ("_tmp", "_tmp/empty", "delta_1_1"),
    )


def test_a_listing_of_a_directory_has_paths_relative_to_it(store: Store) -> None:
    store.plant({"a/b/f": b"1", "ab/g": b"2"})
    assert store.storage.list("a") == Listing((FileEntry("b/f", 1),), ("b",))


def test_a_listing_goes_as_deep_as_there_is_anything(store: Store) -> None:
    path = "p=1/q=2/delta_1_1/sub/below/bucket_00000"
    parents = ("p=1", "p=1/q=2", "p=1/q=2/delta_1_1", "p=1/q=2/delta_1_1/sub", "p=1/q=2/delta_1_1/sub/below")
    store.plant({path: b"1"})
    assert store.storage.list() == Listing((FileEntry(path, 1),), parents)


@pytest.mark.promise("directories")
def test_an_empty_location_has_an_empty_listing(store: Store) -> None:
    assert store.storage.list() == Listing()


def test_a_listing_of_more_than_a_thousand_files_is_complete(store: Store) -> None:
    expected = {f"delta_1_1/bucket_{number:05d}": b"" for number in range(1100)}
    store.plant(expected)
    assert [file.path for file in store.storage.list().files] == sorted(expected)


@pytest.mark.promise("directories")
@pytest.mark.parametrize("path", ["missing", "missing/below", "file"])
def test_listing_what_is_no_directory_is_an_error_that_names_it(store: Store, path: str) -> None:
    store.plant({"file": b"1"})
    error = error_of(lambda: store.storage.list(path))
    assert error.subject == store.uri(path)
    assert "cannot be listed" in error.reason


def test_what_exists_is_told_from_what_does_not(store: Store) -> None:
    store.plant({"directory/file": b"1"})
    there = ["", "directory", "directory/file"]
    paths = [*there, "missing", "missing/below", "direct", "directory/fil", "directory/file/below"]
    assert [path for path in paths if store.storage.exists(path)] == there


# Creating files


def test_a_new_file_is_not_seen_before_it_is_whole(store: Store) -> None:
    def look() -> None:
        assert not store.storage.exists("result.json")
        assert all(name.startswith("_") for name in store.names())

    write_slowly(store.storage, "result.json", b"half", b"x" * LARGE_BYTES, then=look)
    assert store.names() == {"result.json"}
    assert store.content("result.json") == b"half" + b"x" * LARGE_BYTES


def test_an_empty_file_is_a_file(store: Store) -> None:
    store.storage.write_new("_empty", b"")
    assert store.storage.list().files == (FileEntry("_empty", 0),)
    assert store.storage.read("_empty") == b""


@pytest.mark.parametrize("size", [0, 4, LARGE_BYTES])
def test_a_file_whose_writer_fails_leaves_nothing(store: Store, size: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_slowly(store.storage, "result.json", b"x" * size, then=fail)
    assert store.names() == set()


def test_an_error_of_the_writing_block_is_not_mistaken_for_one_of_the_storage(store: Store) -> None:
    def fail() -> None:
        raise FileExistsError("some other file")

    with pytest.raises(FileExistsError, match="some other file"):
        write_slowly(store.storage, "result.json", then=fail)


def test_a_file_that_appears_while_another_is_written_stays_as_it_is(store: Store) -> None:
    def plant() -> None:
        store.plant({"result.json": b"first"})

    with pytest.raises(NameTakenError) as caught:
        write_slowly(store.storage, "result.json", b"second", then=plant)
    assert caught.value.subject == store.uri("result.json")
    assert (store.names(), store.content("result.json")) == ({"result.json"}, b"first")


def test_a_new_file_never_replaces_another(store: Store) -> None:
    store.storage.write_new("plan.json", b"first")
    with pytest.raises(NameTakenError):
        store.storage.write_new("plan.json", b"second")
    assert (store.names(), store.content("plan.json")) == ({"plan.json"}, b"first")


@pytest.mark.promise("directories")
def test_a_new_file_replaces_no_directory_and_does_not_move_into_one(store: Store) -> None:
    store.plant_directory("plan.json")
    with pytest.raises(NameTakenError):
        store.storage.write_new("plan.json", b"second")
    assert store.names() == {"plan.json/"}


def test_of_many_writers_of_one_name_exactly_one_wins(store: Store) -> None:
    start = threading.Barrier(8)

    def write(number: int) -> int | None:
        storage = store.open()
        start.wait(PATIENCE_SECONDS)
        try:
            storage.write_new("claim", str(number).encode())
        except NameTakenError:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        winners = [number for number in threads.map(write, range(8)) if number is not None]
    assert [str(number).encode() for number in winners] == [store.content("claim")]
    assert store.names() == {"claim"}


@pytest.mark.promise("directories")
def test_a_file_in_a_missing_directory_is_refused_and_makes_none(store: Store) -> None:
    error = error_of(lambda: store.storage.write_new("missing/plan.json", b"x" * LARGE_BYTES))
    assert not isinstance(error, NameTakenError)
    assert error.subject == store.uri("missing/plan.json")
    assert store.names() == set()


@pytest.mark.promise("directories")
def test_a_file_below_a_file_is_refused(store: Store) -> None:
    store.plant({"file": b"1"})
    error_of(lambda: store.storage.write_new("file/plan.json", b"1"))
    assert store.names() == {"file"}


# Making directories


@pytest.mark.promise("directories")
def test_directories_are_made_with_their_parents_and_again(store: Store) -> None:
    store.storage.make_directory("_run/results")
    store.storage.make_directory("_run/results")
    store.storage.make_directory("")
    assert store.names() == {"_run/", "_run/results/"}


@pytest.mark.promise("directories")
def test_no_directory_is_made_where_a_file_is(store: Store) -> None:
    store.plant({"file": b"1"})
    for path in ("file", "file/below"):
        assert error_of(lambda path=path: store.storage.make_directory(path)).subject == store.uri(path)  # type: ignore[misc]
    assert store.names() == {"file"}


@pytest.mark.promise("directories")
def test_nothing_is_made_below_a_location_that_does_not_exist(store: Store) -> None:
    dropped = store.open("dropped_table")
    assert "dropped_table" in error_of(lambda: dropped.make_directory("_run")).subject
    error_of(lambda: dropped.write_new("plan.json", b"1"))
    assert store.names() == set()


# Reading


def test_an_input_can_be_read_from_anywhere(store: Store) -> None:
    store.plant({"bucket_00000": b"0123456789"})
    with store.storage.open_input("bucket_00000") as file:
        file.seek(-3, os.SEEK_END)
        assert (file.read(), file.tell(), file.read()) == (b"789", 10, b"")
        file.seek(2)
        file.seek(1, os.SEEK_CUR)
        assert (file.read(4), file.read(100)) == (b"3456", b"789")


def test_parts_of_a_large_file_are_read_without_the_rest(store: Store) -> None:
    content = b"".join(number.to_bytes(4, "big") for number in range(LARGE_BYTES // 4))
    store.plant({"bucket_00000": content})
    store.storage.read("bucket_00000", LARGE_BYTES)
    before = store.fetched_bytes()
    with store.storage.open_input("bucket_00000") as file:
        file.seek(-16_000, os.SEEK_END)
        assert file.read() == content[-16_000:]
        file.seek(LARGE_BYTES // 2)
        assert file.read(1000) == content[LARGE_BYTES // 2 :][:1000]
    parts_bytes = store.fetched_bytes() - before
    assert store.storage.read("bucket_00000", LARGE_BYTES) == content
    assert store.fetched_bytes() - before - parts_bytes >= LARGE_BYTES
    assert parts_bytes < LARGE_BYTES // 10


@pytest.mark.parametrize("path", ["missing", "missing/below", "directory"])
def test_reading_what_is_no_file_is_an_error_that_names_it(store: Store, path: str) -> None:
    store.plant({"directory/file": b"1"})
    for read in (store.storage.read, store.storage.open_input):
        error = error_of(lambda read=read: read(path))  # type: ignore[misc]
        assert error.subject == store.uri(path)
        assert "cannot be read" in error.reason


# Publishing


@pytest.mark.promise("directories")
def test_publishing_renames_a_directory_with_all_in_it(store: Store) -> None:
    store.plant({"_staging/output/bucket_00000": b"rows", "_staging/output/_orc_acid_version": b"2"})
    store.storage.publish("_staging/output", "base_5")
    assert store.names() == {"_staging/", "base_5/", "base_5/_orc_acid_version", "base_5/bucket_00000"}
    assert store.content("base_5/bucket_00000") == b"rows"


def test_publishing_renames_a_file(store: Store) -> None:
    store.plant({"_new": b"1"})
    store.storage.publish("_new", "_metadata")
    assert (store.names(), store.content("_metadata")) == ({"_metadata"}, b"1")


@pytest.mark.promise("directories")
@pytest.mark.parametrize("target", ["empty_directory", "full_directory", "file", "directory_with_such_a_child"])
@pytest.mark.parametrize("source", ["source_directory", "source_file"])
def test_publishing_under_a_name_that_exists_fails_and_changes_nothing(store: Store, source: str, target: str) -> None:
    store.plant_directory("empty_directory")
    store.plant({"full_directory/bucket_00000": b"old", "file": b"old"})
    store.plant({f"directory_with_such_a_child/{source}": b"old"})
    store.plant({"source_directory/bucket_00000": b"new", "source_file": b"new"})
    before = store.names()
    error = error_of(lambda: store.storage.publish(source, target))
    assert isinstance(error, NameTakenError)
    assert error.subject == store.uri(target)
    assert store.names() == before
    assert store.content("file") == store.content("full_directory/bucket_00000") == b"old"


@pytest.mark.parametrize("source", ["output", "_staging/output", "file/output"])
def test_publishing_what_does_not_exist_is_an_error_that_names_it(store: Store, source: str) -> None:
    store.plant({"file": b"1"})
    error = error_of(lambda: store.storage.publish(source, "base_5"))
    assert not isinstance(error, NameTakenError)
    assert error.subject == store.uri(source)
    assert store.names() == {"file"}


@pytest.mark.promise("directories")
@pytest.mark.parametrize("target", ["dropped/base_5", "file/base_5", "output/base_5"])
def test_publishing_where_there_is_no_directory_to_publish_into_changes_nothing(store: Store, target: str) -> None:
    store.plant({"output/bucket_00000": b"1", "file": b"1"})
    assert not isinstance(error_of(lambda: store.storage.publish("output", target)), NameTakenError)
    assert store.names() == {"output/", "output/bucket_00000", "file"}


@pytest.mark.promise("atomic_publish")
def test_a_directory_is_published_at_once_or_not_at_all(store: Store) -> None:
    rounds, names = 5, {f"bucket_{number:05d}" for number in range(20)}
    store.plant({f"_staging/{round}/{name}": b"" for round in range(rounds) for name in names})
    looker, seen, ended = store.open(), [Listing()], threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.append(looker.list())
        seen.append(looker.list())

    assert store.storage.rules.renames
    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(look)
        for round in range(rounds):
            store.storage.publish(f"_staging/{round}", f"base_{round}")
        ended.set()
        looking.result()
    for listing in seen:
        for name in (name for name in listing.directories if name.startswith("base_")):
            assert {file.path for file in listing.below(name).files} == names
    assert len([name for name in seen[-1].directories if name.startswith("base_")]) == rounds


@pytest.mark.promise("atomic_publish")
def test_of_many_publishers_of_one_name_exactly_one_wins_and_the_others_keep_theirs(store: Store) -> None:
    store.plant({f"output_{number}/from_{number}": b"" for number in range(6)})
    start = threading.Barrier(6)

    def publish(number: int) -> bool:
        storage = store.open()
        start.wait(PATIENCE_SECONDS)
        try:
            storage.publish(f"output_{number}", "base_5")
        except NameTakenError:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        won = list(threads.map(publish, range(6)))
    assert won.count(True) == 1
    kept = {f"output_{number}/{name}" for number in range(6) if not won[number] for name in ("", f"from_{number}")}
    assert store.names() == kept | {"base_5/", f"base_5/from_{won.index(True)}"}


# Deleting


def test_deleting_removes_exactly_what_is_named(store: Store) -> None:
    kept = {"000001_0": b"1", "delta_1_1_0000/bucket_00000": b"1", "delta_2_2/bucket_00000": b"1"}
    store.plant({**kept, "delta_1_1/bucket_00000": b"1", "delta_1_1/below/f": b"1", "000000_0": b"1"})
    store.storage.delete(["delta_1_1", "000000_0", "never_there", "never/there"])
    assert files(store) == set(kept)
    assert store.storage.list().directories == ("delta_1_1_0000", "delta_2_2")


@pytest.mark.parametrize("bad", ["", ".", "../other", "delta_2_2/../delta_3_3", "/etc"])
def test_one_bad_path_and_nothing_is_deleted(store: Store, bad: str) -> None:
    store.plant({"delta_1_1/f": b"1", "delta_3_3/f": b"1"})
    error_of(lambda: store.storage.delete(["delta_1_1", bad]))
    assert {"delta_1_1/f", "delta_3_3/f"} <= store.names()


def test_many_may_delete_the_same(store: Store) -> None:
    store.plant({f"delta_1_1/bucket_{number:05d}": b"1" for number in range(100)})
    start = threading.Barrier(4)

    def delete(storage: Storage) -> None:
        start.wait(PATIENCE_SECONDS)
        storage.delete(["delta_1_1"])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(delete, [store.open() for _ in range(4)]))
    assert store.names() == set()
