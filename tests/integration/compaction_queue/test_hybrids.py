"""Servers between Hive 3.1 and Hive 4: what they can do decides; what they lack is named, and nothing is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreVersionError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4.unpooled_queue import UnpooledCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.wire import Method
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer

on_alpha = pytest.mark.parametrize("server", ["hive-4-alpha"], indirect=True)
on_hive_3 = pytest.mark.parametrize("server", ["hive-3-postgresql"], indirect=True)


@on_alpha
def test_a_server_without_pools_is_told_by_what_it_answers_and_works_with_its_database(
    client: AcidMetastoreClient, queue: CompactionQueue
) -> None:
    hive = client.probe()
    assert (hive.queue_speaks_thrift, hive.publishes_by_commit, hive.has_pools) == (True, True, False)
    assert isinstance(queue, UnpooledCompactionQueue)


@on_alpha
def test_without_its_database_it_is_refused_and_a_waiting_request_stays(
    client: AcidMetastoreClient, queue: CompactionQueue, entity: Entity
) -> None:
    """Over Thrift alone it would hand out whatever request is the oldest."""
    asked = client.compact(entity, CompactionType.MAJOR).id
    before = queue.row(asked)
    with pytest.raises(MetastoreVersionError, match=r"has no pools.*shows no transaction.*metastore_db_conn_id"):
        open_queue(client)
    assert queue.row(asked) == before


@on_alpha
@pytest.mark.parametrize("column", ["CQ_TXN_ID", "CQ_NEXT_TXN_ID", "CQ_COMMIT_TIME", "CQ_RETRY_RETENTION"])
def test_without_a_column_by_which_a_compaction_is_a_transaction_it_is_refused(
    server: MetastoreServer, client: AcidMetastoreClient, column: str
) -> None:
    rename = 'ALTER TABLE "COMPACTION_QUEUE" RENAME COLUMN "{}" TO "{}"'
    server.server_database.query(rename.format(column, "AWAY"))
    try:
        with pytest.raises(MetastoreVersionError, match=f"COMPACTION_QUEUE: has no column {column}"):
            open_queue(client, MetastoreDatabase(server.server_database.url))
    finally:
        server.server_database.query(rename.format("AWAY", column))


@on_alpha
def test_without_the_call_by_which_workers_claim_it_is_refused(
    client: AcidMetastoreClient, database: MetastoreDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoke = AcidMetastoreClient._invoke

    def without(self: AcidMetastoreClient, subject: str, method: Method, *arguments: object, repeatable: bool) -> Any:
        known = method if method.name != "find_next_compact2" else Method("no_such_call", method.arguments)
        return invoke(self, subject, known, *arguments, repeatable=repeatable)

    monkeypatch.setattr(AcidMetastoreClient, "_invoke", without)
    with pytest.raises(MetastoreVersionError, match="as Hive 4 has, but not its call find_next_compact2"):
        open_queue(client, database)


@pytest.fixture(params=["CQ_TXN_ID", "CQ_NEXT_TXN_ID"])
def column_of_hive_4(request: pytest.FixtureRequest, server: MetastoreServer) -> Iterator[str]:
    """The queue of Hive 3.1.3 has it, until the test is over."""
    server.server_database.query(f"ALTER TABLE COMPACTION_QUEUE ADD COLUMN {request.param} bigint")
    yield request.param
    server.server_database.query(f"ALTER TABLE COMPACTION_QUEUE DROP COLUMN {request.param}")


@on_hive_3
def test_a_queue_with_a_column_of_hive_4_behind_the_calls_of_hive_3_is_refused(
    server: MetastoreServer, client: AcidMetastoreClient, column_of_hive_4: str
) -> None:
    """What such a server does at commit and at cleaning is not known."""
    database = MetastoreDatabase(server.server_database.url)
    before = server.server_database.query("SELECT * FROM COMPACTION_QUEUE ORDER BY 1")
    with pytest.raises(MetastoreVersionError, match=f"has the column {column_of_hive_4} of Hive 4 .* but not Hive 4's"):
        open_queue(client, database)
    assert server.server_database.query("SELECT * FROM COMPACTION_QUEUE ORDER BY 1") == before
