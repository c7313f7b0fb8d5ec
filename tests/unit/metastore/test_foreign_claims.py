"""Hive 4 hands out what stands first: nothing is claimed where that is another request, or might be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.compactions import CompactAnswer
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

INITIATED, WORKING, REFUSED = CompactionState.INITIATED, CompactionState.WORKING, CompactionState.REFUSED
NOW_MS, POOL_TIMEOUT_SECONDS = 100_000_000, 43_200.0
FRESH_MS, OLD_MS = NOW_MS - 1000, NOW_MS - 43_201_000


def waiting(id: int, type: str = "major", pool: str | None = None, enqueue_ms: int = FRESH_MS) -> CompactionRow:
    return CompactionRow(id, Entity("d", f"t{id}"), type, INITIATED, pool=pool, enqueue_ms=enqueue_ms)


@dataclass
class Server:
    """A metastore with a queue; another worker may take a request just before a claim.

    :param before_claim: what happens between the look and the claim.
    :param unanswered: how often it does not answer who makes a request again.
    :param refusal: why it takes no request that is made again.
    """

    rows: list[CompactionRow]
    before_claim: Callable[[Server], None] = lambda server: None
    unanswered: int = 0
    refusal: str | None = None
    claimed: list[int] = field(default_factory=list)

    def compactions(self, **wanted: object) -> list[CompactionRow]:
        chosen = {name: value for name, value in wanted.items() if value is not None}
        return [row for row in self.rows if all(getattr(row, name) == value for name, value in chosen.items())]

    def server_now_ms(self) -> int:
        return NOW_MS

    def pool_timeout_seconds(self) -> float:
        return POOL_TIMEOUT_SECONDS

    def find_next_compaction(self, worker_id: str, pool: str | None, worker_version: str) -> CompactionInfo | None:
        self.before_claim(self)
        first = next((row for row in self.rows if row.state is INITIATED and row.pool is None), None)
        if first is None:
            return None
        self.claimed.append(first.id)
        return CompactionInfo.of_row(self._become(first, state=WORKING, worker_id=worker_id))

    def mark_refused(self, info: CompactionInfo, message: str) -> None:
        self._become(self.compactions(id=info.id)[0], state=REFUSED, error_message=message)

    def compact_again(self, info: CompactionInfo, initiator_id: str | None) -> CompactAnswer:
        if self.unanswered:
            self.unanswered -= 1
            raise MetastoreUnavailableError("d.t2", "the connection was closed", "look at the metastore")
        if self.refusal is not None:
            return CompactAnswer(-1, "refused", False, self.refusal)
        id = self.rows[-1].id + 1
        self.rows.append(replace(waiting(id, info.type), entity=info.entity, initiator_id=initiator_id))
        return CompactAnswer(id, "initiated", True, None)

    def take(self, id: int) -> None:
        self._become(self.compactions(id=id)[0], state=WORKING, worker_id="somebody else")

    def _become(self, row: CompactionRow, **changes: object) -> CompactionRow:
        now = replace(row, **changes)  # type: ignore[arg-type]
        self.rows[self.rows.index(row)] = now
        return now


def claim(server: Server, id: int) -> ClaimedCompaction | CompactionRow | None:
    queue = ThriftCompactionQueue(cast(AcidMetastoreClient, server), HIVE_4)
    return queue.claim_foreign(server.compactions(id=id)[0], "me")


@pytest.mark.parametrize(
    ("rows", "in_the_way"),
    [
        ([waiting(1), waiting(2)], None),
        ([waiting(1), waiting(0)], None),
        ([waiting(0, "rebalance"), waiting(1)], 0),
        ([waiting(0), waiting(1)], 0),
        ([waiting(0, pool="etl"), waiting(1)], None),
        ([waiting(0, pool="etl", enqueue_ms=OLD_MS), waiting(1)], 0),
        ([replace(waiting(0), state=WORKING), waiting(1)], None),
    ],
)
def test_only_what_stands_first_is_claimed(rows: list[CompactionRow], in_the_way: int | None) -> None:
    server = Server(rows)
    before = list(rows)
    found = claim(server, 1)
    if in_the_way is None:
        assert isinstance(found, ClaimedCompaction)
        assert (found.id, server.claimed) == (1, [1])
    else:
        assert isinstance(found, CompactionRow)
        assert (found.id, server.claimed, server.rows) == (in_the_way, [], before)


def test_a_request_that_waits_no_more_is_not_claimed_nor_any_other() -> None:
    server = Server([replace(waiting(1), state=WORKING), waiting(2)])
    assert claim(server, 1) is None
    assert server.claimed == []


def test_where_another_was_faster_what_was_handed_out_instead_waits_again() -> None:
    rebalance = replace(waiting(2, "rebalance"), initiator_id="eve")
    server = Server([waiting(1), rebalance], before_claim=lambda server: server.take(1))
    found = claim(server, 1)
    assert found == replace(rebalance, id=3)
    ended = server.compactions(id=2)[0]
    assert (ended.state, ended.error_message) == (
        REFUSED,
        "was handed out in place of another request, and is asked for again under a new id",
    )


def overtaken(**changes: Any) -> Server:
    return Server([waiting(1), waiting(2)], before_claim=lambda server: server.take(1), **changes)


def test_what_was_handed_out_instead_is_asked_for_once_more_where_no_answer_came() -> None:
    assert claim(overtaken(unanswered=1), 1) == replace(waiting(2), id=3)


@pytest.mark.parametrize(
    ("server", "reason"),
    [(overtaken(unanswered=2), "the connection was closed"), (overtaken(refusal="is scheduled"), "is scheduled")],
    ids=["no answer", "refused"],
)
def test_a_request_that_could_not_be_made_again_is_told_by_its_id(server: Server, reason: str) -> None:
    with pytest.raises(MetastoreError, match=rf"request 2 of d\.t2 \(major\).* could not be made again: {reason}"):
        claim(server, 1)


def test_a_request_that_somebody_else_made_of_the_same_partition_stands_for_it() -> None:
    theirs = replace(waiting(9), entity=Entity("d", "t2"))
    server = overtaken(refusal="is scheduled already")
    server.rows.append(theirs)
    assert claim(server, 1) == theirs
