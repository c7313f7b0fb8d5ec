"""What every kind of compaction queue does, on real metastores."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import ValidTxnList, compactor_list
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4.unpooled_queue import UnpooledCompactionQueue
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued, NotEnqueued
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_queue.rows import OTHER_WORKER, WORKER, the_row

OWNER = owner_of("dag", "compact", "run", "0")


def the_id(made: Enqueued | NotEnqueued) -> int:
    assert isinstance(made, Enqueued)
    return made.id


def test_a_worker_outside_of_hive_does_everything(
    client: AcidMetastoreClient, queue: CompactionQueue, server: MetastoreServer, entity: Entity, pool: str
) -> None:
    with ThriftAdmin(server.host, server.port) as admin:
        written, aborted, still_open = admin.open_transactions(3)
        admin.allocate_write_ids(entity.database, entity.table, [written, aborted, still_open])
        admin.commit(written)
        # An aborted transaction that wrote nothing is forgotten at once.
        admin.lock_as_writer(aborted, entity.database, entity.table, entity.partition)
        admin.abort(aborted)
    user_request = replace(entity, partition="ds=user")
    others = {
        "a user's": client.compact(user_request, CompactionType.MAJOR).id,
        "of another pool": the_id(queue.enqueue(replace(entity, partition="ds=other"), CompactionType.MINOR, "other")),
    }

    made = queue.enqueue(entity, CompactionType.MAJOR, pool, {"orc.compress": "ZLIB"})
    assert isinstance(made, Enqueued)
    claim = queue.claim(pool, WORKER)
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

    assert (working.state, working.worker_id, working.run_as) == (CompactionState.WORKING, WORKER, "hive")
    assert (working.highest_write_id, working.txn_id) == (2, transaction.txn_id)
    assert working.job_id == "application_1700000000000_0001"
    assert (completed.state, completed.worker_id) == (CompactionState.READY_FOR_CLEANING, None)
    if queue.hive.publishes_by_commit:
        assert (completed.next_txn_id, completed.commit_ms) == (None, None), "set by the commit alone"
    else:
        assert completed == committed, "the commit changes nothing"
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
    queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    first = queue.enqueue(entity, CompactionType.MAJOR, pool)
    second = queue.enqueue(entity, CompactionType.MINOR, str(RequestPool.new(OWNER)))
    assert isinstance(first, Enqueued)
    assert isinstance(second, NotEnqueued)
    assert second.existing is not None
    assert (second.existing.id, second.existing.pool) == (first.id, pool)
    assert f"id={first.id}" in second.reason


def test_k01_a_row_is_claimed_once(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    row = the_row(queue, claim.id)
    assert (row.state, row.worker_id) == (CompactionState.WORKING, WORKER)
    assert row.start_ms is not None
    assert claim.info.pool is not None
    assert queue.claim(claim.info.pool, OTHER_WORKER) is None


def test_k01_two_rows_are_claimed_once_each(queue: CompactionQueue, entity: Entity, pool: str) -> None:
    ids = []
    for partition in ("ds=1", "ds=2"):
        made = queue.enqueue(replace(entity, partition=partition), CompactionType.MINOR, pool)
        assert isinstance(made, Enqueued)
        ids.append(made.id)
    claims = [queue.claim(pool, WORKER) for _ in range(3)]
    assert [claim and claim.id for claim in claims] == [*ids, None]


def test_k02_a_completed_row_is_listed_for_cleaning_until_it_is_cleaned(
    queue: CompactionQueue, ready: CompactionRow
) -> None:
    assert ready.worker_id is None
    assert ready.pool is not None
    assert queue.claim(ready.pool, OTHER_WORKER) is None
    assert queue.ready_to_clean([ready.entity]) == [ready]
    assert queue.ready_to_clean([Entity("queue_tests", "another")]) == []
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id).state is CompactionState.SUCCEEDED
    assert queue.ready_to_clean([ready.entity]) == []


def test_k03_a_failed_row_is_history_and_cannot_fail_again(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    queue.fail(claim, "bucket_00001 is truncated")
    row = the_row(queue, claim.id)
    assert (row.state, row.error_message) == (CompactionState.FAILED, "bucket_00001 is truncated")
    with pytest.raises(OwnershipLostError, match="failed"):
        queue.fail(claim, "once more")
    assert the_row(queue, claim.id) == row


def test_a_refused_row_is_history_with_its_reason(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    queue.refuse(claim, "table is sorted")
    row = the_row(queue, claim.id)
    assert (row.state, row.error_message) == (CompactionState.REFUSED, "table is sorted")


def test_k06_the_enqueue_time_never_changes(
    queue: CompactionQueue, entity: Entity, pool: str, client: AcidMetastoreClient
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    enqueued = the_row(queue, made.id).enqueue_ms
    claim = queue.claim(pool, WORKER)
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
    queue: CompactionQueue,
    server: MetastoreServer,
    entity: Entity,
    pool: str,
    partition: str | None,
) -> None:
    entity = replace(entity, partition=partition)
    with ThriftAdmin(server.host, server.port) as admin:
        [txn] = admin.open_transactions()
        admin.allocate_write_ids(entity.database, entity.table, [txn])
        admin.commit(txn)
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, WORKER)
    assert claim is not None
    with CompactionTransaction(client, entity) as transaction:
        queue.complete(queue.record(claim, 1, transaction.txn_id, "hive"))
        transaction.commit()

    again = queue.enqueue(entity, CompactionType.MAJOR, str(RequestPool.new(OWNER)))
    if isinstance(queue, UnpooledCompactionQueue):
        assert isinstance(again, Enqueued), "a server without pools refuses none for that"
        return
    assert isinstance(again, NotEnqueued)
    assert again.existing is not None
    assert (again.existing.id, again.existing.state) == (claim.id, CompactionState.READY_FOR_CLEANING)
    assert len(queue.rows(entity=entity)) == 1


def test_k14_a_table_named_in_upper_case_is_the_lower_case_one(queue: CompactionQueue, entity: Entity) -> None:
    made = queue.enqueue(Entity("QUEUE_TESTS", entity.table.upper(), "ds=A"), CompactionType.MAJOR, "k14")
    assert isinstance(made, Enqueued)
    assert the_row(queue, made.id).entity == Entity("queue_tests", entity.table, "ds=A")


def test_a_claim_without_a_pool_takes_a_users_request_and_no_pools(
    client: AcidMetastoreClient, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    for waiting in queue.line(queue.rows()):
        assert isinstance(queue.claim_foreign(waiting, WORKER), ClaimedCompaction)
    made = queue.enqueue(replace(entity, partition="ds=1"), CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    assert queue.claim_foreign(the_row(queue, made.id), WORKER) is None
    request = client.compact(entity, CompactionType.MAJOR)
    claim = queue.claim_foreign(the_row(queue, request.id), WORKER)
    assert isinstance(claim, ClaimedCompaction)
    assert (claim.id, claim.info.pool) == (request.id, None)
    assert the_row(queue, claim.id).pool is None, "Hive shows it as pool 'default'"
    queue.refuse(claim, "done")


CHANGES = {
    "record": lambda queue, claim: queue.record(claim, 9, 1, "hive"),
    "complete": lambda queue, claim: queue.complete(replace(claim, txn_id=1)),
    "fail": lambda queue, claim: queue.fail(claim, "no"),
    "refuse": lambda queue, claim: queue.refuse(claim, "no"),
    "fence": lambda queue, claim: queue.fence(replace(claim, txn_id=1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_of_another_worker_is_never_changed(
    queue: CompactionQueue, claim: ClaimedCompaction, change: str
) -> None:
    before = the_row(queue, claim.id)
    zombie = replace(claim, worker_id=OTHER_WORKER)
    with pytest.raises(OwnershipLostError, match=WORKER):
        CHANGES[change](queue, zombie)
    assert the_row(queue, claim.id) == before


def test_a_row_that_changed_since_it_was_looked_up_is_not_failed(
    client: AcidMetastoreClient, queue: CompactionQueue, entity: Entity, pool: str
) -> None:
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    seen = the_row(queue, made.id)
    claim = queue.claim(pool, WORKER)
    assert claim is not None
    with pytest.raises(OwnershipLostError, match=WORKER):
        queue.fail(seen, "its owner died")
    queue.fail(the_row(queue, made.id), "its owner died")
    assert the_row(queue, made.id).state is CompactionState.FAILED


@pytest.mark.parametrize("highest_write_id", [0, -1, 6])
def test_a_row_is_never_marked_cleaned_without_a_bound_of_its_own(
    queue: CompactionQueue, ready: CompactionRow, highest_write_id: int
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be marked cleaned"):
        queue.cleaned(ready, highest_write_id)
    assert the_row(queue, ready.id).state is CompactionState.READY_FOR_CLEANING


def test_a_row_that_somebody_else_cleaned_is_left_alone(queue: CompactionQueue, ready: CompactionRow) -> None:
    queue.cleaned(ready, 5)
    succeeded = the_row(queue, ready.id)
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id) == succeeded


def test_a_row_still_worked_on_is_not_cleaned(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    row = replace(
        the_row(queue, claim.id), state=CompactionState.READY_FOR_CLEANING, highest_write_id=5, worker_id=None
    )
    with pytest.raises(OwnershipLostError, match="working"):
        queue.cleaned(row, 5)
    assert the_row(queue, claim.id).state is CompactionState.WORKING


@pytest.mark.parametrize("rounds", range(5))
def test_k01_of_two_workers_that_claim_at_once_exactly_one_wins(
    server: MetastoreServer, queue: CompactionQueue, database: MetastoreDatabase | None, entity: Entity, rounds: int
) -> None:
    pool = str(RequestPool.new(OWNER))
    made = queue.enqueue(entity, CompactionType.MAJOR, pool)
    assert isinstance(made, Enqueued)
    start = threading.Barrier(2)

    def claim(worker: str) -> ClaimedCompaction | None:
        with AcidMetastoreClient([MetastoreAddress(server.host, server.port)]) as client:
            queue = open_queue(client, database)
            start.wait()
            return queue.claim(pool, worker)

    with ThreadPoolExecutor(2) as threads:
        claims = list(threads.map(claim, (WORKER, OTHER_WORKER)))
    (winner,) = [claim for claim in claims if claim is not None]
    assert the_row(queue, made.id).worker_id == winner.worker_id


def test_k02_what_is_kept_stays_as_it_is(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    before = the_row(queue, claim.id)
    queue.keep(claim)
    queue.keep(before)
    after = the_row(queue, claim.id)
    assert replace(after, start_ms=before.start_ms) == before
    assert before.start_ms is not None
    assert after.start_ms is not None
    assert after.start_ms >= before.start_ms


def test_k05_a_silent_claim_is_given_back_or_failed(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    queue.give_back(the_row(queue, claim.id), "silent for a day")
    row = the_row(queue, claim.id)
    assert row.error_message == "silent for a day"
    assert claim.info.pool is not None
    if queue.hive.publishes_by_commit:
        assert row.state is CompactionState.FAILED
    else:
        assert (row.state, row.worker_id, row.start_ms) == (CompactionState.INITIATED, None, None)
        assert queue.claim(claim.info.pool, OTHER_WORKER) is not None
    with pytest.raises(OwnershipLostError):
        queue.keep(claim)


def test_k05_a_claim_that_was_taken_over_is_not_given_back(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    seen = replace(the_row(queue, claim.id), worker_id=OTHER_WORKER)
    with pytest.raises(OwnershipLostError, match="worker-1"):
        queue.give_back(seen, "silent")
    queue.keep(claim)
