"""Two end one row at the same moment: the database lets one do it, and the other is told what became of the row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

ROW = CompactionRow(7, Entity("db", "t"), "major", CompactionState.WORKING, worker_id="pool@host")


@dataclass
class Server:
    """A metastore in which another ends the row just before.

    :param ended_as: what the other makes of it.
    """

    ended_as: CompactionState
    row: CompactionRow = ROW
    others: tuple[CompactionRow, ...] = ()
    error: MetastoreError = field(default_factory=lambda: MetastoreError("compaction 7", "duplicate key value", "none"))
    marked: list[str] = field(default_factory=list)

    def compactions(self, **wanted: object) -> list[CompactionRow]:
        return [self.row, *self.others]

    def mark_failed(self, info: CompactionInfo, message: str) -> None:
        self.row = replace(self.row, state=self.ended_as)
        raise self.error

    def config_value(self, name: str) -> str:
        return ""

    def mark_compacted(self, info: CompactionInfo) -> None:
        self.marked.append("compacted")

    def mark_refused(self, info: CompactionInfo, message: str) -> None:
        self.marked.append("refused")


def fail(server: Server) -> None:
    ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4).fail(server.row, "an attempt died")


def test_who_comes_too_late_does_not_own_the_row() -> None:
    with pytest.raises(OwnershipLostError, match="the row is now refused"):
        fail(Server(CompactionState.REFUSED))


def test_what_another_did_already_is_done() -> None:
    server = Server(CompactionState.FAILED)
    fail(server)
    assert server.row.state is CompactionState.FAILED


def test_where_nobody_else_changed_the_row_the_servers_error_counts() -> None:
    with pytest.raises(MetastoreError, match="duplicate key"):
        fail(Server(CompactionState.WORKING))


@pytest.mark.parametrize("ended_as", [CompactionState.WORKING, CompactionState.REFUSED])
def test_an_answer_that_got_lost_is_a_yes_only_where_the_row_says_so(ended_as: CompactionState) -> None:
    lost = MetastoreUnavailableError("metastore", "hung up", "try again")
    with pytest.raises(MetastoreUnavailableError):
        fail(Server(ended_as, error=lost))
    fail(Server(CompactionState.FAILED, error=lost))


CLAIM = ClaimedCompaction(CompactionInfo.of_row(ROW), "pool@host", 9)


@pytest.mark.parametrize(
    "changes",
    [
        {"worker_id": "another@host"},
        {"state": CompactionState.INITIATED, "worker_id": None},
        {"state": CompactionState.FAILED},
        {"state": CompactionState.READY_FOR_CLEANING, "txn_id": 10},
        {"entity": Entity("db", "made_anew")},
    ],
    ids=["another's", "given back", "ended", "another's result", "of another table"],
)
def test_who_has_lost_a_claim_changes_nothing(changes: dict[str, Any]) -> None:
    """The server checks neither the row's state nor its worker."""
    server = Server(CompactionState.WORKING, replace(ROW, start_ms=1, **changes))
    queue = ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4)
    with pytest.raises(OwnershipLostError):
        queue.complete(CLAIM)
    with pytest.raises(OwnershipLostError):
        queue.fence(CLAIM)
    assert server.marked == []


@pytest.mark.parametrize(
    "changes",
    [{"state": CompactionState.READY_FOR_CLEANING, "txn_id": 9, "commit_ms": 1}, {"state": CompactionState.SUCCEEDED}],
    ids=["ready", "cleaned"],
)
def test_what_somebody_else_made_ready_for_cleaning_is_complete(changes: dict[str, Any]) -> None:
    """Who was taken for dead right after his commit finds that done."""
    server = Server(CompactionState.WORKING, replace(ROW, start_ms=1, worker_id=None, **changes))
    queue = ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4)
    queue.complete(CLAIM)
    with pytest.raises(OwnershipLostError):
        queue.fence(CLAIM)
    assert server.marked == []


def test_who_believes_something_else_of_a_row_changes_nothing() -> None:
    server = Server(CompactionState.WORKING, replace(ROW, txn_id=10))
    queue = ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4)
    with pytest.raises(OwnershipLostError):
        queue.refuse(ROW, "it died")
    queue.refuse(server.row, "it died")
    assert server.marked == ["refused"]


READY = replace(ROW, id=6, state=CompactionState.READY_FOR_CLEANING, worker_id=None, start_ms=1)
REBALANCE = replace(READY, type="rebalance")


@pytest.mark.parametrize(
    ("other", "may_count"),
    [
        (replace(READY, txn_id=7, next_txn_id=8, commit_ms=1), False),
        (replace(READY, txn_id=7, next_txn_id=9, commit_ms=1), True),
        (replace(READY, txn_id=7), True),
        (replace(READY, txn_id=7, next_txn_id=9, commit_ms=1, state=CompactionState.SUCCEEDED), False),
        (replace(READY, txn_id=7, start_ms=None), False),
        (REBALANCE, False),
        (replace(REBALANCE, next_txn_id=9, commit_ms=1), True),
    ],
    ids=[
        "committed before",
        "committed since",
        "not committed yet",
        "cleaned",
        "no compaction",
        "a rebalance of Hive 4.0",
        "a rebalance that was committed since",
    ],
)
def test_nothing_is_published_while_anothers_cleaning_may_count_it(other: CompactionRow, may_count: bool) -> None:
    """Transaction 9 is ours; a row tells the highest one at its commit."""
    server = Server(CompactionState.WORKING, replace(ROW, start_ms=1), others=(other,))
    queue = ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4)
    if may_count:
        with pytest.raises(OwnershipLostError, match="request 6 .* was not committed before transaction 9 was opened"):
            queue.fence(CLAIM)
    else:
        queue.fence(CLAIM)
