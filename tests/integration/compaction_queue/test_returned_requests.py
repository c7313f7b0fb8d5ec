"""Requests of others on Hive 4: claimed by id in the database; else what is handed out instead is asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.withdrawal import withdraw
from tests.integration.compaction_queue.rows import WORKER, the_row

INITIATED = CompactionState.INITIATED
OTHERS = "a worker of Hive's"


class Overtaken:
    """A client before whose claim another worker takes what stands first."""

    def __init__(self, client: AcidMetastoreClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def find_next_compaction(self, worker_id: str, pool: str | None, worker_version: str) -> object:
        self._client.find_next_compaction(OTHERS, pool, worker_version)
        return self._client.find_next_compaction(worker_id, pool, worker_version)


@pytest.fixture
def client(hive_4_metastore_on_postgres: MetastoreServer) -> Iterator[AcidMetastoreClient]:
    server = hive_4_metastore_on_postgres
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)], user="tester") as client:
        waiting = [row.id for row in client.compactions(state=INITIATED)]
        if waiting:
            withdraw(client, waiting)
        yield client


def overtaken(client: AcidMetastoreClient) -> CompactionQueue:
    return ThriftCompactionQueue(cast(AcidMetastoreClient, Overtaken(client)), HIVE_4)


def ask_to_rebalance(client: AcidMetastoreClient, entity: Entity) -> CompactionRow:
    request = structs.CompactionRequest(
        database=entity.database,
        table=entity.table,
        partition=entity.partition,
        type=3,
        properties={"compactor.x": "y"},
        initiator_id="eve",
        bucket_count=4,
        order_by="order by v desc",
    )
    answer = client._invoke("rebalance", methods.COMPACT2, request, repeatable=False)
    (row,) = client.compactions(id=answer.id)
    return row


def wanted_and_rebalance(client: AcidMetastoreClient, entity: Entity) -> tuple[int, CompactionRow]:
    """The id of a request of one partition, and behind it a request that is not ours to do."""
    wanted = client.compact(replace(entity, partition="ds=1"), CompactionType.MAJOR)
    return wanted.id, ask_to_rebalance(client, entity)


def stored(server: MetastoreServer, id: int) -> dict[str, object]:
    """The whole row."""
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'COMPACTION_QUEUE' ORDER BY 1"
    names = [str(row[0]) for row in server.server_database.query(columns)]
    listed = ", ".join(f'"{name}"' for name in names)
    (row,) = server.server_database.query(f'SELECT {listed} FROM "COMPACTION_QUEUE" WHERE "CQ_ID" = {id}')
    return dict(zip(names, row, strict=True))


def test_with_the_database_each_is_claimed_by_its_id_whatever_stands_before_it(
    hive_4_metastore_on_postgres: MetastoreServer, client: AcidMetastoreClient, entity: Entity
) -> None:
    server = hive_4_metastore_on_postgres
    rebalance = ask_to_rebalance(client, entity)
    wanted = client.compact(replace(entity, partition="ds=1"), CompactionType.MAJOR).id
    before = stored(server, rebalance.id)
    queue = ThriftCompactionQueue(client, HIVE_4, MetastoreDatabase(server.server_database.url))
    waiting = the_row(queue, wanted)
    assert queue.line([rebalance, waiting]) == []
    claim = queue.claim_foreign(waiting, WORKER)
    assert isinstance(claim, ClaimedCompaction)
    row = the_row(queue, wanted)
    assert (row.state, row.worker_id) == (CompactionState.WORKING, WORKER)
    assert claim.info == CompactionInfo.of_row(row)
    assert (row.start_ms or 0) >= (row.enqueue_ms or 0) > 0
    assert stored(server, rebalance.id) == before


def test_with_the_database_a_request_that_waits_no_more_or_not_in_that_pool_is_not_claimed(
    hive_4_metastore_on_postgres: MetastoreServer, client: AcidMetastoreClient, entity: Entity
) -> None:
    queue = ThriftCompactionQueue(client, HIVE_4, MetastoreDatabase(hive_4_metastore_on_postgres.server_database.url))
    taken = client.compact(replace(entity, partition="ds=1"), CompactionType.MAJOR).id
    waiting = the_row(queue, taken)
    assert queue.claim_foreign(waiting, OTHERS) is not None
    assert queue.claim_foreign(waiting, WORKER) is None
    assert the_row(queue, taken).worker_id == OTHERS
    pooled = client.compact(replace(entity, partition="ds=2"), CompactionType.MAJOR, pool="etl").id
    for other in (None, "ETL", "etl2"):
        assert queue.claim_foreign(replace(the_row(queue, pooled), pool=other), WORKER) is None
        assert the_row(queue, pooled).state is INITIATED
    claim = queue.claim_foreign(the_row(queue, pooled), WORKER)
    assert isinstance(claim, ClaimedCompaction)
    assert (claim.id, claim.info.pool) == (pooled, "etl")


def test_without_it_what_is_handed_out_instead_is_asked_for_again(
    hive_4_metastore_on_postgres: MetastoreServer, client: AcidMetastoreClient, entity: Entity
) -> None:
    server = hive_4_metastore_on_postgres
    wanted, rebalance = wanted_and_rebalance(client, entity)
    before = stored(server, rebalance.id)
    queue = overtaken(client)
    again = queue.claim_foreign(the_row(queue, wanted), WORKER)
    assert isinstance(again, CompactionRow)
    ended = the_row(queue, rebalance.id)
    assert ended.state is CompactionState.REFUSED
    assert ended.error_message == "was handed out in place of another request, and is asked for again under a new id"
    after = stored(server, again.id)
    assert {name for name in before if before[name] != after[name]} == {"CQ_ID", "CQ_ENQUEUE_TIME"}


def test_the_server_says_how_long_a_pool_keeps_its_requests(client: AcidMetastoreClient) -> None:
    assert client.pool_timeout_seconds() == 43_200
