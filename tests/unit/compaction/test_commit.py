"""What a commit is worth depends on what makes a result part of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import ignore_steps
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.exceptions import OwnershipLostError


@dataclass
class Queue:
    hive: Hive


@dataclass
class Transaction:
    """One that the metastore aborted meanwhile."""

    entity: str = "testing.t"
    is_closed: bool = False

    def commit(self) -> None:
        raise OwnershipLostError("transaction 7", "was aborted", "start the attempt again")

    def close(self) -> None:
        self.is_closed = True


def commit(transaction: Transaction, hive: Hive) -> None:
    finisher = Finisher(cast(Any, Queue(hive)), CompactionSettings(), ignore_steps)
    finisher.commit(cast(Any, transaction))


def test_where_the_commit_publishes_its_failure_is_one() -> None:
    with pytest.raises(OwnershipLostError):
        commit(Transaction(), HIVE_4)


def test_where_the_rename_published_only_the_lock_is_given_back() -> None:
    transaction = Transaction()
    commit(transaction, HIVE_3)
    assert transaction.is_closed
