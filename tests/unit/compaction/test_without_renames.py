"""Where there are no renames: what is published, who is kept from it, what is waited for, and what is deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.publish import by_copy
from airflow_provider_acid.compaction.publish.fence import verify_output
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, read_journal
from airflow_provider_acid.compaction.publish.publisher import publisher_on, remove_discards
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import OwnershipLostError, StorageError, VerificationError
from airflow_provider_acid.merge.app.partition_job import carry_out
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.plan.exchange import JOURNAL_FILE, PLAN_FILE, RESULT_FILE
from airflow_provider_acid.plan.plan import CompactionPlan, OutputKind
from airflow_provider_acid.plan.result import CompactionResult, OutputFile
from airflow_provider_acid.storages.s3.signed import AHEAD_SECONDS, LATE_SECONDS, SIGNED_SECONDS
from tests.harness.plain_job import merge_bucket, run_plainly
from tests.unit.compaction.copying_storage import CopyingStorage, CopyingStorages
from tests.unit.merge.acid_files import Partition, insert

TOKEN = "0123456789abcdef"
STAGING = staging_name(TOKEN)


@dataclass
class Made:
    """A result that is not published yet."""

    storage: CopyingStorage
    plan: CompactionPlan
    result: CompactionResult

    def names(self) -> list[str]:
        return [file.path for file in self.storage.list().files]


def planned(folder: Path) -> tuple[CopyingStorage, CompactionPlan]:
    """Two buckets of one base."""
    partition = Partition(folder / "t")
    for bucket in (0, 1):
        partition.write("delta_0000001_0000001", [insert(1, 0, bucket, bucket=bucket)], bucket=bucket)
    plan = replace(partition.plan(), staging=STAGING, attempt=TOKEN, directories=("delta_0000001_0000001",))
    storage = CopyingStorage(str(partition.path))
    open_staging(storage, plan)
    return storage, plan


@pytest.fixture
def made(tmp_path: Path) -> Made:
    storage, plan = planned(tmp_path)
    result = run_plainly(plan, CopyingStorages())
    assert result.error is None
    return Made(storage, plan, result)


@dataclass
class Transaction:
    txn_id: int = 7
    exclusive_lock_id: int | None = 8
    is_lost: bool = False

    def check(self) -> None:
        if self.is_lost:
            raise OwnershipLostError(f"transaction {self.txn_id}", "was aborted", "-")


@dataclass
class Active:
    plan: CompactionPlan
    transaction: Transaction
    entity: object = None


def publish(
    made: Made, on_step: Callable[..., None] = lambda step, entity: None, transaction: Transaction | None = None
) -> None:
    active = cast(Any, Active(made.plan, transaction or Transaction()))
    publisher_on(made.storage).publish(active, made.result, on_step)


def test_files_stay_where_the_tasks_wrote_them_and_are_published_from_there(made: Made) -> None:
    verify_output(made.storage, made.plan, made.result)
    [target] = made.plan.targets
    staged = made.names()
    assert not any("output/rows/bucket" in name for name in staged)
    steps: list[Step] = []
    publish(made, lambda step, entity: steps.append(step))
    assert steps == [Step.JOURNALLED]
    published = [f"{target}/{name}" for name in ("_metadata_acid", "_orc_acid_version", "bucket_00000", "bucket_00001")]
    assert sorted(set(made.names()) - set(staged)) == sorted([f"{STAGING}/{JOURNAL_FILE}", *published])
    journal = read_journal(made.storage, STAGING)
    assert journal == PublicationJournal((target,), 7, 8, tuple(published[2:]))


def test_nothing_is_copied_for_a_transaction_that_is_lost(made: Made) -> None:
    with pytest.raises(OwnershipLostError):
        publish(made, transaction=Transaction(is_lost=True))
    assert not any(name.startswith(made.plan.targets) for name in made.names())


def test_only_several_files_can_be_seen_in_part(made: Made) -> None:
    publication = publisher_on(made.storage)
    assert publication.shows_parts(made.result)
    assert not publication.shows_parts(replace(made.result, files=made.result.files[:1]))
    empty = replace(made.result.files[1], name=None, attempt=None)
    assert not publication.shows_parts(replace(made.result, files=(made.result.files[0], empty)))
    # Two directories, each of them whole at once.
    other = replace(made.result.files[1], output=OutputKind.DELETES)
    assert not publication.shows_parts(replace(made.result, files=(made.result.files[0], other)))


def file(**changes: Any) -> Callable[[CompactionResult], CompactionResult]:
    """Changes the first file of a report."""

    def changed(result: CompactionResult) -> CompactionResult:
        first, *others = result.files
        return replace(result, files=(replace(first, **changes), *others))

    return changed


def twice(result: CompactionResult) -> CompactionResult:
    first, second = result.files
    return replace(result, files=(first, replace(second, attempt=first.attempt, size_bytes=first.size_bytes)))


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (file(size_bytes=1), "the job reported attempts/bucket_00000"),
        (file(attempt=f"{STAGING}/attempts/other"), "the job reported attempts/bucket_00001"),
        (file(attempt=f"{STAGING}/plan.json"), "the job reported attempts/bucket_00001"),
        (file(attempt="delta_0000001_0000001/bucket_00000"), "the job reported attempts/bucket_00001"),
        (file(attempt=None), "the job reported  ("),
        (file(name="sub/bucket_00000"), "sub/bucket_00000, under which nothing can be published"),
        (file(name="_bucket_00000"), "_bucket_00000, under which nothing can be published"),
        (file(name="bucket_00001"), "bucket_00001, bucket_00001, under which nothing"),
        (twice, "is reported to hold one file in two places"),
    ],
)
def test_a_report_that_is_not_true_is_refused(
    made: Made, lie: Callable[[CompactionResult], CompactionResult], reason: str
) -> None:
    with pytest.raises(VerificationError) as refused:
        verify_output(made.storage, made.plan, lie(made.result))
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", ["output/rows/_orc_acid_version", "output/rows/_metadata_acid"])
def test_a_result_without_its_marker_files_is_refused(made: Made, name: str) -> None:
    made.storage.delete([f"{STAGING}/{name}"])
    with pytest.raises(VerificationError, match="lacks the marker files"):
        verify_output(made.storage, made.plan, made.result)


def test_what_repeated_tasks_left_is_not_published(made: Made) -> None:
    made.storage.write_new(f"{STAGING}/attempts/bucket_00000.ffff", b"half")
    verify_output(made.storage, made.plan, made.result)
    publish(made)
    assert len([name for name in made.names() if name.startswith(made.plan.targets[0])]) == 4


def test_after_a_takeover_there_is_nothing_to_publish(made: Made) -> None:
    assert publisher_on(made.storage).take_over(TOKEN) == STAGING
    assert made.storage.deleted[0] == f"{STAGING}/{PLAN_FILE}"
    with pytest.raises(StorageError, match="does not exist"):
        publish(made)
    assert not any(name.startswith("base_") for name in made.names())


@pytest.mark.parametrize("published", [False, True])
def test_a_takeover_waits_where_publishing_had_begun(
    made: Made, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        assert not any("/attempts/" in name or "/output/" in name for name in made.names())
        assert f"{STAGING}/{JOURNAL_FILE}" in made.names()

    monkeypatch.setattr(by_copy, "sleep", sleep)
    if published:
        publish(made)
    staging = publisher_on(made.storage)
    assert staging.take_over(TOKEN) == (STAGING)
    assert waited == ([LATE_SECONDS] if published else [])
    assert LATE_SECONDS >= SIGNED_SECONDS + AHEAD_SECONDS
    assert (read_journal(made.storage, STAGING) is not None) == published
    assert staging.take_over(TOKEN) == (STAGING if published else None)
    assert waited == ([LATE_SECONDS] if published else [])


def test_after_its_wait_a_takeover_ends_the_uploads_to_all_that_the_journal_names(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may take minutes for what it took in time."""
    publish(made)
    monkeypatch.setattr(by_copy, "sleep", lambda seconds: made.storage.ended.append("waited"))
    publisher_on(made.storage).take_over(TOKEN)
    [target] = made.plan.targets
    names = ("bucket_00000", "bucket_00001", "_orc_acid_version", "_metadata_acid")
    assert made.storage.ended[0] == "waited"
    assert sorted(made.storage.ended[1:]) == sorted(f"{target}/{name}" for name in names)


def test_a_takeover_does_not_go_on_without_a_journal_that_it_can_read(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(made)
    monkeypatch.setattr(by_copy, "sleep", lambda seconds: None)
    journal = f"{STAGING}/{JOURNAL_FILE}"
    made.storage.delete([journal])
    made.storage.write_new(journal, b"{}")
    with pytest.raises(StorageError, match="cannot be read, so that nobody knows"):
        publisher_on(made.storage).take_over(TOKEN)
    assert f"{STAGING}/{RESULT_FILE}" in made.names()
    # Two take over at once: the other was faster.
    monkeypatch.setattr(by_copy, "sleep", lambda seconds: made.storage.delete([STAGING]))
    assert publisher_on(made.storage).take_over(TOKEN) == STAGING
    assert made.storage.ended == []


def test_who_gives_up_leaves_the_journal_while_anything_of_his_result_is_there(made: Made) -> None:
    publish(made)
    [target] = made.plan.targets
    made.storage.delete([f"{target}/bucket_00001"])
    before = made.names()
    publisher_on(made.storage).give_up(made.plan)
    assert made.names() == before
    made.storage.delete([target])
    publisher_on(made.storage).give_up(made.plan)
    assert not any(name.startswith(STAGING) for name in made.names())


def test_one_that_died_while_it_waited_is_followed_by_one_that_waits(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(made)

    def die(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(by_copy, "sleep", die)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            publisher_on(made.storage).take_over(TOKEN)


def test_a_removal_begins_with_the_plan_and_ends_with_what_tells_of_it(made: Made) -> None:
    publish(made)
    publisher_on(made.storage).remove(STAGING)
    assert made.storage.deleted[0] == f"{STAGING}/{PLAN_FILE}"
    assert made.storage.deleted[-1] == STAGING
    assert not {f"{STAGING}/{JOURNAL_FILE}", f"{STAGING}/{RESULT_FILE}"}.intersection(made.storage.deleted)
    assert not any(name.startswith(STAGING) for name in made.names())
    made.storage.deleted.clear()
    [target] = made.plan.targets
    publisher_on(made.storage).remove(target)
    assert made.storage.deleted == [f"{target}/bucket_00000", f"{target}/bucket_00001", target]


@pytest.mark.parametrize(
    ("files", "is_half"),
    [
        ((), False),
        (("base_1/1",), True),
        (("base_1/1", "base_1/2"), True),
        (("base_1/1", "delta_1_1/1"), True),
        (("base_1/1", "base_1/2", "delta_1_1/1"), False),
        (("base_1/_marker", "delta_1_1/_marker"), True),
        (("other/1",), False),
    ],
)
def test_half_is_what_lacks_one_of_the_journals_files(files: tuple[str, ...], is_half: bool) -> None:
    journal = PublicationJournal(("base_1", "delta_1_1"), 7, None, ("base_1/1", "base_1/2", "delta_1_1/1"))
    directories = sorted({path.partition("/")[0] for path in files})
    listing = Listing(tuple(FileEntry(path, 1) for path in files), tuple(directories))
    assert journal.is_half(listing) is is_half
    assert PublicationJournal.from_json(journal.to_json()) == journal


def test_a_journal_of_renames_names_no_files() -> None:
    journal = PublicationJournal(("base_1", "delta_1_1"), 7, 8)
    assert PublicationJournal.from_json(journal.to_json()) == journal
    assert [
        journal.is_half(Listing((), names)) for names in ((), ("base_1",), ("delta_1_1",), ("base_1", "delta_1_1"))
    ] == [
        False,
        True,
        True,
        False,
    ]


def test_a_driver_that_wakes_up_after_a_takeover_seals_nothing(tmp_path: Path) -> None:
    storage, plan = planned(tmp_path)

    def merge_and_sleep() -> list[Merged]:
        merged = [one for bucket in plan.buckets for one in merge_bucket(storage, plan, bucket, lambda done: None)]
        publisher_on(storage).take_over(TOKEN)
        return merged

    result = carry_out(CopyingStorages(), plan, merge_and_sleep)
    assert "plan.json: does not exist, its attempt was given up" in str(result.error)
    assert not storage.exists(f"{STAGING}/{RESULT_FILE}")


def test_a_driver_begins_nothing_without_a_plan(tmp_path: Path) -> None:
    storage, plan = planned(tmp_path)
    publisher_on(storage).remove(STAGING)
    result = carry_out(CopyingStorages(), plan, lambda: pytest.fail("merged all the same"))
    assert "plan.json: does not exist, its attempt was given up" in str(result.error)


def test_a_second_run_of_the_same_attempt_is_refused(made: Made) -> None:
    result = run_plainly(made.plan, CopyingStorages())
    assert "holds the output of another run of the same attempt" in str(result.error)


def test_what_a_cleaner_deletes_goes_one_after_the_other_while_its_anchor_is_there(made: Made) -> None:
    with publisher_on(made.storage).discard() as discard:
        discard.take(["delta_0000001_0000001", "missing"], lambda: None)
        assert made.storage.deleted == ["delta_0000001_0000001"]
        assert f"{discard.name}/anchor" in made.names()
    assert not any("_acid_cleaning_" in name or "delta_" in name for name in made.names())


def test_a_cleaner_without_its_anchor_deletes_nothing(made: Made) -> None:
    with publisher_on(made.storage).discard() as discard, publisher_on(made.storage).discard() as other:
        assert remove_discards(made.storage, made.storage.list(), other) == (discard.name,)
        with pytest.raises(OwnershipLostError, match="was dropped and made again, or is cleaned by somebody else"):
            discard.take(["delta_0000001_0000001"], lambda: None)
        assert made.storage.exists("delta_0000001_0000001")
        other.take(["delta_0000001_0000001"], lambda: None)
    assert not made.storage.exists("delta_0000001_0000001")


def test_nothing_is_adopted(made: Made) -> None:
    staging = publisher_on(made.storage)
    assert staging.finished_output(STAGING) is None


def test_the_report_names_where_each_file_lies(made: Made) -> None:
    assert all(isinstance(one, OutputFile) and one.attempt for one in made.result.files)
    again = CompactionResult.from_json(made.result.to_json())
    assert again == made.result
    assert {one.output for one in again.files} == {OutputKind.ROWS}


def test_a_cleaner_deletes_nothing_more_once_its_lock_is_lost(made: Made) -> None:
    def lost() -> None:
        raise OwnershipLostError("transaction 7", "was aborted", "look again")

    with publisher_on(made.storage).discard() as discard, pytest.raises(OwnershipLostError, match="transaction 7"):
        discard.take(["delta_0000001_0000001"], lost)
    assert made.storage.exists("delta_0000001_0000001")
