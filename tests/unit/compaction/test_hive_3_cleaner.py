"""The Cleaner where the rename publishes: it deletes by the compaction's own list, and no aborted row comes back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.compaction.cleaner import KEEP_SECONDS, Cleaner, Cleaning, CleaningState
from airflow_provider_acid.compaction.replaced import write_replaced
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.staging import staging_name
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.exceptions import MetastoreUnavailableError, ObjectNotFoundError, OwnershipLostError
from airflow_provider_acid.filesystem import LocalStorage
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    DatabaseInfo,
    LockInfo,
    OpenTxns,
    TableInfo,
    TxnInfo,
    TxnState,
)

NOW_MS = 10_000_000
TABLE = Entity("d", "t")
POOL = RequestPool("0123456789ab", "0123456789abcdef")
STAGING = staging_name(POOL.token)
INPUTS = ("delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delta_0000003_0000003_0000")


class FakeClient(AcidMetastoreClient):
    """A metastore that knows one unpartitioned table."""

    def __init__(self, location: Path) -> None:
        self.location = location
        self.open: tuple[int, ...] = ()
        self.aborted: tuple[int, ...] = ()
        self.aborted_write_ids: frozenset[int] = frozenset()
        self.open_write_ids: frozenset[int] = frozenset()
        self.parameters: dict[str, str] = {}
        self.is_dropped = False
        self.transaction_host = "there"

    def get_table(self, database: str, name: str) -> TableInfo:
        if self.is_dropped:
            raise ObjectNotFoundError("table d.t", "does not exist", "none")
        return TableInfo(
            database, name, str(self.location), (), (), self.parameters, -1, (), (), "MANAGED_TABLE", "", "", "hive"
        )

    def get_database(self, name: str) -> DatabaseInfo:
        return DatabaseInfo(name, {}, str(self.location.parent))

    def open_transactions(self) -> OpenTxns:
        return OpenTxns(50, self.open, self.aborted, min(self.open, default=None))

    def transactions(self) -> list[TxnInfo]:
        found = [(txn, TxnState.OPEN) for txn in self.open] + [(txn, TxnState.ABORTED) for txn in self.aborted]
        return [TxnInfo(txn, state, "eve", self.transaction_host, None, NOW_MS, NOW_MS) for txn, state in found]

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        return []

    def server_now_ms(self) -> int:
        return NOW_MS

    def txn_timeout_seconds(self) -> float:
        return 300.0

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        return [TableWriteIds(full_table_names[0], 9, self.open_write_ids, self.aborted_write_ids)]


class FakeQueue:
    """A queue of Hive 3.1 with one row.

    :param there: what lay in the table when the row went to history.
    """

    publishes_by_commit = False
    can_forget_nothing = True

    def __init__(self, location: Path, row: CompactionRow) -> None:
        self.location = location
        self.waiting = [row]
        self.kept: list[int] = []
        self.forgotten: list[int | None] = []
        self.there: list[set[str]] = []
        self.error: Exception | None = None

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        return [row for row in self.waiting if row.entity in set(entities)]

    def rows(self, **chosen: Any) -> list[CompactionRow]:
        return self.waiting

    def fail(self, row: CompactionRow, message: str) -> None:
        raise AssertionError(f"{row} is to be cleaned: {message}")

    def keep(self, row: CompactionRow) -> None:
        if self.error is not None:
            raise self.error
        self.kept.append(row.id)

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        if self.error is not None:
            raise self.error
        self.forgotten.append(highest_write_id)
        self.there.append({path.name for path in self.location.iterdir()} if self.location.exists() else set())
        self.waiting.remove(row)


class Site:
    """A table in a folder after a major compaction of three deltas, and its cleaner."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = FakeClient(folder)
        self.row = CompactionRow(
            7,
            TABLE,
            "major",
            CompactionState.READY_FOR_CLEANING,
            pool=str(POOL),
            start_ms=NOW_MS,
            highest_write_id=3,
            next_txn_id=20,
            commit_ms=NOW_MS,
            txn_id=19,
            newest_lock_id=0,
        )
        self.queue = FakeQueue(folder, self.row)
        self.settings = CompactionSettings()
        folder.mkdir()
        self.add(*INPUTS)
        self.add_base("base_0000003")
        self.note(INPUTS)

    def add(self, *names: str) -> None:
        for name in names:
            (self.folder / name).mkdir()
            (self.folder / name / "bucket_00000").write_bytes(b"ORC")

    def add_base(self, name: str) -> None:
        self.add(name)
        (self.folder / name / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')

    def note(self, names: Collection[str]) -> None:
        (self.folder / STAGING).mkdir(exist_ok=True)
        write_replaced(LocalStorage(str(self.folder)), STAGING, names)

    def cleaner(self, on_step: StepListener = ignore_steps) -> Cleaner:
        queue = cast("CompactionQueue", self.queue)
        return Cleaner(self.client, queue, self.settings, on_step=on_step, sleep=lambda seconds: None)

    def clean(self, on_step: StepListener = ignore_steps) -> Cleaning:
        (cleaning,) = self.cleaner(on_step).clean([TABLE])
        return cleaning

    def look(self) -> Cleaning:
        (cleaning,) = self.cleaner().look([TABLE])
        return cleaning

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "t")


def test_files_go_first_then_the_row_then_the_list(site: Site) -> None:
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted, cleaning.message) == (CleaningState.CLEANED, INPUTS, "3 deleted")
    assert site.queue.forgotten == [3]
    assert site.queue.there == [{"base_0000003", STAGING}]
    assert site.names() == {"base_0000003"}


def test_a_later_compactions_result_does_not_count_in_an_earlier_ones_cleaning(site: Site) -> None:
    """Seed 1035 of the histories: what the later one merged is still read by who began between the two."""
    site.row = replace(site.row, highest_write_id=6)
    site.queue.waiting = [site.row]
    later = ("delta_0000004_0000004_0000", "delta_0000005_0000005_0000")
    site.add(*later, "delta_0000004_0000005")
    cleaning = site.clean()
    assert cleaning.deleted == INPUTS
    assert site.names() == {"base_0000003", *later, "delta_0000004_0000005"}
    assert cleaning.state is CleaningState.CLEANED, "the row must not hold up the partition's next request"


def test_what_was_replaced_but_is_read_again_stays(site: Site) -> None:
    (site.folder / "base_0000003" / "_metadata_acid").unlink()
    (site.folder / "base_0000003" / "bucket_00000").unlink()
    (site.folder / "base_0000003").rmdir()
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert site.names() == set(INPUTS)


def test_wholly_aborted_directories_of_the_list_go_and_are_forgotten(site: Site) -> None:
    aborted = "delta_0000002_0000002_0000"
    site.client.aborted_write_ids = frozenset({2})
    site.note([aborted])
    for name in (INPUTS[0], INPUTS[2]):
        (site.folder / name / "bucket_00000").unlink()
        (site.folder / name).rmdir()
    cleaning = site.clean()
    assert (cleaning.deleted, site.queue.forgotten) == ((aborted,), [3])


@pytest.mark.parametrize(
    ("aborted", "open_write_ids", "remaining", "forgotten"),
    [
        ({2}, {4, 5}, "delta_0000001_0000005", 1),
        ({1}, {4, 5}, "delta_0000001_0000005", None),
        ({1, 3}, {4, 5}, "delta_0000002_0000005", 2),
        ({2, 3}, set(), "delta_0000003_0000003_0001", 2),
        ({2}, set(), "delete_delta_0000001_0000003", 1),
        ({2}, set(), "base_0000002", 1),
        ({7}, set(), "delta_0000007_0000007_0000", 3),
    ],
    ids=[
        "in a streamed delta with open ones",
        "the first",
        "one of two",
        "in an obsolete directory of another's",
        "in an obsolete delete delta",
        "in an obsolete overwrite",
        "above the compaction's",
    ],
)
def test_an_aborted_write_id_in_whatever_stays_is_not_forgotten(
    site: Site, aborted: set[int], open_write_ids: set[int], remaining: str, forgotten: int | None
) -> None:
    site.client.aborted_write_ids = frozenset(aborted)
    site.client.open_write_ids = frozenset(open_write_ids)
    site.add(remaining)
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [forgotten]
    assert remaining in site.names()


@pytest.mark.parametrize("gone", ["replaced.json", None], ids=["the list", "the staging directory"])
def test_without_the_list_nothing_is_deleted_or_forgotten(site: Site, gone: str | None) -> None:
    (site.folder / STAGING / "replaced.json").unlink()
    if gone is None:
        (site.folder / STAGING).rmdir()
    cleaning = site.clean()
    assert (cleaning.state, cleaning.deleted) == (CleaningState.CLEANED, ())
    assert cleaning.message == (
        "0 deleted; what the compaction replaced is not on record, so that it stays until the next one"
    )
    assert site.queue.forgotten == [None]
    assert site.names() == {*INPUTS, "base_0000003"}


def test_the_list_of_another_attempt_is_not_taken(site: Site) -> None:
    other = staging_name("fedcba9876543210")
    (site.folder / STAGING).rename(site.folder / other)
    assert site.clean().deleted == ()
    assert site.names() == {*INPUTS, "base_0000003", other}


def test_a_request_of_somebody_else_is_known_by_its_worker(site: Site) -> None:
    site.queue.waiting = [replace(site.row, pool="somebodys", worker_id=f"{POOL}@here")]
    assert site.clean().deleted == INPUTS


def test_of_a_dropped_table_everything_but_its_row_stays_as_it_is(site: Site) -> None:
    site.client.is_dropped = True
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [None]


def test_a_compaction_whose_transaction_ended_badly_after_its_rename_is_cleaned_like_any(site: Site) -> None:
    site.client.aborted = (19,)
    site.client.transaction_host = f"{POOL}@here"
    assert site.clean().deleted == INPUTS
    assert site.names() == {"base_0000003"}


@pytest.mark.parametrize("step", [Step.CLEANING_DECIDED, Step.FILES_DELETED])
def test_a_cleaning_that_dies_is_repeated(site: Site, step: Step) -> None:
    class Death(BaseException):
        pass

    def die(now: Step, entity: Entity) -> None:
        if now is step:
            raise Death

    with pytest.raises(Death):
        site.clean(die)
    assert site.queue.forgotten == []
    assert STAGING in site.names()
    assert site.clean().state is CleaningState.CLEANED
    assert site.queue.forgotten == [3]
    assert site.names() == {"base_0000003"}


def test_a_row_that_does_not_become_history_keeps_its_list(site: Site) -> None:
    site.queue.error = MetastoreUnavailableError("metastore", "does not answer", "try again")
    assert site.clean().state is CleaningState.FAILED
    assert site.names() == {"base_0000003", STAGING}
    site.queue.error = None
    assert site.clean().state is CleaningState.CLEANED


def test_nothing_is_deleted_where_the_table_forbids_it(site: Site) -> None:
    site.client.parameters["no_cleanup"] = "true"
    assert site.clean().state is CleaningState.FAILED
    assert site.names() == {*INPUTS, "base_0000003", STAGING}
    assert site.queue.forgotten == []


def test_while_it_waits_nothing_is_deleted(site: Site) -> None:
    site.client.open = (20,)
    for found in (site.clean(), site.look()):
        assert (found.state, found.message) == (
            CleaningState.WAITING,
            "waits for transaction 20 of eve@there, open for 0 s",
        )
    assert site.names() == {*INPUTS, "base_0000003", STAGING}
    assert site.queue.kept == []


@pytest.mark.parametrize(("age_seconds", "kept"), [(None, 2), (KEEP_SECONDS, 2), (KEEP_SECONDS - 1, 0)])
def test_a_claim_that_waits_is_refreshed_when_it_gets_old(site: Site, age_seconds: float | None, kept: int) -> None:
    start_ms = None if age_seconds is None else NOW_MS - int(age_seconds * 1000)
    site.queue.waiting = [replace(site.row, start_ms=start_ms)]
    site.client.open = (20,)
    site.clean()
    site.look()
    assert len(site.queue.kept) == kept


def test_a_claim_that_need_not_wait_is_not_refreshed(site: Site) -> None:
    site.queue.waiting = [replace(site.row, start_ms=None)]
    assert site.look().state is CleaningState.READY
    site.clean()
    assert site.queue.kept == []


def test_where_rows_that_wait_are_no_claims_none_is_refreshed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeQueue, "publishes_by_commit", True)
    site.queue.waiting = [replace(site.row, start_ms=None)]
    site.client.open = (20,)
    assert site.look().state is CleaningState.WAITING
    assert site.queue.kept == []


def test_a_claim_that_was_taken_back_meanwhile_is_no_error(site: Site) -> None:
    site.queue.waiting = [replace(site.row, start_ms=None)]
    site.client.open = (20,)
    site.queue.error = OwnershipLostError("compaction 7", "was taken back", "none")
    assert site.look().state is CleaningState.WAITING
