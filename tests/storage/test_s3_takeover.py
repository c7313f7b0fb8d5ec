"""Who sleeps and who races on a real S3 server: nothing appears twice, by half, or late, and nothing else goes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from botocore.exceptions import ClientError

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish import by_copy
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, write_journal
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.merge.app.partition_job import carry_out
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.plan.exchange import ATTEMPTS_DIRECTORY, JOURNAL_FILE, PLAN_FILE, RESULT_FILE
from airflow_provider_acid.storages.s3 import signed as s3_signed
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.compaction_chain import PATIENCE_SECONDS, Chain
from tests.harness.metastore_server import MetastoreServer
from tests.harness.plain_job import merge_bucket
from tests.harness.s3_server import S3Server
from tests.harness.thrift_admin import ThriftAdmin
from tests.storage.remote_tables import RemotePlace, RemoteTable
from tests.storage.s3_faults import is_completion, watched
from tests.storage.s3_site import TABLE, Site, temporary
from tests.storage.s3_tables import SEVERAL_FILES, ListeningStorages, chain_of, end_it, place_on, table_on
from tests.unit.merge.acid_files import Partition, insert


@pytest.fixture
def server(hive_4_metastore_on_postgres: MetastoreServer) -> MetastoreServer:
    """A metastore of Hive 4, where the commit publishes."""
    return hive_4_metastore_on_postgres


@pytest.fixture
def place(s3: S3Server) -> RemotePlace:
    """A bucket for a warehouse."""
    return place_on(s3)


@pytest.mark.parametrize("step", [Step.VERIFIED, Step.FENCED, Step.JOURNALLED])
def test_who_wakes_up_after_another_took_over_publishes_nothing(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, step: Step
) -> None:
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity)
    successors: list[Outcome] = []

    def sleep(passed: Step, _: Entity) -> None:
        if passed is step and not successors:
            successors.append(chain.next_try().compact().outcome)

    asleep = chain.compact(sleep).outcome
    check_only_the_successors(table, asleep, successors)


@pytest.mark.parametrize("copies", [1, 2])
def test_who_wakes_up_between_two_copies_makes_no_more_and_deletes_none(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, copies: int
) -> None:
    table = table_on(server, place, tmp_path, SEVERAL_FILES)
    [entity] = table.entities
    chain = chain_of(table, entity)
    successors: list[Outcome] = []
    made = count(1)

    def sleep(key: str) -> None:
        if next(made) == copies:
            successors.append(chain.next_try().compact().outcome)

    storages = ListeningStorages(storages=table.place.storages, on_copy=sleep)
    asleep = replace(chain, settings=replace(chain.settings, storages=storages)).compact().outcome
    check_only_the_successors(table, asleep, successors)


def test_a_copy_that_was_under_way_when_another_took_over_is_seen_and_taken_back(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appears in the last moment in which it can."""
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity)
    successors: list[Outcome] = []
    under_way, may_arrive, arrived = threading.Event(), threading.Event(), threading.Event()
    waited: list[float] = []

    def hold(method: str, url: str) -> None:
        if is_completion(method, url) and not under_way.is_set():
            under_way.set()
            assert may_arrive.wait(PATIENCE_SECONDS)

    def tell(method: str, url: str) -> None:
        if is_completion(method, url) and may_arrive.is_set():
            arrived.set()

    def arrive(seconds: float) -> None:
        waited.append(seconds)
        may_arrive.set()
        assert arrived.wait(PATIENCE_SECONDS)

    def take_over() -> None:
        assert under_way.wait(PATIENCE_SECONDS)
        successors.append(chain.next_try().compact().outcome)

    monkeypatch.setattr(by_copy, "sleep", arrive)
    monkeypatch.setattr(s3_signed, "SIGNED_SECONDS", 600)
    with watched(before=hold, after=tell), ThreadPoolExecutor(1) as thread:
        successor = thread.submit(take_over)
        asleep = chain.compact().outcome
        successor.result()
    assert waited == [s3_signed.LATE_SECONDS]
    check_only_the_successors(table, asleep, successors)


def test_who_wakes_up_while_another_waits_leaves_it_the_journal_and_the_part_that_goes_by_it(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He finds no sources, so that he neither makes the rest nor takes back what is there."""
    table = table_on(server, place, tmp_path, SEVERAL_FILES)
    [entity] = table.entities
    chain = chain_of(table, entity)
    awake, asleep_again = threading.Event(), threading.Event()
    successors: list[Outcome] = []
    left: list[list[str]] = []

    def take_over() -> None:
        successors.append(chain.next_try().compact().outcome)

    def wait(seconds: float) -> None:
        awake.set()
        assert asleep_again.wait(PATIENCE_SECONDS)
        storage = place.storages.open(table.table.uri)
        names = [file.path for file in storage.list().files]
        left.append([name for name in names if JOURNAL_FILE in name or "_v" in name.partition("/")[0]])

    monkeypatch.setattr(by_copy, "sleep", wait)
    made = count(1)
    with ThreadPoolExecutor(1) as thread:

        def sleep(key: str) -> None:
            if next(made) == 1:
                thread.submit(take_over)
                assert awake.wait(PATIENCE_SECONDS)

        storages = ListeningStorages(storages=table.place.storages, on_copy=sleep)
        asleep = replace(chain, settings=replace(chain.settings, storages=storages)).compact().outcome
        asleep_again.set()
    [[journal, part]] = left
    assert journal.startswith("_acid_compaction_")
    assert "/bucket_" in part
    assert "was taken over meanwhile; who did that takes back the rest" in asleep.message
    check_only_the_successors(table, asleep, successors)


def test_an_upload_that_the_store_is_still_completing_makes_no_file_after_a_takeover(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, token = Site(s3), new_token()
    staging, target = staging_name(token), "base_0000005_v0000007"
    journal = PublicationJournal((target,), 7, None, (f"{target}/bucket_00000",))
    storage = site.storage()
    write_journal(storage, staging, journal)
    for name in (PLAN_FILE, RESULT_FILE):
        storage.write_new(f"{staging}/{name}", b"{}")
    begun: list[tuple[str, str, str]] = []

    def begin(path: str) -> None:
        key = f"{TABLE}/{path}"
        upload = site.client.create_multipart_upload(Bucket=site.bucket, Key=key)["UploadId"]
        part = site.client.upload_part(Bucket=site.bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"rows")
        begun.append((key, upload, part["ETag"]))

    def complete(key: str, upload: str, etag: str) -> None:
        parts: Any = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        site.client.complete_multipart_upload(Bucket=site.bucket, Key=key, UploadId=upload, MultipartUpload=parts)

    def wait(seconds: float) -> None:
        for name in ("bucket_00000", "bucket_00000", "_metadata_acid", "bucket_00000_of_somebody_else"):
            begin(f"{target}/{name}")

    monkeypatch.setattr(by_copy, "sleep", wait)
    assert publisher_on(storage).take_over(token) == staging
    *ended, others = begun
    for upload in ended:
        with pytest.raises(ClientError, match="NoSuchUpload"):
            complete(*upload)
    complete(*others)
    assert [name for name in site.names() if name.startswith(target)] == [f"{target}/bucket_00000_of_somebody_else"]


@pytest.mark.needs_minio
def test_who_may_not_list_uploads_does_not_take_over(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    site, token = Site(s3), new_token()
    staging = staging_name(token)
    write_journal(site.storage(), staging, PublicationJournal(("base_5",), 7, None, ("base_5/bucket_00000",)))
    site.put(f"{staging}/{RESULT_FILE}")
    monkeypatch.setattr(by_copy, "sleep", lambda seconds: None)
    rights = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
    storage = S3Storage(site.location, site.options, temporary(site, *rights))
    with pytest.raises(
        StorageError, match="open uploads cannot be ended .*AccessDenied.*s3:ListBucketMultipartUploads"
    ):
        publisher_on(storage).take_over(token)
    assert site.names() == [f"{staging}/{JOURNAL_FILE}", f"{staging}/{RESULT_FILE}"]


def check_only_the_successors(table: RemoteTable, asleep: Outcome, successors: list[Outcome]) -> None:
    """Of two results of one partition only one is there, for all readers, and after a cleaning nothing else."""
    [successor] = successors
    assert (asleep.state, successor.state) == (OutcomeState.FAILED, OutcomeState.COMPACTED), (asleep, successor)
    [entity] = table.entities
    results = [name for name in table.names(entity) if "_v" in name]
    assert results == sorted(successor.targets)
    assert table.read() == table.read(check_visibility=False) == table.expected
    end_it(table, chain_of(table, entity), ends={OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE})


def test_a_driver_that_wakes_up_after_another_took_over_seals_nothing(place: RemotePlace, tmp_path: Path) -> None:
    """Its tasks may still write, but what they wrote counts for nobody."""
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 7)])
    uri = f"{place.uri}/t"
    place.put(partition.path, uri)
    storage = place.storages.open(uri)
    token = new_token()
    plan = replace(partition.plan(), location=uri, staging=staging_name(token), attempt=token)
    open_staging(storage, plan)

    def merge_and_sleep() -> list[Merged]:
        merged = [
            written for bucket in plan.buckets for written in merge_bucket(storage, plan, bucket, lambda done: None)
        ]
        assert publisher_on(storage).take_over(token) == plan.staging
        return merged

    result = carry_out(place.storages, plan, merge_and_sleep)
    assert "plan.json: does not exist, its attempt was given up" in str(result.error)
    assert not storage.exists(f"{plan.staging}/{RESULT_FILE}")
    assert not storage.exists(f"{plan.staging}/{ATTEMPTS_DIRECTORY}")


def test_a_cleaner_that_slept_while_the_table_was_made_anew_deletes_nothing_of_it(
    server: MetastoreServer, place: RemotePlace, s3: S3Server, tmp_path: Path
) -> None:
    """DROP removes all objects of the table; a new one's first deltas have the names of the old one's."""
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity)
    assert chain.compact().outcome.state is OutcomeState.COMPACTED
    client, (bucket, _, prefix) = s3.client(), table.table.uri.removeprefix("s3a://").partition("/")
    made_anew: dict[str, bytes] = {}

    def keys() -> list[str]:
        return [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")["Contents"]]

    def drop_and_create(step: Step, _: Entity) -> None:
        if step is Step.CLEANING_DECIDED:
            for key in keys():
                if "/_acid" not in key:
                    made_anew[key] = client.get_object(Bucket=bucket, Key=key)["Body"].read()
                client.delete_object(Bucket=bucket, Key=key)
            for key, data in made_anew.items():
                client.put_object(Bucket=bucket, Key=key, Body=data)

    [cleaning] = chain.clean(drop_and_create)
    assert cleaning.state is CleaningState.WAITING
    assert "was dropped and made again" in cleaning.message
    assert sorted(keys()) == sorted(made_anew)
    assert any("/delta_" in key for key in made_anew)


def test_a_name_that_somebody_else_takes_first_stays_his(
    server: MetastoreServer, place: RemotePlace, s3: S3Server, tmp_path: Path
) -> None:
    """Between the look at the name and the request by which our file would appear."""
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    taken: list[str] = []

    def take_it(method: str, url: str) -> None:
        path = urlsplit(url).path
        if is_completion(method, url) and "/base_" in path and not taken:
            taken.append(unquote(path))
            bucket, _, key = taken[0].lstrip("/").partition("/")
            s3.client().put_object(Bucket=bucket, Key=key, Body=b"somebody else's")

    with watched(before=take_it):
        outcome = chain_of(table, entity).compact().outcome
    assert outcome.state is OutcomeState.FAILED
    assert "exists already" in outcome.message
    directory, _, name = taken[0].removeprefix("/").rpartition("/")
    target = directory.rpartition("/")[2]
    storage = place.storages.open(table.table.uri)
    assert [file.path for file in storage.list(target).files] == [name]
    assert storage.read(f"{target}/{name}") == b"somebody else's"
    # The journal stays where anything has the name: this process does not know whose it is.
    [staging] = [path for path in table.names(entity) if path.startswith("_")]
    assert JOURNAL_FILE in [file.path for file in storage.list(staging).files]


def test_of_two_that_compact_at_once_one_does(server: MetastoreServer, place: RemotePlace, tmp_path: Path) -> None:
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity)
    start = threading.Barrier(2)

    def compact(one: Chain) -> Outcome:
        start.wait()
        return one.compact().outcome

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(compact, [chain, chain.another_run()]))
    ends = {outcome.state for outcome in outcomes}
    assert OutcomeState.COMPACTED in ends
    assert ends <= {OutcomeState.COMPACTED, OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE}, outcomes
    end_it(table, chain, ends={OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE})


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"minor_lock_wait_seconds": 1.0}, OutcomeState.REFUSED, "the EXCLUSIVE lock was not granted within 1 s"),
        ({"minor_publish_lock": False}, OutcomeState.REFUSED, "and minor_publish_lock is off"),
        ({"readers_honour_visibility": True}, OutcomeState.COMPACTED, ""),
    ],
    ids=["lock not granted", "lock not allowed", "no lock needed"],
)
def test_several_files_take_the_lock_unless_all_readers_look_at_transactions(
    server: MetastoreServer,
    place: RemotePlace,
    tmp_path: Path,
    changes: dict[str, Any],
    state: OutcomeState,
    words: str,
) -> None:
    table = table_on(server, place, tmp_path, SEVERAL_FILES)
    [entity] = table.entities
    chain = chain_of(table, entity)
    chain = replace(chain, settings=replace(chain.settings, **changes))
    before = table.names(entity)
    with ThriftAdmin(server.host, server.port) as admin:
        [reader] = admin.open_transactions()
        admin.lock_as_reader(reader, entity.database, entity.table)
        outcome = chain.compact().outcome
        admin.abort(reader)
    assert outcome.state is state, outcome
    assert words in outcome.message
    if state is OutcomeState.REFUSED:
        assert table.names(entity) == before
    assert table.read() == table.expected
