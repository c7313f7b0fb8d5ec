"""Answers of a real Hive 4 metastore that get lost on the way."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.exceptions import (
    MetastoreUnavailableError,
)
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.queue import ClaimedCompaction, Enqueued
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionState
from tests.integration.thrift_proxy import ThriftProxy
from tests.integration.thrift_queue.rows import the_row


def test_a_request_whose_answer_got_lost_is_found_by_its_pool(
    shaky_queue: ThriftCompactionQueue, queue: ThriftCompactionQueue, proxy: ThriftProxy, entity: Entity, pool: str
) -> None:
    shaky_queue.rows(entity=entity)
    proxy.lose_answer()
    made = shaky_queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    assert [row.id for row in queue.rows(entity=entity)] == [made.id]


def test_a_claim_whose_answer_got_lost_is_found_by_its_worker(
    shaky_queue: ThriftCompactionQueue, queue: ThriftCompactionQueue, proxy: ThriftProxy, entity: Entity, pool: str
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    shaky_queue.rows(entity=entity)
    proxy.lose_answer()
    claim = shaky_queue.claim(pool, "worker-1")
    assert claim is not None
    assert (claim.id, claim.entity, claim.info.pool) == (made.id, entity, pool)
    shaky_queue.fail(claim, "over")
    assert the_row(queue, made.id).state is CompactionState.FAILED


def test_changes_whose_answer_got_lost_are_settled_by_looking(
    shaky_queue: ThriftCompactionQueue,
    queue: ThriftCompactionQueue,
    client: AcidMetastoreClient,
    proxy: ThriftProxy,
    claim: ClaimedCompaction,
) -> None:
    with CompactionTransaction(client, claim.entity) as transaction:
        lose_answer_to_change(proxy, shaky_queue)
        claim = shaky_queue.record(claim, 5, transaction.txn_id, "hive")
        lose_answer_to_change(proxy, shaky_queue)
        shaky_queue.complete(claim)
        transaction.commit()
    row = the_row(queue, claim.id)
    assert (row.state, row.highest_write_id) == (CompactionState.READY_FOR_CLEANING, 5)
    lose_answer_to_change(proxy, shaky_queue, looks=2)
    shaky_queue.cleaned(row, 5)
    assert the_row(queue, claim.id).state is CompactionState.SUCCEEDED
    assert proxy.accepted == 4, "one connection, and one more for each answer that got lost"


def lose_answer_to_change(proxy: ThriftProxy, queue: ThriftCompactionQueue, *, looks: int = 1) -> None:
    """Let the looks at the row pass and lose the answer to the change that follows them."""
    queue.row(1)
    proxy.lose_answer(after=looks)


def test_a_request_that_never_reached_the_server_is_an_error(
    shaky_queue: ThriftCompactionQueue, queue: ThriftCompactionQueue, proxy: ThriftProxy, entity: Entity, pool: str
) -> None:
    proxy.refuse(True)
    with pytest.raises(MetastoreUnavailableError):
        shaky_queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert queue.rows(entity=entity) == []
