"""What a dead attempt finished is of use to the next one: only whole, and without what the dead one noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.publish.by_rename import ByRename
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, read_journal, write_journal
from airflow_provider_acid.compaction.publish.replaced import read_replaced, write_replaced
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.plan.exchange import JOURNAL_FILE, REPLACED_FILE, RESULT_FILE
from airflow_provider_acid.plan.plan import CompactionPlan, OutputKind
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import Partition, insert

DEAD, HEIRS = staging_name("0123456789abcdef"), staging_name("fedcba9876543210")
Finished = tuple[LocalStorage, CompactionPlan]


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 0)])
    plan = replace(partition.plan(), staging=DEAD, directories=("delta_0000001_0000001",))
    storage = LocalStorage(str(partition.path))
    open_staging(storage, plan)
    seal(storage, run_plainly(plan))
    return storage, plan


def seal(storage: LocalStorage, result: CompactionResult) -> None:
    storage.delete([f"{DEAD}/{RESULT_FILE}"])
    storage.write_new(f"{DEAD}/{RESULT_FILE}", result.to_json().encode())


def test_it_becomes_the_heirs_without_the_dead_ones_notes(finished: Finished) -> None:
    storage, plan = finished
    write_journal(storage, DEAD, PublicationJournal(plan.targets, 7, None))
    write_replaced(storage, DEAD, plan.directories)
    staging = ByRename(storage)
    sealed = staging.finished_output(DEAD)
    assert sealed is not None
    heirs = replace(plan, staging=HEIRS)
    assert staging.adopt(sealed, heirs)
    assert storage.exists(heirs.staged(OutputKind.ROWS))
    assert read_journal(storage, HEIRS) is None
    assert read_replaced(storage, HEIRS) is None
    assert {JOURNAL_FILE, REPLACED_FILE} & {file.name for file in storage.list(HEIRS).files} == set()
    assert not staging.adopt(sealed, replace(plan, staging=staging_name("0000000000000000"))), "it is somebody else's"


def lose_the_output(storage: LocalStorage, plan: CompactionPlan) -> None:
    storage.delete([plan.staged(OutputKind.ROWS)])


def fail(storage: LocalStorage, plan: CompactionPlan) -> None:
    seal(storage, replace(noted_result(storage), error="out of memory"))


def answer_another(storage: LocalStorage, plan: CompactionPlan) -> None:
    seal(storage, replace(noted_result(storage), attempt="another"))


def lose_the_result(storage: LocalStorage, plan: CompactionPlan) -> None:
    storage.delete([f"{DEAD}/{RESULT_FILE}"])


def noted_result(storage: LocalStorage) -> CompactionResult:
    return CompactionResult.from_json(storage.read(f"{DEAD}/{RESULT_FILE}"))


@pytest.mark.parametrize("spoil", [lose_the_output, fail, answer_another, lose_the_result])
def test_what_is_not_whole_or_not_right_is_of_no_use(
    finished: Finished, spoil: Callable[[LocalStorage, CompactionPlan], None]
) -> None:
    storage, plan = finished
    spoil(storage, plan)
    assert ByRename(storage).finished_output(DEAD) is None
