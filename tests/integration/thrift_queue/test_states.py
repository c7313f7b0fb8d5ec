"""The compaction queue of a real Hive 4 metastore, worked on over Thrift alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.acid.write_ids import ValidTxnList, compactor_list
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, Enqueued, NotEnqueued
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, TxnState
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.thrift_queue.rows import the_row

OWNER = owner_of("dag", "compact", "run", "0")


def test_a_worker_outside_of_hive_does_everything_over_thrift(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, metastore: MetastoreServer, entity: Entity, pool: str
) -> None:
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        written, aborted, still_open = admin.open_transactions(3)
        admin.allocate_write_ids(entity.database, entity.table, [written, aborted, still_open])
        admin.commit(written)
        admin.abort(aborted)
    user_request = replace(entity, partition="ds=user")
    others = {
        "a user's": client.compact(user_request, CompactionType.MAJOR).id,
        "of another pool": client.compact(replace(entity, partition="ds=other"), CompactionType.MINOR, pool="other").id,
    }

    made = queue.enqueue(entity, CompactionType.MAJOR, pool, {"orc.compress": "ZLIB"})
    assert isinstance(made, Enqueued)
    claim = queue.claim(pool, "worker-1")
    assert claim is not None
    assert (claim.id, claim.entity, claim.info.type, claim.info.pool) == (made.id, entity, "major", pool)
    assert {name: the_row(queue, id).state for name, id in others.items()} == dict.fromkeys(
        others, CompactionState.INITIATED
    )

    with CompactionTransaction(client, entity, agent_info=pool, heartbeat_seconds=0.05) as transaction:
        txns = client.open_transactions()
        valid = ValidTxnList(txns.high_water_mark, txns.open, txns.aborted).as_of(transaction.txn_id)
        [write_ids] = client.valid_write_ids([entity.full_table_name], str(valid))
        compactor = compactor_list(write_ids)
        assert (compactor.high_water_mark, compactor.aborted) == (2, (2,)), "write id 3 is open, 2 is aborted"
        claim = queue.record(claim, compactor.high_water_mark, transaction.txn_id, "hive")
        queue.set_job_id(claim, "application_1700000000000_0001")
        working = the_row(queue, claim.id)
        transaction.verify()
        queue.complete(claim)
        completed = the_row(queue, claim.id)
        transaction.commit()
    committed = the_row(queue, claim.id)

    assert (working.state, working.worker_id, working.run_as) == (CompactionState.WORKING, "worker-1", "hive")
    assert (working.highest_write_id, working.txn_id) == (2, transaction.txn_id)
    assert working.job_id == "application_1700000000000_0001"
    assert (completed.state, completed.worker_id) == (CompactionState.READY_FOR_CLEANING, None)
    assert (completed.next_txn_id, completed.commit_ms) == (None, None), "set by the commit alone"
    assert committed.next_txn_id is not None
    assert committed.next_txn_id >= transaction.txn_id
    assert committed.commit_ms is not None
    assert [row.id for row in queue.ready_to_clean([entity])] == [claim.id]

    queue.cleaned(committed, 2)
    assert the_row(queue, claim.id).state is CompactionState.SUCCEEDED
    assert queue.ready_to_clean([entity]) == []
    assert client.transaction_state(transaction.txn_id) is TxnState.COMMITTED_OR_UNKNOWN
    assert client.show_locks(entity) == []


def test_a_second_request_for_the_same_partition_names_the_row_in_the_way(
    queue: ThriftCompactionQueue, entity: Entity, pool: str
) -> None:
    first = queue.enqueue(entity, CompactionType.MAJOR, pool)
    second = queue.enqueue(entity, CompactionType.MINOR, str(RequestPool.new(OWNER)))
    assert isinstance(first, Enqueued)
    assert isinstance(second, NotEnqueued)
    assert second.existing is not None
    assert (second.existing.id, second.existing.pool) == (first.id, pool)
    assert f"id={first.id}" in second.reason


def test_k01_a_row_is_claimed_once(queue: ThriftCompactionQueue, claim: ClaimedCompaction) -> None:
    row = the_row(queue, claim.id)
    assert (row.state, row.worker_id) == (CompactionState.WORKING, "worker-1")
    assert row.start_ms is not None
    assert claim.info.pool is not None
    assert queue.claim(claim.info.pool, "worker-2") is None


def test_k01_two_rows_are_claimed_once_each(queue: ThriftCompactionQueue, entity: Entity, pool: str) -> None:
    ids = []
    for partition in ("ds=1", "ds=2"):
        made = queue.enqueue(replace(entity, partition=partition), CompactionType.MINOR, pool)
        assert isinstance(made, Enqueued)
        ids.append(made.id)
    claims = [queue.claim(pool, "worker-1") for _ in range(3)]
    assert [claim and claim.id for claim in claims] == [*ids, None]


def test_k02_a_completed_row_is_listed_for_cleaning_until_it_is_cleaned(
    queue: ThriftCompactionQueue, ready: CompactionRow
) -> None:
    assert ready.worker_id is None
    assert ready.pool is not None
    assert queue.claim(ready.pool, "worker-2") is None
    assert queue.ready_to_clean([ready.entity]) == [ready]
    assert queue.ready_to_clean([Entity("queue_tests", "another")]) == []
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id).state is CompactionState.SUCCEEDED
    assert queue.ready_to_clean([ready.entity]) == []


def test_k02_an_uncommitted_row_is_not_listed_for_cleaning(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, claim: ClaimedCompaction
) -> None:
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        assert queue.ready_to_clean([claim.entity]) == []
    row = the_row(queue, claim.id)
    assert client.transaction_state(transaction.txn_id) is TxnState.ABORTED
    assert queue.ready_to_clean([claim.entity]) == []
    queue.fail(row, f"transaction {row.txn_id} was aborted")
    assert the_row(queue, claim.id).state is CompactionState.FAILED


def test_k03_a_failed_row_is_history_and_cannot_fail_again(
    queue: ThriftCompactionQueue, claim: ClaimedCompaction
) -> None:
    queue.fail(claim, "bucket_00001 is truncated")
    row = the_row(queue, claim.id)
    assert (row.state, row.error_message) == (CompactionState.FAILED, "bucket_00001 is truncated")
    with pytest.raises(OwnershipLostError, match="failed"):
        queue.fail(claim, "once more")
    assert the_row(queue, claim.id) == row


def test_the_server_itself_answers_a_second_failure_with_an_error(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, claim: ClaimedCompaction
) -> None:
    queue.fail(claim, "once")
    with pytest.raises(MetastoreError):
        client.mark_failed(claim.info, "twice")


def test_a_refused_row_is_history_with_its_reason(queue: ThriftCompactionQueue, claim: ClaimedCompaction) -> None:
    queue.refuse(claim, "table is sorted")
    row = the_row(queue, claim.id)
    assert (row.state, row.error_message) == (CompactionState.REFUSED, "table is sorted")


def test_k06_the_enqueue_time_never_changes(
    queue: ThriftCompactionQueue, entity: Entity, pool: str, client: AcidMetastoreClient
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    enqueued = the_row(queue, made.id).enqueue_ms
    claim = queue.claim(pool, "worker-1")
    assert claim is not None
    times = [the_row(queue, made.id).enqueue_ms]
    with CompactionTransaction(client, entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        times.append(the_row(queue, made.id).enqueue_ms)
        transaction.commit()
    queue.cleaned(the_row(queue, made.id), 5)
    times.append(the_row(queue, made.id).enqueue_ms)
    assert enqueued is not None
    assert times == [enqueued] * 3


@pytest.mark.parametrize("partition", [None, "ds=1"])
def test_k07_a_request_is_refused_while_nothing_new_was_written_since_one_that_waits_for_cleaning(
    client: AcidMetastoreClient,
    queue: ThriftCompactionQueue,
    metastore: MetastoreServer,
    entity: Entity,
    pool: str,
    partition: str | None,
) -> None:
    entity = replace(entity, partition=partition)
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        [txn] = admin.open_transactions()
        admin.allocate_write_ids(entity.database, entity.table, [txn])
        admin.commit(txn)
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, "worker-1")
    assert claim is not None
    with CompactionTransaction(client, entity) as transaction:
        queue.complete(queue.record(claim, 1, transaction.txn_id, "hive"))
        transaction.commit()

    again = queue.enqueue(entity, CompactionType.MAJOR, str(RequestPool.new(OWNER)))
    assert isinstance(again, NotEnqueued)
    assert again.existing is not None
    assert (again.existing.id, again.existing.state) == (claim.id, CompactionState.READY_FOR_CLEANING)
    assert len(queue.rows(entity=entity)) == 1


def test_k14_a_table_named_in_upper_case_is_the_lower_case_one(queue: ThriftCompactionQueue, entity: Entity) -> None:
    made = queue.enqueue(Entity("QUEUE_TESTS", entity.table.upper(), "ds=A"), CompactionType.MAJOR, "k14")
    assert isinstance(made, Enqueued)
    assert the_row(queue, made.id).entity == Entity("queue_tests", entity.table, "ds=A")


def test_a_claim_without_a_pool_takes_a_users_request_and_no_pools(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, entity: Entity, pool: str
) -> None:
    while queue.claim_foreign("earlier tests") is not None:
        pass
    assert isinstance(queue.enqueue(replace(entity, partition="ds=1"), CompactionType.MAJOR, pool), Enqueued)
    assert queue.claim_foreign("worker-1") is None
    request = client.compact(entity, CompactionType.MAJOR)
    claim = queue.claim_foreign("worker-1")
    assert claim is not None
    assert (claim.id, claim.info.pool) == (request.id, None)
    assert the_row(queue, claim.id).pool is None, "Hive shows it as pool 'default'"
    queue.refuse(claim, "done")


def test_requests_still_initiated_can_be_withdrawn_and_no_others(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, claim: ClaimedCompaction
) -> None:
    other = replace(claim.entity, partition="ds=2")
    made = queue.enqueue(other, CompactionType.MAJOR, "withdrawn")
    assert isinstance(made, Enqueued)
    answers = client.abort_compactions([made.id, claim.id, 999_999])
    assert answers[made.id].startswith("Success")
    assert answers[claim.id].startswith("Error")
    assert answers[999_999].startswith("Error")
    assert the_row(queue, made.id).state is CompactionState.ABORTED
    assert the_row(queue, claim.id).state is CompactionState.WORKING


CHANGES = {
    "record": lambda queue, claim: queue.record(claim, 9, 1, "hive"),
    "complete": lambda queue, claim: queue.complete(replace(claim, txn_id=1)),
    "fail": lambda queue, claim: queue.fail(claim, "no"),
    "refuse": lambda queue, claim: queue.refuse(claim, "no"),
    "check_owner": lambda queue, claim: queue.check_owner(claim),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_of_another_worker_is_never_changed(
    queue: ThriftCompactionQueue, claim: ClaimedCompaction, change: str
) -> None:
    before = the_row(queue, claim.id)
    zombie = replace(claim, worker_id="worker-of-a-dead-attempt")
    with pytest.raises(OwnershipLostError, match="worker-1"):
        CHANGES[change](queue, zombie)
    assert the_row(queue, claim.id) == before


def test_a_row_that_changed_since_it_was_looked_up_is_not_failed(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, entity: Entity, pool: str
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    seen = the_row(queue, made.id)
    claim = queue.claim(pool, "worker-1")
    assert claim is not None
    with pytest.raises(OwnershipLostError, match="worker-1"):
        queue.fail(seen, "its owner died")
    queue.fail(the_row(queue, made.id), "its owner died")
    assert the_row(queue, made.id).state is CompactionState.FAILED


@pytest.mark.parametrize("highest_write_id", [0, -1, 6])
def test_a_row_is_never_marked_cleaned_without_a_bound_of_its_own(
    queue: ThriftCompactionQueue, ready: CompactionRow, highest_write_id: int
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be marked cleaned"):
        queue.cleaned(ready, highest_write_id)
    assert the_row(queue, ready.id).state is CompactionState.READY_FOR_CLEANING


@pytest.mark.parametrize("highest_write_id", [None, 0])
def test_the_client_does_not_send_mark_cleaned_without_a_bound_either(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, ready: CompactionRow, highest_write_id: int | None
) -> None:
    with pytest.raises(ConfigurationError):
        client.mark_cleaned(replace(CompactionInfo.of_row(ready), highest_write_id=highest_write_id))
    assert the_row(queue, ready.id).state is CompactionState.READY_FOR_CLEANING


def test_a_row_that_somebody_else_cleaned_is_left_alone(queue: ThriftCompactionQueue, ready: CompactionRow) -> None:
    queue.cleaned(ready, 5)
    succeeded = the_row(queue, ready.id)
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id) == succeeded


def test_a_row_still_worked_on_is_not_cleaned(queue: ThriftCompactionQueue, claim: ClaimedCompaction) -> None:
    row = replace(
        the_row(queue, claim.id), state=CompactionState.READY_FOR_CLEANING, highest_write_id=5, worker_id=None
    )
    with pytest.raises(OwnershipLostError, match="working"):
        queue.cleaned(row, 5)
    assert the_row(queue, claim.id).state is CompactionState.WORKING


def test_c09_rows_of_a_partition_are_cleaned_in_order_of_their_high_water_marks(
    client: AcidMetastoreClient, queue: ThriftCompactionQueue, ready: CompactionRow
) -> None:
    second = str(RequestPool.new(OWNER))
    answer = queue.enqueue(ready.entity, CompactionType.MAJOR, second)
    assert isinstance(answer, Enqueued), answer
    claim = queue.claim(second, "worker-1")
    assert claim is not None
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 8, transaction.txn_id, "hive"))
        transaction.commit()
    assert [row.id for row in queue.ready_to_clean([ready.entity])] == [ready.id, claim.id]
    queue.cleaned(ready, 5)
    assert [row.id for row in queue.ready_to_clean([ready.entity])] == [claim.id]
