"""The parts of a bucket's slices, which a driver removes if it can, and which go with the staging directory else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.exceptions import AcidError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.app import partition_job
from airflow_provider_acid.merge.app.bucket_tasks import RunItem
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from airflow_provider_acid.storages.s3.errors import boto3_is_missing
from tests.unit.compaction.copying_storage import CopyingStorage, CopyingStorages
from tests.unit.merge.striped_files import striped_partition


@dataclass(frozen=True)
class Storages(CopyingStorages):
    """An object store that takes no deletion."""

    error: AcidError | None = None

    def open(self, location: str) -> Storage:
        storage = CopyingStorage(location)
        if self.error is not None:
            storage.delete = self._refuse  # type: ignore[method-assign]
        return storage

    def _refuse(self, paths: Iterable[str]) -> None:
        assert self.error is not None
        raise self.error


def one_after_the_other(_spark: object, _subject: str, tasks: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    return [work(task) for task in tasks]


@pytest.mark.parametrize(
    "error",
    [None, StorageError("part", "cannot be deleted", "-"), boto3_is_missing("part", "cannot be deleted")],
    ids=["deleted", "a store's error", "no boto3"],
)
def test_a_large_bucket_is_merged_whether_or_not_its_parts_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: AcidError | None
) -> None:
    """Spark's driver may have pyarrow alone for S3."""
    monkeypatch.setattr(partition_job, "run_tasks", one_after_the_other)
    partition = striped_partition(tmp_path)
    plan = partition.plan(stripe_copy=CopiedStripes.NEVER, orc=OrcOptions(slice_bytes=3000))
    storages = Storages(error=error)
    result = run_plan(cast(Any, None), plan, RunItem(storages, str(tmp_path / "run"), 0))
    assert result.error is None
    assert [file.rows_out for file in result.files] == [1450]
    parts = [name for name in partition.attempts() if "slice" in name]
    assert bool(parts) is (error is not None)
