"""Where the rename publishes, it has to be one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work.preparing import Preparer
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.storages.rules import StoreRules


@dataclass
class Queue:
    hive: Hive
    database: None = None

    def fail(self, row: object, message: str) -> None:
        raise AssertionError(message)


@dataclass
class ObjectStore:
    """Renames file by file."""

    location: str = "s3a://warehouse/t"
    rules: StoreRules = StoreRules(renames=False)


def check(storage: object, hive: Hive) -> None:
    nothing: Any = None
    queue = cast(Any, Queue(hive))
    worker = Preparer(queue, CompactionSettings(), nothing, nothing, nothing)
    worker.check_publication(cast(Storage, storage))


def test_a_store_without_atomic_renames_is_refused_on_hive_3() -> None:
    with pytest.raises(UnsupportedTableError, match="s3a://warehouse/t: lies on a store that renames directories file"):
        check(ObjectStore(), HIVE_3)


@pytest.mark.parametrize(("renames", "hive"), [(True, HIVE_3), (False, HIVE_4)])
def test_it_is_not_where_renames_are_atomic_or_the_commit_publishes(renames: bool, hive: Hive) -> None:
    check(ObjectStore(rules=StoreRules(renames=renames)), hive)
