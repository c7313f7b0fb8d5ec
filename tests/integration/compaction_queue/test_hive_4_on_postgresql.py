"""What no call of Hive 4 does is done in its database; so is what 4.0.1 cannot do on PostgreSQL: mark a row cleaned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.exceptions import MetastoreError, OwnershipLostError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4.by_sql import WITHHELD_MS, mark_cleaned
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue, Enqueued
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import FULL_ACID, TableDefinition, ThriftAdmin
from tests.integration.compaction_queue.rows import WORKER, the_row

COLUMNS = 'SELECT "TC_WRITEID" FROM "TXN_COMPONENTS" WHERE "TC_DATABASE" = \'{0}\' ORDER BY 1'


@dataclass(frozen=True)
class Scene:
    """An unpartitioned table with one committed and two aborted writes, compacted up to the second."""

    server: MetastoreServer
    client: AcidMetastoreClient
    database: MetastoreDatabase
    row: CompactionRow

    def aborted(self) -> list[int]:
        """Aborted write ids that are remembered."""
        rows = self.server.server_database.query(COLUMNS.format(self.row.entity.database))
        return [int(str(row[0])) for row in rows]


@pytest.fixture
def scene(hive_4_metastore_on_postgres: MetastoreServer, entity: Entity, pool: str) -> Iterator[Scene]:
    server, name = hive_4_metastore_on_postgres, f"finish_{entity.table}"
    address = MetastoreAddress(server.host, server.port)
    database = MetastoreDatabase(server.server_database.url)
    table = Entity(name, "t")
    with ThriftAdmin(server.host, server.port) as admin, AcidMetastoreClient([address], user="tester") as client:
        admin.create_database(name)
        admin.create_table(TableDefinition(name, "t", {"v": "bigint"}, properties=FULL_ACID))
        for end in (admin.commit, admin.abort):
            write(admin, table, end)
        queue = open_queue(client, database)
        id = compact(client, queue, table, pool)
        write(admin, table, admin.abort)
        yield Scene(server, client, database, the_row(queue, id))


def compact(client: AcidMetastoreClient, queue: CompactionQueue, table: Entity, pool: str) -> int:
    """The bookkeeping of a compaction up to the second write; its row's id."""
    assert isinstance(queue.enqueue(table, CompactionType.MAJOR, pool), Enqueued)
    claim = queue.claim(pool, WORKER)
    assert claim is not None
    with CompactionTransaction(client, table) as transaction:
        queue.complete(queue.record(claim, 2, transaction.txn_id, "hive"))
        transaction.commit()
    return claim.id


def write(admin: ThriftAdmin, table: Entity, end: object) -> None:
    [txn] = admin.open_transactions()
    admin.allocate_write_ids(table.database, table.table, [txn])
    admin.lock_as_writer(txn, table.database, table.table)
    end(txn)  # type: ignore[operator]  # commit or abort


def test_with_its_database_a_row_is_kept_from_hives_cleaner_before_it_is_ready(
    scene: Scene, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def look(client: AcidMetastoreClient, info: CompactionInfo) -> None:
        query = f'SELECT "CQ_STATE", "CQ_RETRY_RETENTION" FROM "COMPACTION_QUEUE" WHERE "CQ_ID" = {info.id}'
        seen.extend(scene.server.server_database.query(query))
        mark_compacted(client, info)

    mark_compacted = AcidMetastoreClient.mark_compacted
    monkeypatch.setattr(AcidMetastoreClient, "mark_compacted", look)
    queue = open_queue(scene.client, scene.database)
    queue.cleaned(scene.row, 2)
    compact(scene.client, queue, scene.row.entity, pool)
    assert [tuple(row) for row in seen] == [("w", WITHHELD_MS)]  # type: ignore[arg-type]  # rows of a database


def test_without_its_database_the_row_is_kept(scene: Scene) -> None:
    queue = ThriftCompactionQueue(scene.client, HIVE_4)
    with pytest.raises(MetastoreError):
        queue.cleaned(scene.row, 2)
    assert the_row(queue, scene.row.id) == scene.row
    assert scene.aborted() == [2, 3]


def test_with_its_database_the_cleaning_is_finished(scene: Scene) -> None:
    queue = open_queue(scene.client, scene.database)
    queue.cleaned(scene.row, 2)
    row = the_row(queue, scene.row.id)
    assert row.state is CompactionState.SUCCEEDED
    assert row.end_ms is not None
    assert (row.highest_write_id, row.next_txn_id, row.txn_id) == (2, scene.row.next_txn_id, scene.row.txn_id)
    assert scene.aborted() == [3]


def test_a_row_that_is_not_as_believed_is_not_finished(scene: Scene) -> None:
    queue = open_queue(scene.client, scene.database)
    id = scene.row.id
    for change in ('"CQ_COMMIT_TIME" = "CQ_COMMIT_TIME" + 1', '"CQ_TXN_ID" = "CQ_TXN_ID" + 1', "\"CQ_STATE\" = 'w'"):
        scene.server.server_database.query(f'UPDATE "COMPACTION_QUEUE" SET {change} WHERE "CQ_ID" = {id}')
        changed = the_row(queue, id)
        mark_cleaned(scene.database, scene.row, 2)
        assert the_row(queue, id) == changed
        with pytest.raises(OwnershipLostError):
            queue.cleaned(scene.row, 2)
        assert scene.aborted() == [2, 3]
