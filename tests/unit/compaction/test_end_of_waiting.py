"""What becomes of a merged partition that does not get its EXCLUSIVE lock in time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4, Hive
from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.staging import open_staging
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import ignore_steps
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.plan.plan import CompactionType, OutputKind
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.unit.compaction.copying_storage import CopyingStorage, CopyingStorages
from tests.unit.merge.acid_files import STAGING, Partition, insert

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


@dataclass
class Queue:
    refused: list[str] = field(default_factory=list)
    hive: Hive = HIVE_4

    def refuse(self, claim: object, message: str) -> None:
        self.refused.append(message)


@dataclass
class Claim:
    id: int = 3
    entity: Entity = Entity("db", "t")


@dataclass
class Transaction:
    """Waits behind a reader."""

    exclusive_lock_id: int = 8
    is_closed: bool = False

    def has_exclusive(self) -> bool:
        return False

    def blockers(self) -> str:
        return "a reader"

    def close(self) -> None:
        self.is_closed = True


def one_file(result: CompactionResult) -> CompactionResult:
    return replace(result, files=result.files[:1])


def a_pair(result: CompactionResult) -> CompactionResult:
    first, second = result.files
    return replace(result, files=(first, replace(second, output=OutputKind.DELETES)))


def several(result: CompactionResult) -> CompactionResult:
    return result


@pytest.mark.parametrize(
    ("kind", "type", "files", "as_major"),
    [
        (LocalStorage, MINOR, several, True),
        (LocalStorage, MAJOR, several, False),
        (CopyingStorage, MINOR, one_file, True),
        (CopyingStorage, MINOR, a_pair, True),
        (CopyingStorage, MINOR, several, False),
        (CopyingStorage, MAJOR, several, False),
    ],
)
def test_a_minor_is_done_as_a_major_where_that_needs_no_lock(
    tmp_path: Path, kind: type[LocalStorage], type: CompactionType, files: Any, as_major: bool
) -> None:
    """A major of several copied files needs the same one."""
    partition = Partition(tmp_path / "t")
    for bucket in (0, 1):
        partition.write("delta_0000001_0000001", [insert(1, 0, bucket, bucket=bucket)], bucket=bucket)
    plan = replace(partition.plan(), directories=("delta_0000001_0000001",), type=type)
    storage, transaction, queue = kind(str(partition.path)), Transaction(), Queue()
    storage.delete([plan.staging])
    open_staging(storage, plan)
    result = files(run_plainly(plan, CopyingStorages()))
    seen = frozenset(plan.directories)
    active = ActiveCompaction(cast(Any, Claim()), cast(Any, transaction), storage, plan, plan.location, None, 0, seen)
    finisher = Finisher(cast(Any, queue), CompactionSettings(), ignore_steps)
    ended = finisher.resume(AwaitsLock(active, result, 0.0, 0.0))
    if as_major:
        assert isinstance(ended, DuePartition)
        assert ended.type is MAJOR
    else:
        assert isinstance(ended, Outcome)
        assert ended.state is OutcomeState.REFUSED
        assert ended.message.endswith("or wait longer, by minor_lock_wait_seconds.")
    assert len(queue.refused) == 1
    assert transaction.is_closed
    assert not storage.exists(STAGING)
