"""Staging directories belong to whoever renamed them last; half of a pair goes back to where it came from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.compaction.publish.by_rename import ByRename
from airflow_provider_acid.compaction.publish.journal import PublicationJournal
from airflow_provider_acid.compaction.publish.staging import (
    REMOVED_PREFIX,
    finish_removals,
    staging_name,
    staging_tokens,
)
from airflow_provider_acid.compaction.recover.dead_results import take_back_half
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.plan.exchange import JOURNAL_FILE, OUTPUTS_DIRECTORY
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import Partition, insert

TOKEN = "0123456789abcdef"
STAGING = staging_name(TOKEN)
TARGETS = ("delete_delta_0000001_0000004", "delta_0000001_0000004")
KINDS = ("deletes", "rows")


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def staged(storage: LocalStorage, *, journal: bool = True, published: int = 0) -> None:
    """A staging directory of a pair of which so many directories were renamed."""
    for kind, target in list(zip(KINDS, TARGETS, strict=True))[published:]:
        storage.make_directory(f"{STAGING}/{OUTPUTS_DIRECTORY}/{kind}")
        storage.write_new(f"{STAGING}/{OUTPUTS_DIRECTORY}/{kind}/of", target.encode())
    for target in TARGETS[:published]:
        storage.make_directory(target)
        storage.write_new(f"{target}/of", target.encode())
    storage.make_directory(f"{STAGING}/{OUTPUTS_DIRECTORY}")
    if journal:
        storage.write_new(f"{STAGING}/{JOURNAL_FILE}", PublicationJournal(TARGETS, 7, 8).to_json().encode())


def targets(storage: LocalStorage) -> list[str]:
    return [name for name in storage.list().directories if name in TARGETS]


def test_a_directory_that_is_taken_over_has_a_name_that_nobody_had(storage: LocalStorage) -> None:
    staged(storage)
    moved = ByRename(storage).take_over(TOKEN)
    assert moved is not None
    (token,) = staging_tokens(storage.list())
    assert moved == staging_name(token)
    again = ByRename(storage).take_over(token)
    assert len({STAGING, moved, again}) == 3


def test_of_two_that_take_over_at_once_one_gets_it(storage: LocalStorage) -> None:
    staged(storage)
    assert ByRename(storage).take_over(TOKEN) is not None
    assert ByRename(storage).take_over(TOKEN) is None


def test_one_half_goes_back_to_where_it_came_from(storage: LocalStorage) -> None:
    staged(storage, published=1)
    take_back_half(storage, STAGING)
    assert targets(storage) == []
    for kind, target in zip(KINDS, TARGETS, strict=True):
        assert storage.read(f"{STAGING}/{OUTPUTS_DIRECTORY}/{kind}/of").decode() == target


@pytest.mark.parametrize(("published", "journal"), [(0, True), (2, True), (1, False)])
def test_what_is_whole_or_not_a_pairs_stays(storage: LocalStorage, published: int, journal: bool) -> None:
    staged(storage, published=published, journal=journal)
    before = storage.list()
    take_back_half(storage, STAGING)
    assert storage.list() == before


def test_half_whose_journal_cannot_be_read_now_keeps_all_that_tells_of_it(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are known to HDFS's NameNode, while the machine with the journal's bytes does not answer."""
    staged(storage, published=1)
    read = LocalStorage.read

    def failing(storage: LocalStorage, path: str, most_bytes: int = 1024) -> bytes:
        if path.endswith(JOURNAL_FILE):
            raise StorageError(path, "is on a machine that does not answer", "try again")
        return read(storage, path, most_bytes)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(LocalStorage, "read", failing)
        with pytest.raises(StorageError, match="does not answer"):
            remove_orphans(storage)
    assert targets(storage) == [TARGETS[0]]
    remove_orphans(storage)
    assert storage.list().directories == ()


def remove_orphans(storage: LocalStorage) -> None:
    """As a housekeeping does of Hive 3 that finds no transaction and no request of the attempt."""
    client, queue = Mock(), Mock(hive=HIVE_3)
    client.transactions.return_value = queue.rows.return_value = []
    client.server_now_ms.return_value = 0
    recovery = Recovery(client, queue, CompactionSettings(transaction_timeout_seconds=1.0))
    recovery.remove_orphans(Entity("d", "t"), storage, storage.list())


def test_nothing_is_taken_back_by_one_whose_directory_somebody_else_took_over(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the half's name may lie the other one's result by then."""
    staged(storage, published=1)
    publish = LocalStorage.publish

    def after_somebody_else(storage: LocalStorage, source: str, target: str) -> None:
        monkeypatch.setattr(LocalStorage, "publish", publish)
        assert ByRename(storage).take_over(TOKEN) is not None
        publish(storage, source, target)

    monkeypatch.setattr(LocalStorage, "publish", after_somebody_else)
    take_back_half(storage, STAGING)
    assert targets(storage) == [TARGETS[0]]


def test_a_removal_that_somebody_else_makes_at_the_same_time_is_no_error(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged(storage)
    publish = LocalStorage.publish

    def after_somebody_else(storage: LocalStorage, source: str, target: str) -> None:
        monkeypatch.setattr(LocalStorage, "publish", publish)
        ByRename(storage).remove(STAGING)
        publish(storage, source, target)

    monkeypatch.setattr(LocalStorage, "publish", after_somebody_else)
    ByRename(storage).remove(STAGING)
    assert storage.list().directories == ()


def test_removals_that_were_cut_off_are_finished_and_named(storage: LocalStorage) -> None:
    storage.make_directory(f"{REMOVED_PREFIX}1/output")
    storage.make_directory("delta_1_1")
    assert finish_removals(storage, storage.list()) == (f"{REMOVED_PREFIX}1",)
    assert storage.list().directories == ("delta_1_1",)


@pytest.mark.parametrize("same", [True, False])
def test_an_output_is_adopted_only_as_that_of_the_plan_beside_it(tmp_path: Path, same: bool) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001_0000", [insert(1, row_id, 0) for row_id in range(2)])
    plan = partition.plan()
    assert run_plainly(plan).error is None
    storage = LocalStorage(plan.location)
    beside = plan if same else replace(plan, aborted_write_ids=(1,))
    Path(plan.location, plan.staging, "plan.json").write_text(beside.to_json())
    assert (ByRename(storage).finished_output(plan.staging) is not None) is same
