"""A claim that is worked on for long is refreshed, since a metastore takes silent ones back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.hive import HIVE_3, Hive
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.metastore.queue import KEEP_SECONDS


@dataclass
class Queue:
    """Counts the signs of life, and answers with an error where there is one."""

    error: Exception | None = None
    kept: list[int] = field(default_factory=list)
    hive: Hive = HIVE_3
    database: None = None

    def keep(self, claim: Claim) -> None:
        self.kept.append(claim.id)
        if self.error is not None:
            raise self.error

    def fail(self, claim: Claim, message: str) -> None:
        raise AssertionError(message)


@dataclass
class Claim:
    id: int


@dataclass
class Active:
    claim: Claim
    begun_monotonic: float
    entity: str = "testing.t"


def worker_of(queue: Queue) -> Worker:
    nothing: Any = None
    return Worker(nothing, cast(Any, queue), nothing, CompactionSettings(), identity="test", host="here")


def active(id: int, age_seconds: float) -> ActiveCompaction:
    return cast(ActiveCompaction, Active(Claim(id), time.monotonic() - age_seconds))


def test_a_claim_is_refreshed_once_it_is_old_and_then_not_before_it_is_again() -> None:
    queue = Queue()
    worker = worker_of(queue)
    worker.keep(active(1, KEEP_SECONDS - 60))
    assert queue.kept == []
    old = active(2, KEEP_SECONDS + 1)
    worker.keep(old)
    worker.keep(old)
    assert queue.kept == [2]


def test_a_metastore_that_does_not_answer_is_asked_again() -> None:
    queue = Queue(MetastoreUnavailableError("metastore", "does not answer", "wait"))
    worker = worker_of(queue)
    old = active(1, KEEP_SECONDS + 1)
    worker.keep(old)
    queue.error = None
    worker.keep(old)
    assert queue.kept == [1, 1]


def test_a_claim_that_is_lost_is_an_error() -> None:
    worker = worker_of(Queue(OwnershipLostError("compaction 1", "is somebody else's", "start again")))
    with pytest.raises(OwnershipLostError):
        worker.keep(active(1, KEEP_SECONDS + 1))
