"""Locations and the local storage's own; what every storage promises is in tests/storage."""

from __future__ import annotations

import errno
import itertools
import os
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import ConfigurationError, ForbiddenError, NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storage, Storages, join
from airflow_provider_acid.storages.links import untrusted_link
from airflow_provider_acid.storages.local import LocalStorage


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_without_hard_links_a_reserved_name_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "_plan.json.reserved").touch()
    with pytest.raises(NameTakenError, match=r"_plan\.json\.reserved"):
        LocalStorage(str(tmp_path)).write_new("plan.json", b"1")
    assert names(tmp_path) == ["_plan.json.reserved"]


def test_what_was_moved_is_there_for_good_once_it_is_flushed_and_what_is_published_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    places = (tmp_path, tmp_path / "taken")

    def note(descriptor: int) -> None:
        flushed.extend(place for place in places if os.path.samestat(os.fstat(descriptor), place.stat()))

    monkeypatch.setattr(os, "fsync", note)
    for name in ("one", "two", "taken"):
        (tmp_path / name).mkdir()
    storage = LocalStorage(str(tmp_path))
    storage.move("one", "taken/0")
    assert flushed == []
    storage.flush()
    assert flushed == [tmp_path]
    storage.publish("two", "taken/1")
    assert flushed == list(places)
    assert names(tmp_path / "taken") == ["0", "1"]


def test_deleting_finishes_while_somebody_else_deletes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.make_directory("delta_1_1/below")
    for number in range(20):
        storage.write_new(f"delta_1_1/bucket_{number:05d}", b"1")
        storage.write_new(f"delta_1_1/below/bucket_{number:05d}", b"1")
    unlink, turns = os.unlink, itertools.count()

    def unlink_second(path: str, **options: Any) -> None:
        if next(turns) % 2:
            unlink(path, **options)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", unlink_second)
    storage.delete(["delta_1_1"])
    assert names(tmp_path) == []


def test_what_may_not_be_deleted_is_said_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.make_directory("delta_1_1")
    storage.write_new("delta_1_1/bucket_00000", b"1")

    def refuse(path: str, **options: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(ForbiddenError, match=r"delta_1_1: cannot be deleted \(Permission denied\)"):
        storage.delete(["delta_1_1"])
    assert names(tmp_path / "delta_1_1") == ["bucket_00000"]


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
@pytest.mark.parametrize("directory", ["plain", "ds=a%2Fb", "ds=a b", "ds=50%", "ds=ü#1?x=2"])
def test_every_spelling_of_a_local_location_means_the_same_directory(tmp_path: Path, form: str, directory: str) -> None:
    (tmp_path / directory).mkdir()
    (tmp_path / directory / "f").touch()
    location = form.format(tmp_path / directory)
    storage = LocalStorage(location)
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
        LocalStorage(location)
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
    assert [file.path for file in LocalStorage(str(tmp_path)).list().files] == ["stays"]


def test_a_directory_that_is_removed_while_its_parent_is_listed_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "vanishes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1")
    scan = os.scandir

    def scan_and_lose(directory: str) -> Any:
        if directory == str(tmp_path / "vanishes"):
            Path(directory, "file").unlink()
            Path(directory).rmdir()
        return scan(directory)

    monkeypatch.setattr(os, "scandir", scan_and_lose)
    listing = LocalStorage(str(tmp_path)).list()
    assert [file.path for file in listing.files] == ["stays/file"]
    assert listing.directories == ("stays",)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"s3": {"secret": "hunter2"', "are not JSON (Expecting ',' delimiter: line 1 column 28 (char 27))"),
        ('"hunter2"', "are not an object"),
        ('{"s3": "hunter2"}', "have no object as s3"),
        ('{"s4": {"secret": "hunter2"}}', "have the unknown key s4"),
        ('{"s3": {"secret": "hunter2"}}', "S3 option secret: is unknown"),
        ('{"hdfs": {"user": ["hunter2"]}}', "HDFS option user: has the wrong type"),
    ],
)
def test_options_that_cannot_be_used_are_named_but_not_repeated(document: str, words: str) -> None:
    """There may be a key in them."""
    with pytest.raises(ConfigurationError) as refused:
        Storages.from_json(document)
    assert words in str(refused.value)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


STRANGER = 12_345


@pytest.fixture
def way(tmp_path: Path) -> Path:
    """A partition whose directory somebody has replaced by a link to another table."""
    (tmp_path / "victim" / "q=1").mkdir(parents=True)
    (tmp_path / "victim" / "q=1" / "bucket_00000").write_bytes(b"secret")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "p=1").symlink_to("../victim")
    return tmp_path / "mine" / "p=1"


@pytest.mark.parametrize("below", ["", "q=1"])
def test_a_link_that_a_tables_writer_made_is_not_followed(
    way: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER + 1)
    os.chown(way, STRANGER, STRANGER, follow_symlinks=False)
    storage = LocalStorage(str(way / below))
    inside = "" if below else "q=1/"
    for use in (
        lambda: storage.open_input(f"{inside}bucket_00000"),
        lambda: storage.delete([f"{inside}bucket_00000"]),
        lambda: storage.publish(f"{inside}bucket_00000", "other"),
        lambda: storage.write_new(f"{inside}new", b"1"),
        lambda: storage.make_directory("new"),
    ):
        with pytest.raises(StorageError, match=r"mine/p=1: is a symbolic link on the way to .*/mine/p=1"):
            use()
    assert names(way / "q=1") == ["bucket_00000"]
    assert names(way) == ["q=1"]


@pytest.mark.parametrize("absolute", [False, True])
def test_a_link_of_root_or_of_this_user_is_followed(way: Path, absolute: bool) -> None:
    if absolute:
        way.unlink()
        way.symlink_to(way.parent.parent / "victim")
    assert LocalStorage(str(way / "q=1")).read("bucket_00000") == b"secret"


def test_a_link_behind_a_link_and_one_in_a_circle_are_found(tmp_path: Path) -> None:
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("third")
    (tmp_path / "third").mkdir()
    os.chown(tmp_path / "second", STRANGER, STRANGER, follow_symlinks=False)
    assert untrusted_link(str(tmp_path / "first" / "x"), (os.geteuid(),)) == str(tmp_path / "second")
    assert untrusted_link(str(tmp_path / "first" / "x"), (os.geteuid(), STRANGER)) is None
    (tmp_path / "round").symlink_to("round/")
    assert untrusted_link(str(tmp_path / "round"), (os.geteuid(),)) == str(tmp_path / "round")


def test_a_way_without_links_is_not_looked_at_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    lstat = os.lstat

    def counted(place: str) -> os.stat_result:
        looks.append(place)
        return lstat(place)

    monkeypatch.setattr(os, "lstat", counted)
    assert untrusted_link(str(tmp_path), ()) is None
    assert looks == []
    (tmp_path / "link").symlink_to(tmp_path)
    assert untrusted_link(str(tmp_path / "link"), ()) == str(tmp_path / "link")
    assert looks[-1] == str(tmp_path / "link")


def test_a_link_to_what_goes_meanwhile_is_found_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux tells of a removed directory by its path and that it was deleted, which a link may be named after."""
    gone, link = tmp_path / "p=1", tmp_path / "p=1 (deleted)"
    gone.mkdir()
    link.symlink_to(gone)
    readlink = os.readlink

    def read_once_it_is_gone(place: str) -> str:
        gone.rmdir()
        monkeypatch.setattr(os, "readlink", readlink)
        return readlink(place)

    monkeypatch.setattr(os, "readlink", read_once_it_is_gone)
    assert untrusted_link(str(link), ()) == str(link)


def test_what_kind_of_storage_it_is_asks_no_store_anything() -> None:
    """Python 3.11 reads every member of a protocol to tell: a property that asks a server would ask it each time."""
    properties = {name for name, member in vars(Storage).items() if isinstance(member, property)}
    assert properties == {"location", "rules"}
