"""What a commit is worth depends on what makes a result part of the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.compaction.work.finishing import Finisher
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionInfo

CLAIM = ClaimedCompaction(CompactionInfo(1, Entity("testing", "t"), "major"), "me", 7)
LOST = OwnershipLostError("something", "is somebody else's", "start the attempt again")


@dataclass
class Metastore:
    """Its transaction is lost, or its request, or neither.

    :param done: what was done, and the steps that were told.
    """

    hive: Hive
    loses: str = ""
    entity: str = "testing.t"
    done: list[str] = field(default_factory=list)

    def complete(self, claim: ClaimedCompaction) -> None:
        self._do("mark")

    def commit(self) -> None:
        self._do("commit")

    def close(self) -> None:
        self.done.append("close")

    def _do(self, what: str) -> None:
        if self.loses == what:
            raise LOST
        self.done.append(what)


def complete(metastore: Metastore) -> list[str]:
    def on_step(step: Step, entity: Entity) -> None:
        metastore.done.append(step.value)

    Finisher(cast(Any, metastore), CompactionSettings(), on_step).complete(CLAIM, cast(Any, metastore))
    return metastore.done


def test_where_the_commit_publishes_the_request_bars_all_others_until_then() -> None:
    assert complete(Metastore(HIVE_4)) == ["commit", "committed", "mark", "marked_compacted"]


def test_where_the_rename_published_the_lock_is_given_back_last() -> None:
    assert complete(Metastore(HIVE_3)) == ["mark", "marked_compacted", "commit", "committed"]


@pytest.mark.parametrize(("loses", "done"), [("commit", []), ("mark", ["commit", "committed"])])
def test_where_the_commit_publishes_its_failure_is_one(loses: str, done: list[str]) -> None:
    metastore = Metastore(HIVE_4, loses)
    with pytest.raises(OwnershipLostError):
        complete(metastore)
    assert metastore.done == done


def test_where_the_rename_published_a_lock_that_is_lost_does_no_harm() -> None:
    assert complete(Metastore(HIVE_3, "commit")) == ["mark", "marked_compacted", "close", "committed"]
