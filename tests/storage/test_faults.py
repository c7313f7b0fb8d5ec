"""A network that loses requests and replies: what was done is found out and never guessed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from airflow_provider_acid.exceptions import HalfPublishedError, NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storage
from tests.storage.outcomes import files, outcome
from tests.storage.stores import Call, NetworkStore

pytestmark = pytest.mark.promise("network")

LONGEST_WAIT_SECONDS = 3
"""For an answer; every store here is opened with it or less."""

SIZE_BYTES = 4 * 1024 * 1024
LARGE = b"".join(number.to_bytes(4, "big") for number in range(250_000))


def write_large(store: NetworkStore) -> None:
    with store.storage.create("result.json") as file:
        for _ in range(4):
            file.write(b"x" * (SIZE_BYTES // 4))


# Writing


def test_a_connection_cut_in_mid_write_leaves_nothing_or_is_made_up_for(store: NetworkStore) -> None:
    cut = store.cut_write("result.json")
    error = outcome(lambda: write_large(store))
    assert cut.has_happened
    assert not isinstance(error, NameTakenError)
    assert store.names() == (set() if error else {"result.json"})
    assert error or store.content("result.json") == b"x" * SIZE_BYTES


@pytest.mark.parametrize("call", [Call.WRITE, Call.RENAME])
@pytest.mark.parametrize("size", [5, SIZE_BYTES])
def test_a_new_file_whose_confirmation_is_lost_is_there_whole_or_not_at_all(
    store: NetworkStore, call: Call, size: int
) -> None:
    lost = store.lose_reply(call, "result.json")
    error = outcome(lambda: store.storage.write_new("result.json", b"x" * size))
    assert lost.has_happened
    assert not isinstance(error, NameTakenError)
    assert store.names() == (set() if error else {"result.json"})
    assert error or store.content("result.json") == b"x" * size


def test_a_new_file_whose_rename_was_confirmed_to_nobody_is_known_to_be_there(store: NetworkStore) -> None:
    lost = store.lose_reply(Call.RENAME, "result.json")
    store.storage.write_new("result.json", b"1")
    assert lost.has_happened
    assert (store.names(), store.content("result.json")) == ({"result.json"}, b"1")


def test_a_small_new_file_whose_data_was_confirmed_to_nobody_is_written_after_all(store: NetworkStore) -> None:
    """Under another name for the time being: what was written at first may be under way yet, and stands in no way."""
    lost = store.lose_reply(Call.WRITE, "result.json")
    store.storage.write_new("result.json", b"rows")
    assert lost.has_happened
    assert (store.names(), store.content("result.json")) == ({"result.json"}, b"rows")


def test_a_writer_who_hears_nothing_does_not_take_anothers_file_for_its_own(store: NetworkStore) -> None:
    def plant() -> None:
        store.plant({"result.json": b"2"})

    planted = store.do_before(Call.RENAME, "result.json", plant)
    error = outcome(lambda: store.storage.write_new("result.json", b"1"))
    assert planted.has_happened
    assert isinstance(error, NameTakenError)
    assert (store.names(), store.content("result.json")) == ({"result.json"}, b"2")


# Publishing


def test_a_rename_that_was_done_is_known_to_be_done_though_its_reply_is_lost(store: NetworkStore) -> None:
    store.plant({"_staging/output/bucket_00000": b"rows"})
    lost = store.lose_reply(Call.RENAME, "base_5")
    store.storage.publish("_staging/output", "base_5")
    assert lost.has_happened
    assert files(store) == {"base_5/bucket_00000"}


def test_a_rename_that_the_server_never_heard_of_is_done_after_all_or_said_not_to_be(store: NetworkStore) -> None:
    store.plant({"_staging/output/bucket_00000": b"rows"})
    lost = store.lose_request(Call.RENAME, "base_5")
    error = outcome(lambda: store.storage.publish("_staging/output", "base_5"))
    assert lost.has_happened
    assert not isinstance(error, NameTakenError)
    assert files(store) == {"_staging/output/bucket_00000" if error else "base_5/bucket_00000"}


def test_a_rename_that_nobody_can_be_asked_about_is_said_to_be_unknown(store: NetworkStore) -> None:
    store.plant({"_staging/output/bucket_00000": b"rows"})
    lost = store.lose_reply(Call.RENAME, "base_5", and_all_after_it=True)
    error = outcome(lambda: store.storage.publish("_staging/output", "base_5"))
    assert lost.has_happened
    # What is copied file by file may be there in part.
    assert type(error) is (StorageError if store.storage.rules.renames else HalfPublishedError)
    assert "not known" in error.reason
    assert "base_5" in str(error)
    assert store.uri("_staging/output") == error.subject


def test_a_rename_that_takes_longer_than_the_storage_waits_is_not_said_to_be_anothers(store: NetworkStore) -> None:
    store.plant({"_staging/output/bucket_00000": b"rows"})
    late = store.do_before(Call.RENAME, "base_5", lambda: time.sleep(2 * LONGEST_WAIT_SECONDS))
    error = outcome(lambda: store.storage.publish("_staging/output", "base_5"))
    assert late.has_happened
    assert not isinstance(error, NameTakenError)
    assert error or files(store) == {"base_5/bucket_00000"}


def test_a_publisher_who_hears_nothing_does_not_take_anothers_directory_for_its_own(store: NetworkStore) -> None:
    """Its own source is gone and the target is there, but another one's."""
    store.plant({"_staging/output/bucket_00000": b"own"})

    def plant() -> None:
        store.take_away("_staging")
        store.plant({"base_5/bucket_00000": b"another's"})

    planted = store.do_before(Call.RENAME, "base_5", plant)
    lost = store.lose_reply(Call.RENAME, "base_5")
    error = outcome(lambda: store.storage.publish("_staging/output", "base_5"))
    assert planted.has_happened
    assert lost.has_happened
    assert error is not None
    assert store.content("base_5/bucket_00000") == b"another's"


@pytest.mark.promise("directories")
def test_a_target_that_appears_after_the_storage_looked_is_neither_replaced_nor_moved_into(store: NetworkStore) -> None:
    store.plant({"_staging/output/bucket_00000": b"own"})
    planted = store.do_before(Call.RENAME, "base_5", lambda: store.plant_directory("base_5"))
    error = outcome(lambda: store.storage.publish("_staging/output", "base_5"))
    assert planted.has_happened
    assert isinstance(error, NameTakenError)
    assert error.subject == store.uri("base_5")
    assert store.names() == {"_staging/", "_staging/output/", "_staging/output/bucket_00000", "base_5/"}


# What may simply be done again


@pytest.mark.parametrize("is_reply", [False, True])
def test_a_deletion_is_done_though_a_request_or_a_reply_is_lost(store: NetworkStore, is_reply: bool) -> None:
    store.plant({"delta_1_1/f": b"1", "delta_2_2/f": b"1"})
    lose = store.lose_reply if is_reply else store.lose_request
    lost = lose(Call.DELETE, "delta_1_1")
    store.storage.delete(["delta_1_1"])
    assert lost.has_happened
    assert files(store) == {"delta_2_2/f"}
    assert store.storage.list().directories == ("delta_2_2",)


@pytest.mark.promise("directories")
@pytest.mark.parametrize("is_reply", [False, True])
def test_a_directory_is_made_though_a_request_or_a_reply_is_lost(store: NetworkStore, is_reply: bool) -> None:
    lose = store.lose_reply if is_reply else store.lose_request
    lost = lose(Call.MAKE_DIRECTORY, "_run")
    store.storage.make_directory("_run/results")
    assert lost.has_happened
    assert store.names() == {"_run/", "_run/results/"}


@pytest.mark.parametrize("is_reply", [False, True])
def test_a_listing_is_complete_or_an_error_though_a_reply_is_lost(store: NetworkStore, is_reply: bool) -> None:
    store.plant({f"delta_{number}_{number}/f": b"1" for number in range(5)})
    storage, complete = store.storage, store.storage.list()
    lose = store.lose_reply if is_reply else store.lose_request
    lost = lose(Call.LIST, "delta_3_3")
    found = []
    error = outcome(lambda: found.append(storage.list()))
    assert lost.has_happened
    assert found == ([] if error else [complete])
    assert len(complete.files) == 5


def test_what_is_read_is_whole_or_an_error_though_the_connection_breaks(store: NetworkStore) -> None:
    store.plant({"bucket_00000": b"0123456789" * 100_000})
    lost = store.lose_reply(Call.READ, "bucket_00000")
    found = []
    error = outcome(lambda: found.append(store.storage.read("bucket_00000")))
    assert lost.has_happened
    assert error or found == [b"0123456789" * 100_000]


READERS: dict[str, Callable[[Storage, str], bytes]] = {
    "read": lambda storage, path: storage.read(path),
    "all at once": lambda storage, path: whole(storage, path, -1),
    "piece by piece": lambda storage, path: whole(storage, path, 100_000),
    "after a seek": lambda storage, path: LARGE[:7] + whole(storage, path, 1_000_000, start=7),
}


def whole(storage: Storage, path: str, piece_bytes: int, start: int = 0) -> bytes:
    with storage.open_input(path) as file:
        file.seek(start)
        return b"".join(iter(lambda: file.read(piece_bytes), b""))


@pytest.mark.parametrize("reader", READERS)
def test_what_came_of_a_files_data_before_the_connection_broke_is_not_taken_for_all_of_it(
    store: NetworkStore, reader: str
) -> None:
    store.plant({"bucket_00000": LARGE})
    cut = store.cut_read("bucket_00000")
    found = []
    error = outcome(lambda: found.append(READERS[reader](store.storage, "bucket_00000")))
    assert cut.has_happened
    assert error or found == [LARGE]


@pytest.mark.promise("short_replies")
@pytest.mark.parametrize("reader", ["all at once", "piece by piece"])
def test_a_file_that_became_shorter_after_it_was_opened_is_read_as_it_was_or_not_at_all(
    store: NetworkStore, reader: str
) -> None:
    """The reply is whole, but shorter than what was asked for."""
    store.plant({"bucket_00000": LARGE})
    found = []

    def read() -> None:
        with store.storage.open_input("bucket_00000") as file:
            store.plant({"bucket_00000": LARGE[:100_001]})
            pieces = iter(lambda: file.read(-1 if reader == "all at once" else 100_000), b"")
            found.append(b"".join(pieces))

    error = outcome(read)
    assert error or found == [LARGE]
