"""What every storage promises where names are odd, rights are missing, or the store is down."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from tests.storage.outcomes import PATIENCE_SECONDS, error_of
from tests.storage.stores import LocalStore, NetworkStore, Store

NAMES = [
    "ds=2024-01-01",
    "ts=2024-01-01 00%3A00%3A00",
    "p=a%2Fb",
    "p=50%25",
    "p=100%",
    "p=a+b&c=d",
    "p=ü",
    "p=日本 🐘",
    "p=u\u0308",
    "p=#?;,'\"",
    "p=[a-b]{c}*",
    "p=a\\b",
    " p= ",
    "...",
    "__HIVE_DEFAULT_PARTITION__",
    "base_0000005_v0000012",
    ".hive-staging_hive_2024",
]
"""Of directories, as Hive makes and escapes them, and as people make them."""


@pytest.mark.parametrize("name", NAMES)
def test_every_name_means_itself(store: Store, name: str) -> None:
    store.plant({f"_staging/{name}/{name}": b"rows", f"{name}x/f": b"1"})
    storage = store.storage
    assert storage.list("_staging") == Listing((FileEntry(f"{name}/{name}", 4),), (name,))
    assert storage.list(f"_staging/{name}") == Listing((FileEntry(name, 4),))
    assert storage.read(f"_staging/{name}/{name}") == b"rows"
    storage.publish(f"_staging/{name}", name)
    storage.write_new(f"{name}/_{name}", b"new")
    assert storage.exists(f"{name}/_{name}")
    assert {path for path in store.names() if not path.endswith("/")} == {
        f"{name}/{name}",
        f"{name}/_{name}",
        f"{name}x/f",
    }
    storage.delete([name])
    assert storage.list().files == (FileEntry(f"{name}x/f", 1),)


@pytest.mark.parametrize("name", NAMES)
def test_a_location_of_any_name_means_itself(store: Store, name: str) -> None:
    store.plant({f"{name}/bucket_00000": b"rows", f"{name}/{name}/bucket_00001": b"rows", f"{name}x/f": b"1"})
    below = store.open(name)
    assert below.location == store.uri(name)
    found = (FileEntry("bucket_00000", 4), FileEntry(f"{name}/bucket_00001", 4))
    assert below.list() == Listing(tuple(sorted(found)), (name,))
    assert below.read("bucket_00000") == b"rows"


@pytest.mark.promise("colons")
def test_a_colon_is_part_of_a_name(store: Store) -> None:
    store.plant({"a:b/c:d": b"1"})
    assert store.storage.list() == Listing((FileEntry("a:b/c:d", 1),), ("a:b",))
    assert store.storage.read("a:b/c:d") == b"1"


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "a/../b", "/etc/passwd", ".."])
def test_a_path_that_leaves_the_location_is_refused(store: Store, path: str) -> None:
    store.plant({"a/f": b"1", "b": b"1"})
    storage, before = store.storage, store.names()
    for operation in (storage.list, storage.exists, storage.read, storage.open_input, storage.make_directory):
        error_of(lambda operation=operation: operation(path))  # type: ignore[misc]
    error_of(lambda: storage.write_new(path, b"1"))
    error_of(lambda: storage.publish(path, "target"))
    error_of(lambda: storage.publish("a", path))
    error_of(lambda: storage.delete([path]))
    assert store.names() == before


@pytest.mark.parametrize("path", ["", "."])
def test_the_location_itself_is_not_written_moved_or_replaced(store: Store, path: str) -> None:
    store.plant({"a/f": b"1"})
    before = store.names()
    error_of(lambda: store.storage.write_new(path, b"1"))
    error_of(lambda: store.storage.publish(path, "target"))
    error_of(lambda: store.storage.publish("a", path))
    assert store.names() == before


@pytest.mark.promise("symbolic_links")
def test_symbolic_links_are_refused(store: LocalStore) -> None:
    store.plant({"a/f": b"1", "output/f": b"1"})
    (store.root / "a" / "link").symlink_to("/")
    (store.root / "dangling").symlink_to("nowhere")
    storage, before = store.storage, sorted(os.listdir(store.root))
    for operation in (
        storage.list,
        lambda: storage.read("a/link/etc/passwd"),
        lambda: storage.exists("a/link"),
        lambda: storage.write_new("a/link/new", b"1"),
        lambda: storage.publish("output", "dangling"),
        lambda: storage.publish("a/link", "target"),
        lambda: storage.delete(["a/link"]),
        lambda: storage.delete(["output", "a/link/tmp"]),
    ):
        assert "symbolic link" in error_of(operation).reason
    assert sorted(os.listdir(store.root)) == before


# Rights and outages


@pytest.mark.promise("rights")
def test_a_missing_right_names_location_operation_and_remedy(store: Store) -> None:
    store.plant({"closed/f": b"1", "output/f": b"1"})
    storage, before = store.storage, store.names()
    storage.list()
    with store.without_rights("closed"):
        errors = {
            "listed": error_of(lambda: storage.list("closed")),
            "read": error_of(lambda: storage.read("closed/f")),
            "written": error_of(lambda: storage.write_new("closed/new", b"1")),
            "renamed": error_of(lambda: storage.publish("output", "closed/output")),
            "deleted": error_of(lambda: storage.delete(["closed/f"])),
            "made": error_of(lambda: storage.make_directory("closed/new")),
            "looked at": error_of(lambda: storage.exists("closed/f")),
            " looked at": error_of(lambda: store.open("closed/table").exists("")),
        }
    assert store.names() == before
    for operation, error in errors.items():
        assert not isinstance(error, NameTakenError)
        assert error.subject.startswith(store.location)
        assert operation in error.reason
        assert "ermission" in str(error)
        assert "right" in error.remedy or "permission" in error.remedy


@pytest.mark.promise("network")
@pytest.mark.parametrize("how", ["refusing", "silent"])
def test_a_store_that_is_down_is_an_error_of_every_operation(store: NetworkStore, how: str) -> None:
    store.plant({"a/f": b"1", "output/f": b"1"})
    storage, before = store.storage, store.names()
    storage.list()
    operations: list[Callable[[], object]] = [
        storage.list,
        lambda: storage.exists("a"),
        lambda: storage.exists("missing"),
        lambda: storage.read("a/f"),
        lambda: storage.write_new("new", b"1"),
        lambda: storage.publish("output", "base_5"),
        lambda: storage.delete(["a"]),
        lambda: store.open().list(),
    ]
    if store.promises.directories:
        operations.append(lambda: storage.make_directory("new"))
    with getattr(store, how)(), ThreadPoolExecutor(len(operations)) as threads:
        calls = [threads.submit(operation) for operation in operations]
        errors = [call.exception(PATIENCE_SECONDS) for call in calls]
    assert all(isinstance(error, StorageError) and not isinstance(error, NameTakenError) for error in errors)
    assert all(error.subject.startswith(store.location) for error in errors if isinstance(error, StorageError))
    # A request that was sent and not answered may be done later.
    assert how == "silent" or store.names() == before
    assert storage.list()


@pytest.mark.promise("network")
@pytest.mark.parametrize("how", ["refusing", "silent"])
def test_a_store_that_goes_down_under_an_open_file_is_an_error_of_its_reader(store: NetworkStore, how: str) -> None:
    store.plant({"bucket_00000": bytes(1_000_000)})
    with store.storage.open_input("bucket_00000") as file, getattr(store, how)(), ThreadPoolExecutor(1) as threads:
        error = threads.submit(file.read).exception(PATIENCE_SECONDS)
    assert isinstance(error, StorageError)
    assert error.subject == store.uri("bucket_00000")
