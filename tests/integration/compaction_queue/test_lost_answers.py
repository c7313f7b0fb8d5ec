"""Answers of a real metastore, or of its database, that get lost on the way."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import (
    MetastoreUnavailableError,
)
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_queue.rows import WORKER, the_row
from tests.integration.compaction_queue.shaky import Shaky


def test_a_request_whose_answer_got_lost_is_found_by_its_pool(
    shaky: Shaky, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    shaky.lose_answer_to_request()
    made = shaky.queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    assert [row.id for row in queue.rows(entity=entity)] == [made.id]


def test_a_claim_whose_answer_got_lost_is_found_by_its_worker(
    shaky: Shaky, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    shaky.lose_answer_to_change(looks=0)
    claim = shaky.queue.claim(pool, WORKER)
    assert claim is not None
    assert (claim.id, claim.entity, claim.info.pool) == (made.id, entity, pool)
    shaky.queue.fail(claim, "over")
    assert the_row(queue, made.id).state is CompactionState.FAILED


def test_changes_whose_answer_got_lost_are_settled_by_looking(
    shaky: Shaky, queue: CompactionQueue, client: AcidMetastoreClient, claim: ClaimedCompaction
) -> None:
    with CompactionTransaction(client, claim.entity) as transaction:
        shaky.lose_answer_to_change()
        claim = shaky.queue.record(claim, 5, transaction.txn_id, "hive")
        shaky.lose_answer_to_change()
        shaky.queue.complete(claim)
        transaction.commit()
    row = the_row(queue, claim.id)
    assert (row.state, row.highest_write_id) == (CompactionState.READY_FOR_CLEANING, 5)
    shaky.lose_answer_to_change()
    shaky.queue.cleaned(row, 5)
    assert the_row(queue, claim.id).state is CompactionState.SUCCEEDED
    if shaky.database is None:
        assert shaky.thrift.accepted == 4, "one connection, and one more for each answer that got lost"


@pytest.mark.parametrize("end", ["fail", "refuse"])
def test_a_lost_answer_does_not_end_a_row_twice(
    shaky: Shaky, queue: CompactionQueue, claim: ClaimedCompaction, end: str
) -> None:
    shaky.lose_answer_to_change()
    getattr(shaky.queue, end)(claim, "no")
    row = the_row(queue, claim.id)
    assert row.state.is_terminal
    assert row.error_message == "no"


def test_a_request_that_never_reached_the_server_is_an_error(
    shaky: Shaky, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    shaky.refuse(True)
    with pytest.raises(MetastoreUnavailableError):
        shaky.queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert queue.rows(entity=entity) == []


@pytest.mark.parametrize("server", ["hive-3-postgresql", "hive-3-mariadb"], indirect=True)
def test_a_database_that_refuses_connections_for_a_while_is_waited_for(
    shaky: Shaky, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    assert shaky.database is not None
    shaky.database.refuse(True)
    back = threading.Timer(1.5, shaky.database.refuse, [False])
    back.start()
    assert shaky.queue.row(claim.id) == the_row(queue, claim.id)
    back.join()
    shaky.database.refuse(True)
    back = threading.Timer(1.5, shaky.database.refuse, [False])
    back.start()
    shaky.queue.fail(claim, "waited")
    back.join()
    assert the_row(queue, claim.id).error_message == "waited"
