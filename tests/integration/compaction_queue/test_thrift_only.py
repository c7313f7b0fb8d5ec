"""What only the queue of Hive 4 can do, or only its server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.exceptions import ConfigurationError, MetastoreError
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_queue.rows import WORKER, the_row

pytestmark = pytest.mark.parametrize("server", ["hive-4-thrift"], indirect=True)

OWNER = owner_of("dag", "compact", "run", "0")


def test_the_server_itself_answers_a_second_failure_with_an_error(
    client: AcidMetastoreClient, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    queue.fail(claim, "once")
    with pytest.raises(MetastoreError):
        client.mark_failed(claim.info, "twice")


@pytest.mark.parametrize("highest_write_id", [None, 0])
def test_the_client_does_not_send_mark_cleaned_without_a_bound_either(
    client: AcidMetastoreClient, queue: CompactionQueue, ready: CompactionRow, highest_write_id: int | None
) -> None:
    with pytest.raises(ConfigurationError):
        client.mark_cleaned(replace(CompactionInfo.of_row(ready), highest_write_id=highest_write_id))
    assert the_row(queue, ready.id).state is CompactionState.READY_FOR_CLEANING


def test_a_row_that_hives_own_cleaner_cleans_between_two_looks_is_left_alone(
    client: AcidMetastoreClient, queue: CompactionQueue, ready: CompactionRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = queue.row

    def clean_after_the_first_look(id: int) -> CompactionRow | None:
        monkeypatch.undo()
        found = look(id)
        client.mark_cleaned(CompactionInfo.of_row(ready))
        return found

    monkeypatch.setattr(queue, "row", clean_after_the_first_look)
    queue.cleaned(ready, 5)
    assert the_row(queue, ready.id).state is CompactionState.SUCCEEDED


def test_c09_rows_of_a_partition_are_cleaned_in_order_of_their_high_water_marks(
    client: AcidMetastoreClient, queue: CompactionQueue, ready: CompactionRow
) -> None:
    second = str(RequestPool.new(OWNER))
    answer = queue.enqueue(ready.entity, CompactionType.MAJOR, second)
    assert isinstance(answer, Enqueued), answer
    claim = queue.claim(second, WORKER)
    assert claim is not None
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 8, transaction.txn_id, "hive"))
        transaction.commit()
    assert [row.id for row in queue.ready_to_clean([ready.entity])] == [ready.id, claim.id]
    queue.cleaned(ready, 5)
    assert [row.id for row in queue.ready_to_clean([ready.entity])] == [claim.id]


def test_k02_an_uncommitted_row_is_not_listed_for_cleaning(
    client: AcidMetastoreClient, queue: CompactionQueue, claim: ClaimedCompaction
) -> None:
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        assert queue.ready_to_clean([claim.entity]) == []
    row = the_row(queue, claim.id)
    assert client.transaction_state(transaction.txn_id) is TxnState.ABORTED
    assert queue.ready_to_clean([claim.entity]) == []
    queue.fail(row, f"transaction {row.txn_id} was aborted")
    assert the_row(queue, claim.id).state is CompactionState.FAILED
