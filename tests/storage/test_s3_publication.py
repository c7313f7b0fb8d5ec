"""Publishing on S3, object by object."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_acid.exceptions import HalfPublishedError, NameTakenError, OwnershipLostError, StorageError
from airflow_provider_acid.storages.s3 import writing as s3_writing
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.s3_server import S3Server
from tests.storage.s3_faults import is_completion, is_part, lost_answers, signed_long_ago, watched
from tests.storage.s3_site import LARGE, TABLE, Site, staged_result, temporary


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3)


class Reader:
    """Lists at every step, as who ignores a compaction's transaction does."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.seen: list[list[str]] = []

    def look(self, key: str) -> None:
        self.seen.append([name for name in self._site.names() if name.startswith("base_")])


def test_a_reader_who_lists_at_every_step_sees_one_data_object_first_and_no_base_of_hidden_files_only(
    site: Site,
) -> None:
    staged_result(site, 1)
    reader = Reader(site)
    site.storage(reader.look).publish("_staging/output", "base_5")
    assert len(reader.seen) == 3
    assert all("base_5/bucket_00000" in names for names in reader.seen)
    assert site.names() == ["base_5/_metadata_acid", "base_5/_orc_acid_version", "base_5/bucket_00000"]
    assert site.get("base_5/bucket_00000") == b"rows 0"


def test_several_data_objects_come_one_after_the_other_and_hidden_files_after_all_of_them(site: Site) -> None:
    staged_result(site, 5)
    reader = Reader(site)
    site.storage(reader.look).publish("_staging/output", "base_5")
    data = [sum("bucket_" in name for name in names) for names in reader.seen]
    hidden = [sum("/_" in name for name in names) for names in reader.seen]
    assert data[0] == 1
    assert max(data) == 5
    assert all(count == 5 for count, others in zip(data, hidden, strict=True) if others)
    assert len(site.names()) == 7


@pytest.mark.parametrize("there", ["base_5/anything", "base_5/", "base_5"])
def test_publishing_under_a_name_with_any_object_fails_and_changes_nothing(site: Site, there: str) -> None:
    staged_result(site, 2)
    site.put(there, b"")
    before = site.names()
    with pytest.raises(NameTakenError, match=f"{TABLE}/base_5: exists already"):
        site.storage().publish("_staging/output", "base_5")
    assert site.names() == before


def test_of_two_who_publish_the_same_directory_one_wins_and_nothing_is_mixed(site: Site) -> None:
    for mine in ("a", "b"):
        for number in range(4):
            site.put(f"_{mine}/bucket_{number:05d}", mine.encode())
    start = threading.Barrier(2)
    outcomes: dict[str, bool] = {}

    def publish(mine: str) -> None:
        storage = site.storage()
        start.wait()
        try:
            storage.publish(f"_{mine}", "base_5")
        except NameTakenError:
            outcomes[mine] = False
        else:
            outcomes[mine] = True

    threads = [threading.Thread(target=publish, args=(mine,)) for mine in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = next(mine for mine, won in outcomes.items() if won)
    assert sorted(outcomes.values()) == [False, True]
    assert {site.get(name) for name in site.names() if name.startswith("base_5/")} == {winner.encode()}
    assert sum(name.startswith("base_5/") for name in site.names()) == 4
    assert sum(name.startswith("_") for name in site.names()) == 4


def test_what_cannot_be_published_wholly_is_taken_back(site: Site) -> None:
    staged_result(site, 3)
    before = site.names()

    def take(key: str) -> None:
        if key.endswith("bucket_00000"):
            site.put("base_5/bucket_00002", b"somebody else's")

    with pytest.raises(NameTakenError, match="bucket_00002"):
        site.storage(take).publish("_staging/output", "base_5")
    assert site.names() == [*before, "base_5/bucket_00002"]
    assert site.get("base_5/bucket_00002") == b"somebody else's"
    assert site.uploads() == []


def test_who_slept_while_his_staging_directory_was_removed_publishes_nothing_more(site: Site) -> None:
    staged_result(site, 3)
    successor = site.storage()

    def take_over(key: str) -> None:
        if key.endswith("bucket_00000"):
            successor.delete(["_staging"])
            successor.delete(["base_5"])

    with pytest.raises(HalfPublishedError, match="was removed or replaced while .* was taken over meanwhile; who did"):
        site.storage(take_over).publish("_staging/output", "base_5")
    assert (site.names(), site.uploads()) == ([], [])


def test_a_source_that_goes_after_its_parts_were_copied_is_not_published(site: Site) -> None:
    staged_result(site, 1)
    storage = site.storage()
    storage.write_new("_probed", b"")

    def remove(method: str, url: str) -> None:
        if is_part(method, url):
            site.client.delete_object(Bucket=site.bucket, Key=f"{TABLE}/_staging/output/bucket_00000")

    with watched(after=remove), pytest.raises(StorageError, match="was removed or replaced"):
        storage.publish("_staging/output", "base_5")
    assert not any(name.startswith("base_5") for name in site.names())
    assert site.uploads() == []


@pytest.mark.needs_minio
@pytest.mark.parametrize("rows", [b"rows", b""], ids=["data", "empty"])
def test_who_slept_between_the_last_look_and_the_publication_publishes_nothing(site: Site, rows: bytes) -> None:
    site.put("_staging/output/bucket_00000", rows)
    storage = site.storage()
    storage.write_new("_probed", b"")
    with signed_long_ago(seconds=60), pytest.raises(StorageError, match="Request has expired"):
        storage.publish("_staging/output", "base_5")
    assert not any(name.startswith("base_5") for name in site.names())
    assert site.uploads() == []


@pytest.mark.needs_minio
def test_who_was_only_slow_looks_again_and_publishes(site: Site) -> None:
    staged_result(site, 1)
    storage = site.storage()
    storage.write_new("_probed", b"")
    with signed_long_ago(seconds=60, times=1):
        storage.publish("_staging/output", "base_5")
    assert site.get("base_5/bucket_00000") == b"rows 0"


@pytest.mark.parametrize("times", [1, 100])
def test_a_lost_answer_to_a_publication_is_found_out_to_have_been_a_success(site: Site, times: int) -> None:
    staged_result(site, 2)
    storage = site.storage()
    storage.write_new("_probed", b"")
    with lost_answers(is_completion, times):
        storage.publish("_staging/output", "base_5")
    assert [name for name in site.names() if not name.startswith("_")] == [
        "base_5/_metadata_acid",
        "base_5/_orc_acid_version",
        "base_5/bucket_00000",
        "base_5/bucket_00001",
    ]


def test_an_object_of_many_parts_is_copied_whole(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_writing, "COPIED_PART_BYTES", 5 << 20)
    site.put("_staging/output/bucket_00000", LARGE)
    site.put("_staging/output/_empty", b"")
    site.storage().publish("_staging/output", "base_5")
    assert site.get("base_5/bucket_00000") == LARGE
    assert site.get("base_5/_empty") == b""


def test_files_are_published_from_wherever_they_lie_and_stay_there(site: Site) -> None:
    site.put("_staging/attempts/bucket_00000.a1", b"rows 0")
    site.put("_staging/attempts/bucket_00001.b2", b"rows 1")
    site.put("_staging/attempts/bucket_00001.dead", b"half")
    names = ("bucket_00000.a1", "bucket_00001.b2")
    files = {f"_staging/attempts/{name}": f"base_5/{name.partition('.')[0]}" for name in names}
    staged = site.names()
    site.storage().publish_files(files, lambda: None)
    assert site.names() == [*staged, "base_5/bucket_00000", "base_5/bucket_00001"]
    assert site.get("base_5/bucket_00001") == b"rows 1"
    with pytest.raises(NameTakenError):
        site.storage().publish_files(files, lambda: None)
    with pytest.raises(StorageError, match="attempts/missing: does not exist"):
        site.storage().publish_files({"_staging/attempts/missing": "base_6/bucket_00000"}, lambda: None)


def test_whose_right_to_publish_is_lost_between_two_copies_takes_back_those_that_are_there(site: Site) -> None:
    files = {f"_staging/attempts/{number}": f"base_5/bucket_{number:05d}" for number in range(3)}
    for source in files:
        site.put(source, b"rows")
    staged = site.names()
    seen: list[str] = []

    def check() -> None:
        if seen:
            raise OwnershipLostError("transaction 7", "was aborted", "start the attempt again")

    with pytest.raises(OwnershipLostError, match="transaction 7"):
        site.storage(seen.append).publish_files(files, check)
    assert [key.rpartition("/")[2] for key in seen] == ["bucket_00000"]
    assert site.names() == staged
    assert site.uploads() == []


@pytest.mark.needs_minio
def test_requests_are_signed_with_temporary_credentials_too(site: Site) -> None:
    staged_result(site, 1)
    storage = S3Storage(site.location, site.options, temporary(site, "s3:*"))
    storage.publish("_staging/output", "base_5")
    storage.write_new("anchor", b"")
    assert storage.delete_while_exists("anchor", ["base_5"])
    assert site.names() == ["anchor"]
