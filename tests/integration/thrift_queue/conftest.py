"""A queue on a real Hive 4 metastore, over Thrift alone, and requests in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, Enqueued
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionRow
from tests.harness.metastore_server import MetastoreServer
from tests.integration.thrift_proxy import ThriftProxy
from tests.integration.thrift_queue.rows import the_row

OWNER = owner_of("dag", "compact", "run", "0")
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def client(metastore: MetastoreServer) -> Iterator[AcidMetastoreClient]:
    with AcidMetastoreClient([MetastoreAddress(metastore.host, metastore.port)], user="tester") as client:
        yield client


@pytest.fixture(scope="module")
def queue(client: AcidMetastoreClient) -> ThriftCompactionQueue:
    return ThriftCompactionQueue(client)


@pytest.fixture
def proxy(metastore: MetastoreServer) -> Iterator[ThriftProxy]:
    with ThriftProxy(metastore.host, metastore.port) as proxy:
        yield proxy


@pytest.fixture
def shaky_queue(proxy: ThriftProxy) -> Iterator[ThriftCompactionQueue]:
    """A queue behind a network that can lose answers."""
    with AcidMetastoreClient([MetastoreAddress(proxy.host, proxy.port)], timeout_seconds=20) as client:
        yield ThriftCompactionQueue(client)


@pytest.fixture
def entity() -> Entity:
    return Entity("queue_tests", f"t{next(NUMBERS)}", "ds=A%2Fb")


@pytest.fixture
def pool() -> str:
    return str(RequestPool.new(OWNER))


@pytest.fixture
def claim(queue: ThriftCompactionQueue, entity: Entity, pool: str) -> ClaimedCompaction:
    """A claimed request."""
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, "worker-1")
    assert claim is not None
    return claim


@pytest.fixture
def ready(client: AcidMetastoreClient, queue: ThriftCompactionQueue, claim: ClaimedCompaction) -> CompactionRow:
    """A compaction up to write id 5 that is committed and not cleaned."""
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        transaction.commit()
    return the_row(queue, claim.id)
