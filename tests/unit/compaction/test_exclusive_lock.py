"""When the EXCLUSIVE lock is asked for: new readers wait behind a request, so no sooner than it has to be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, cast

import pytest

from airflow_provider_acid.compaction.exclusive_lock import ask_when_due, wait_for_exclusive


@dataclass
class Transaction:
    """In a partition that nobody else has a lock on, or somebody.

    :param looks: how often the lock is looked at before it is granted.
    """

    is_there_alone: bool
    looks: int = 0
    exclusive_lock_id: int | None = None
    requests: int = 0

    def is_alone(self) -> bool:
        return self.is_there_alone

    def ask_exclusive(self) -> None:
        self.requests += 1
        self.exclusive_lock_id = 8

    def has_exclusive(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def blockers(self) -> str:
        return "a reader"


@pytest.mark.parametrize(
    ("is_alone", "seconds_left", "asks"),
    [
        (True, 60.0, True),
        (True, 0.0, True),
        (False, 60.0, False),
        (False, 0.0, True),
    ],
)
def test_it_is_asked_for_as_soon_as_nobody_else_has_a_lock_or_the_time_has_come(
    is_alone: bool, seconds_left: float, asks: bool
) -> None:
    transaction = Transaction(is_alone)
    assert ask_when_due(cast(Any, transaction), time.monotonic() + seconds_left) is asks
    assert transaction.requests == asks


def test_it_is_asked_for_once() -> None:
    transaction = Transaction(is_there_alone=True)
    asked = [ask_when_due(cast(Any, transaction), 0.0) for _ in range(3)]
    assert asked == [True, False, False]
    assert transaction.requests == 1


@pytest.mark.parametrize(
    ("looks", "wait_seconds", "waits"),
    [(0, 60.0, None), (1, 60.0, None), (1, 0.0, "the EXCLUSIVE lock (held by a reader)")],
)
def test_it_is_there_once_it_is_granted(looks: int, wait_seconds: float, waits: str | None) -> None:
    transaction = Transaction(is_there_alone=True, looks=looks)
    assert wait_for_exclusive(cast(Any, transaction), wait_seconds, 0.0) == waits
    assert transaction.looks == (-1 if waits is None else 0)
