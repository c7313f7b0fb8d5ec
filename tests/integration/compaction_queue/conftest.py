"""One behaviour suite for every kind of compaction queue, on real metastores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.queue import ClaimedCompaction, CompactionQueue, Enqueued
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import FULL_ACID, TableDefinition, ThriftAdmin
from tests.integration.compaction_queue.rows import WORKER, the_row
from tests.integration.compaction_queue.running import running_server
from tests.integration.compaction_queue.shaky import Shaky, open_shaky
from tests.integration.compaction_queue.writes import Writes

OWNER = owner_of("dag", "compact", "run", "0")
NUMBERS = itertools.count(1)

SERVERS = {
    "hive-4-thrift": "metastore",
    "hive-4-alpha": "hive_4_alpha_metastore",
    "hive-3-postgresql": "hive_3_metastore",
    "hive-3-mariadb": "hive_3_metastore_on_mariadb",
}
"""The kinds of queues, each with the fixture of its server."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[MetastoreServer]:
    running = running_server(request.param)
    if running is not None:
        yield running
        return
    found: MetastoreServer = request.getfixturevalue(SERVERS[request.param])
    with found.in_use():
        yield found


@pytest.fixture(scope="module")
def client(server: MetastoreServer) -> Iterator[AcidMetastoreClient]:
    """Transactions that tests leave open are aborted, for other tests share the server."""
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)], user="tester") as client:
        yield client
        for txn_id in client.open_transactions().open:
            client.abort(txn_id)


@pytest.fixture(scope="module")
def database(server: MetastoreServer) -> MetastoreDatabase | None:
    """None for Derby, which nobody but the metastore can open."""
    return None if server.database_url is None else MetastoreDatabase(server.database_url)


@pytest.fixture(scope="module")
def queue(client: AcidMetastoreClient, database: MetastoreDatabase | None) -> CompactionQueue:
    return open_queue(client, database)


@pytest.fixture
def shaky(server: MetastoreServer) -> Iterator[Shaky]:
    with open_shaky(server) as shaky:
        yield shaky


@pytest.fixture
def entity() -> Entity:
    """New, whoever else works on the same metastore."""
    return Entity("queue_tests", f"t{os.getpid()}_{next(NUMBERS)}", "ds=A%2Fb")


@pytest.fixture
def pool() -> str:
    return str(RequestPool.new(OWNER))


@pytest.fixture
def claim(queue: CompactionQueue, entity: Entity, pool: str) -> ClaimedCompaction:
    """A claimed request."""
    assert isinstance(queue.enqueue(entity, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, WORKER)
    assert claim is not None
    return claim


@pytest.fixture
def ready(client: AcidMetastoreClient, queue: CompactionQueue, claim: ClaimedCompaction) -> CompactionRow:
    """A compaction up to write id 5 that is committed and not cleaned."""
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        transaction.commit()
    return the_row(queue, claim.id)


@pytest.fixture
def writes(server: MetastoreServer, entity: Entity) -> Iterator[Writes]:
    with ThriftAdmin(server.host, server.port) as admin:
        database = f"forget_{entity.table}"
        admin.create_database(database)
        admin.create_table(
            TableDefinition(database, "t", {"v": "bigint"}, partition_keys={"p": "string"}, properties=FULL_ACID)
        )
        yield Writes(server, admin, Entity(database, "t", "p=b"))
