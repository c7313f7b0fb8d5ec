"""What the queue in Hive 3.1's database does beyond the interface: what others see of it, and what it forgets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreUnavailableError, OwnershipLostError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.hive3.mutex import InitiatorMutex
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_queue.rows import OTHER_WORKER, WORKER, the_row
from tests.integration.compaction_queue.writes import Writes, execute

MUTEX_SECONDS = 60.0

pytestmark = pytest.mark.parametrize("server", ["hive-3-postgresql", "hive-3-mariadb"], indirect=True)


def stored(server: MetastoreServer, id: int) -> list[tuple[object, ...]]:
    """State and worker of a row in the queue."""
    return execute(server, f"SELECT CQ_STATE, CQ_WORKER_ID FROM COMPACTION_QUEUE WHERE CQ_ID = {id}")


def test_k02_a_published_row_is_working_for_everybody_else(
    server: MetastoreServer, client: AcidMetastoreClient, ready: CompactionRow
) -> None:
    assert ready.state is CompactionState.READY_FOR_CLEANING
    assert stored(server, ready.id) == [("w", WORKER)]
    assert [row.state for row in client.compactions(id=ready.id)] == [CompactionState.WORKING]


def test_a_refused_row_is_an_attempted_one_for_everybody_else(
    client: AcidMetastoreClient, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    queue.refuse(claim, "table is sorted")
    assert [row.state for row in client.compactions(id=claim.id)] == [CompactionState.DID_NOT_INITIATE]


def test_who_may_still_read_is_recorded_when_the_result_is_published(
    server: MetastoreServer, client: AcidMetastoreClient, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    with ThriftAdmin(server.host, server.port) as admin:
        [own] = admin.open_transactions()
        client.lock_shared_read(own, claim.entity)
        [reader] = admin.open_transactions()
        lock = client.lock_shared_read(reader, claim.entity)
        queue.complete(queue.record(claim, 5, own, "hive"))
        [newer] = admin.open_transactions()
        row = the_row(queue, claim.id)
        assert row.newest_lock_id == lock.lock_id
        assert row.next_txn_id is not None
        assert reader <= row.next_txn_id < newer
        for txn in (own, reader, newer):
            admin.abort(txn)


def take_back(server: MetastoreServer, row: CompactionRow) -> None:
    """What Hive's Initiator does after its worker time-out."""
    execute(
        server,
        f"UPDATE COMPACTION_QUEUE SET CQ_STATE = 'i', CQ_WORKER_ID = NULL, CQ_START = NULL WHERE CQ_ID = {row.id}",
    )


def test_k05_a_published_row_that_hive_took_back_is_claimed_again_and_cleaned(
    server: MetastoreServer, queue: CompactionQueue, ready: CompactionRow
) -> None:
    take_back(server, ready)
    taken = the_row(queue, ready.id)
    assert (taken.state, taken.commit_ms) == (CompactionState.INITIATED, ready.commit_ms)
    with pytest.raises(OwnershipLostError, match="initiated"):
        queue.keep(ready)
    with pytest.raises(OwnershipLostError, match="initiated"):
        queue.cleaned(ready, 5)
    assert ready.pool is not None
    claim = queue.claim(ready.pool, OTHER_WORKER)
    assert claim is not None
    assert (claim.txn_id, claim.info.highest_write_id) == (ready.txn_id, 5)
    assert replace(the_row(queue, ready.id), start_ms=ready.start_ms) == ready
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id).state is CompactionState.SUCCEEDED


def test_nothing_of_a_dead_claim_holds_for_its_successor(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    queue.set_job_id(queue.record(claim, 5, 77, "hive"), "application_1")
    queue.give_back(the_row(queue, claim.id), "silent")
    assert claim.info.pool is not None
    assert queue.claim(claim.info.pool, OTHER_WORKER) is not None
    row = the_row(queue, claim.id)
    assert (row.highest_write_id, row.txn_id, row.job_id, row.error_message) == (None, None, None, None)
    assert row.pool == claim.info.pool


@pytest.mark.parametrize("change", ["record", "fail", "refuse", "give_back"])
def test_the_worker_cannot_undo_what_it_published(
    queue: CompactionQueue, claim: ClaimedCompaction, change: str
) -> None:
    claim = queue.record(claim, 5, 77, "hive")
    queue.complete(claim)
    ready = the_row(queue, claim.id)
    changes: dict[str, Callable[[], object]] = {
        "record": lambda: queue.record(claim, 9, 78, "hive"),
        "fail": lambda: queue.fail(claim, "no"),
        "refuse": lambda: queue.refuse(claim, "no"),
        "give_back": lambda: queue.give_back(ready, "silent"),
    }
    with pytest.raises(OwnershipLostError):
        changes[change]()
    queue.fence(claim)
    assert the_row(queue, claim.id) == ready


def test_a_row_published_since_it_was_looked_up_is_not_failed(queue: CompactionQueue, claim: ClaimedCompaction) -> None:
    claim = queue.record(claim, 5, 77, "hive")
    seen = the_row(queue, claim.id)
    queue.complete(claim)
    with pytest.raises(OwnershipLostError, match="ready for cleaning"):
        queue.fail(seen, "its owner died")
    with pytest.raises(OwnershipLostError, match="ready for cleaning"):
        queue.give_back(seen, "its owner died")
    assert the_row(queue, claim.id).state is CompactionState.READY_FOR_CLEANING


def test_a_row_that_hives_own_cleaner_is_to_clean_is_left_to_it(
    server: MetastoreServer, queue: CompactionQueue, database: MetastoreDatabase, claim: ClaimedCompaction
) -> None:
    """Such a row is not listed; and cannot be marked cleaned by mistake. The other Cleaner is too fast to wait for."""
    row = replace(the_row(queue, claim.id), state=CompactionState.READY_FOR_CLEANING, worker_id=None)
    with pytest.raises(OwnershipLostError):
        queue.cleaned(replace(row, highest_write_id=5), None)
    assert queue.ready_to_clean([row.entity]) == []


def test_a_claim_is_not_given_back_while_an_initiator_works(
    server: MetastoreServer, database: MetastoreDatabase, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    row = the_row(queue, claim.id)
    mutex = InitiatorMutex.of(database)

    def give_back_meanwhile(connection: object) -> None:
        mutex.hold(connection)  # type: ignore[arg-type]  # a connection, which only the database can make
        with pytest.raises(MetastoreUnavailableError, match="lock"):
            queue.give_back(row, "silent")

    deadline = time.monotonic() + MUTEX_SECONDS
    while True:
        try:
            database.write("mutex", give_back_meanwhile)
            break
        except MetastoreUnavailableError:
            # The server's own Initiator has the mutex just now.
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert the_row(queue, claim.id) == row


# What is forgotten after the cleaning


def publish(queue: CompactionQueue, entity: Entity, pool: str, highest_write_id: int) -> CompactionRow:
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, WORKER)
    assert claim is not None
    queue.complete(queue.record(claim, highest_write_id, 77, "hive"))
    return the_row(queue, claim.id)


def test_c10_only_what_was_compacted_is_forgotten(queue: CompactionQueue, writes: Writes, pool: str) -> None:
    committed = writes.write(["p=b", "p=c"])
    aborted = writes.write(["p=b", "p=c", None], aborted=True)
    [still_open] = writes.admin.open_transactions()
    row = publish(queue, writes.entity, pool, aborted)
    later = writes.write(["p=b"])
    later_aborted = writes.write(["p=b"], aborted=True)
    queue.cleaned(row, aborted)
    assert writes.remembered() == {
        "TXN_COMPONENTS": {(aborted, "p=c"), (aborted, None), (later_aborted, "p=b")},
        "COMPLETED_TXN_COMPONENTS": {(committed, "p=c"), (later, "p=b")},
    }
    writes.admin.abort(still_open)


def test_c10_what_an_open_transaction_wrote_is_never_forgotten(
    server: MetastoreServer, queue: CompactionQueue, writes: Writes, pool: str
) -> None:
    write_id = writes.write(["p=b"], aborted=True)
    execute(
        server,
        "UPDATE TXNS SET TXN_STATE = 'o' WHERE TXN_ID IN (SELECT TC_TXNID FROM TXN_COMPONENTS "
        f"WHERE TC_DATABASE = '{writes.entity.database}')",
    )
    queue.cleaned(publish(queue, writes.entity, pool, write_id), write_id)
    assert writes.remembered()["TXN_COMPONENTS"] == {(write_id, "p=b")}


def test_c10_a_lower_bound_keeps_what_lies_above_it(queue: CompactionQueue, writes: Writes, pool: str) -> None:
    first, second = (writes.write(["p=b"], aborted=True) for _ in range(2))
    queue.cleaned(publish(queue, writes.entity, pool, second), first)
    assert writes.remembered()["TXN_COMPONENTS"] == {(second, "p=b")}


def test_c10_nothing_is_forgotten_if_told_so(queue: CompactionQueue, writes: Writes, pool: str) -> None:
    assert queue.hive.can_forget_nothing
    committed, aborted = writes.write(["p=b"]), writes.write(["p=b"], aborted=True)
    row = publish(queue, writes.entity, pool, aborted)
    queue.cleaned(row, None)
    assert the_row(queue, row.id).state is CompactionState.SUCCEEDED
    assert writes.remembered() == {
        "TXN_COMPONENTS": {(aborted, "p=b")},
        "COMPLETED_TXN_COMPONENTS": {(committed, "p=b")},
    }


def test_c10_another_partition_is_another_by_case_alone(queue: CompactionQueue, writes: Writes, pool: str) -> None:
    """MySQL compares names without regard to case, and to spaces at the end."""
    aborted = writes.write(["p=b", "p=B", "p=b "], aborted=True)
    committed = writes.write(["p=b", "p=B", "p=b "])
    queue.cleaned(publish(queue, writes.entity, pool, committed), committed)
    assert writes.remembered() == {
        "TXN_COMPONENTS": {(aborted, "p=B"), (aborted, "p=b ")},
        "COMPLETED_TXN_COMPONENTS": {(committed, "p=B"), (committed, "p=b ")},
    }


def test_c10_an_aborted_write_that_may_be_another_partitions_is_not_forgotten(
    queue: CompactionQueue, writes: Writes, pool: str
) -> None:
    """Hive 3.1's lock() records a write to p=B as one to p=b."""
    writes.admin.add_partitions(writes.entity.database, "t", ["p=b", "p=B"])
    committed, aborted = writes.write(["p=b"]), writes.write(["p=b"], aborted=True)
    queue.cleaned(publish(queue, writes.entity, pool, aborted), aborted)
    assert writes.remembered() == {"TXN_COMPONENTS": {(aborted, "p=b")}, "COMPLETED_TXN_COMPONENTS": set()}
    assert committed < aborted


def test_c10_an_unpartitioned_tables_records_are_those_without_partition(
    queue: CompactionQueue, writes: Writes, pool: str
) -> None:
    aborted, committed = writes.write([None, "p=b"], aborted=True), writes.write([None, "p=b"])
    entity = replace(writes.entity, partition=None)
    queue.cleaned(publish(queue, entity, pool, committed), committed)
    assert writes.remembered() == {
        "TXN_COMPONENTS": {(aborted, "p=b")},
        "COMPLETED_TXN_COMPONENTS": {(committed, "p=b")},
    }


def test_what_was_written_is_known_by_table_until_it_is_cleaned(
    queue: CompactionQueue, database: MetastoreDatabase, writes: Writes, pool: str
) -> None:
    records, entity = WriteRecords(database), writes.entity
    assert entity.full_table_name not in records.tables()
    written = writes.write(["p=b", "p=c"])
    writes.write(["p=c"])
    writes.write([None, "p=ä", "p=a"], aborted=True)
    assert entity.full_table_name in records.tables()
    assert records.partitions(entity.database, entity.table) == {"p=b", "p=c", None, "p=ä", "p=a"}
    assert records.partitions(entity.database, "another") == frozenset()
    queue.cleaned(publish(queue, entity, pool, written), written)
    assert records.partitions(entity.database, entity.table) == {"p=c", None, "p=ä", "p=a"}


def test_what_an_open_transaction_writes_is_not_known_yet(database: MetastoreDatabase, writes: Writes) -> None:
    entity = writes.entity
    [txn] = writes.admin.open_transactions()
    writes.admin.allocate_write_ids(entity.database, entity.table, [txn])
    writes.admin.lock_as_writer(txn, entity.database, entity.table, "p=b")
    assert WriteRecords(database).partitions(entity.database, entity.table) == frozenset()
    writes.admin.commit(txn)
    assert WriteRecords(database).partitions(entity.database, entity.table) == {"p=b"}


def test_the_history_has_all_that_the_queue_had(
    server: MetastoreServer, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    claim = queue.record(claim, 5, 77, "hive")
    queue.set_job_id(claim, "application_1")
    columns = (
        "ID, DATABASE, TABLE, PARTITION, TYPE, TBLPROPERTIES, WORKER_ID, START, RUN_AS, HIGHEST_WRITE_ID, HADOOP_JOB_ID"
    )
    names = {prefix: ", ".join(prefix + name for name in columns.split(", ")) for prefix in ("CQ_", "CC_")}
    before = execute(server, f"SELECT {names['CQ_']} FROM COMPACTION_QUEUE WHERE CQ_ID = {claim.id}")
    queue.fail(claim, "no")
    assert execute(server, f"SELECT {names['CC_']} FROM COMPLETED_COMPACTIONS WHERE CC_ID = {claim.id}") == before
    assert stored(server, claim.id) == []
