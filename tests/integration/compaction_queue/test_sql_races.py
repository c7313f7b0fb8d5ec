"""Somebody else's change between the look at a row of Hive 3.1's queue and the change that follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy.engine import Connection

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.integration.compaction_queue.rows import OTHER_WORKER, WORKER, the_row

pytestmark = pytest.mark.parametrize("server", ["hive-3-postgresql", "hive-3-mariadb"], indirect=True)

T = TypeVar("T")


class OvertakenDatabase(MetastoreDatabase):
    """Lets somebody else go first when it is about to write."""

    other: Callable[[], None] | None = None

    def write(self, subject: str, work: Callable[[Connection], T]) -> T:
        other, self.other = self.other, None
        if other is not None:
            other()
        return super().write(subject, work)


@pytest.fixture(scope="module")
def overtaken(server: MetastoreServer) -> OvertakenDatabase:
    return OvertakenDatabase(server.server_database.url)


def stored(server: MetastoreServer, id: int) -> list[list[object]]:
    """The row in the queue and in the history, whichever there is, as stored."""
    tables = (("COMPACTION_QUEUE", "CQ_ID"), ("COMPLETED_COMPACTIONS", "CC_ID"))
    rows = [server.server_database.query(f"SELECT * FROM {table} WHERE {key} = {id}") for table, key in tables]
    return [
        [bytes(value) if isinstance(value, memoryview) else value for row in found for value in row] for found in rows
    ]


CHANGES: dict[str, Callable[[CompactionQueue, ClaimedCompaction, CompactionRow], object]] = {
    "record": lambda queue, claim, row: queue.record(claim, 9, 78, "hive"),
    "set_job_id": lambda queue, claim, row: queue.set_job_id(claim, "application_1"),
    "complete": lambda queue, claim, row: queue.complete(claim),
    "keep": lambda queue, claim, row: queue.keep(claim),
    "fail": lambda queue, claim, row: queue.fail(claim, "no"),
    "refuse": lambda queue, claim, row: queue.refuse(claim, "no"),
    "fail a dead one's": lambda queue, claim, row: queue.fail(row, "its owner died"),
    "give_back": lambda queue, claim, row: queue.give_back(row, "silent"),
}
OVERTAKERS = {"taken back": "CQ_STATE = 'i'", "taken over": f"CQ_WORKER_ID = '{OTHER_WORKER}'"}


@pytest.mark.parametrize("overtaker", OVERTAKERS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_changes_hands_between_look_and_change_is_not_changed(
    server: MetastoreServer,
    client: AcidMetastoreClient,
    overtaken: OvertakenDatabase,
    claim: ClaimedCompaction,
    change: str,
    overtaker: str,
) -> None:
    queue = open_queue(client, overtaken)
    claim = queue.record(claim, 5, 77, "hive")
    row = the_row(queue, claim.id)
    theirs = []

    def overtake() -> None:
        server.server_database.query(f"UPDATE COMPACTION_QUEUE SET {OVERTAKERS[overtaker]} WHERE CQ_ID = {claim.id}")
        theirs.append(stored(server, claim.id))

    overtaken.other = overtake
    with pytest.raises(OwnershipLostError):
        CHANGES[change](queue, claim, row)
    assert theirs == [stored(server, claim.id)]


@pytest.mark.parametrize("change", ["record", "fail", "refuse", "fail a dead one's", "give_back"])
def test_a_row_that_is_published_between_look_and_change_stays_published(
    server: MetastoreServer,
    client: AcidMetastoreClient,
    overtaken: OvertakenDatabase,
    queue: CompactionQueue,
    claim: ClaimedCompaction,
    change: str,
) -> None:
    mine = open_queue(client, overtaken)
    claim = queue.record(claim, 5, 77, "hive")
    row = the_row(queue, claim.id)
    theirs = []

    def publish() -> None:
        queue.complete(claim)
        theirs.append(stored(server, claim.id))

    overtaken.other = publish
    with pytest.raises(OwnershipLostError):
        CHANGES[change](mine, claim, row)
    assert theirs == [stored(server, claim.id)]


def test_a_row_that_hive_takes_back_between_look_and_cleaning_is_not_marked_cleaned(
    server: MetastoreServer, client: AcidMetastoreClient, overtaken: OvertakenDatabase, ready: CompactionRow
) -> None:
    queue = open_queue(client, overtaken)
    theirs = []

    def take_back() -> None:
        server.server_database.query(f"UPDATE COMPACTION_QUEUE SET CQ_STATE = 'i' WHERE CQ_ID = {ready.id}")
        theirs.append(stored(server, ready.id))

    overtaken.other = take_back
    with pytest.raises(OwnershipLostError, match="initiated"):
        queue.cleaned(ready, 5)
    assert theirs == [stored(server, ready.id)]


@pytest.mark.parametrize("is_published_and_taken_back", [False, True])
def test_a_request_that_another_claims_between_look_and_claim_keeps_what_that_one_recorded(
    server: MetastoreServer,
    client: AcidMetastoreClient,
    overtaken: OvertakenDatabase,
    queue: CompactionQueue,
    entity: Entity,
    pool: str,
    is_published_and_taken_back: bool,
) -> None:
    mine = open_queue(client, overtaken)
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    theirs = []

    def claim_it() -> None:
        claim = queue.claim(pool, OTHER_WORKER)
        assert claim is not None
        claim = queue.record(claim, 5, 77, "hive")
        if is_published_and_taken_back:
            queue.complete(claim)
            taken_back = "CQ_STATE = 'i', CQ_WORKER_ID = NULL, CQ_START = NULL"
            server.server_database.query(f"UPDATE COMPACTION_QUEUE SET {taken_back} WHERE CQ_ID = {made.id}")
        theirs.append(stored(server, made.id))

    overtaken.other = claim_it
    assert mine.claim(pool, WORKER) is None
    assert theirs == [stored(server, made.id)]
