"""A metastore in another time zone than its MariaDB: what is compared is told by one clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.queues import check_metastore, open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from tests.harness.mariadb_server import MariaDbServer
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import UNPROTECTED, MetastoreServer
from tests.integration.compaction_queue.rows import the_row

HOUR_MS = 3_600_000
MOST_APART_MS = 15 * 60_000

ZONES = {"America/New_York": 1, "Asia/Tokyo": -1}
"""Whether the metastore's clock is ahead there of that of a database in UTC, or behind."""


@pytest.fixture(scope="module", params=ZONES)
def server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    mariadb: MariaDbServer,
    hive_3_program: MetastoreProgram,
) -> Iterator[MetastoreServer]:
    with MetastoreServer(
        tmp_path_factory.mktemp("metastore"),
        reaper=True,
        program=hive_3_program,
        database=ServerDatabase(mariadb, f"zone_{request.param.replace('/', '_').lower()}"),
        protection=replace(UNPROTECTED, java_options=(f"-Duser.timezone={request.param}",)),
    ) as server:
        yield server


def test_times_of_requests_are_by_the_clock_of_transactions(
    client: AcidMetastoreClient, database: MetastoreDatabase, claim: ClaimedCompaction, request: pytest.FixtureRequest
) -> None:
    """Seen: what is kept for hours was taken for kept long enough right away."""
    now_ms = client.server_now_ms()
    sign = ZONES[request.node.callspec.params["server"]]
    assert sign * (now_ms - database.read("clock", database.now_ms)) > 3 * HOUR_MS
    queue = open_queue(client, database)
    with CompactionTransaction(client, claim.entity) as transaction:
        queue.complete(queue.record(claim, 5, transaction.txn_id, "hive"))
        transaction.commit()
    row = the_row(queue, claim.id)
    for noted_ms in (row.enqueue_ms, row.start_ms, row.commit_ms):
        assert noted_ms is not None
        assert abs(noted_ms - now_ms) < MOST_APART_MS
    queue.cleaned(row, None)
    end_ms = the_row(queue, claim.id).end_ms
    assert end_ms is not None
    assert abs(end_ms - now_ms) < MOST_APART_MS


def test_a_transaction_that_was_just_opened_is_not_taken_for_silent(
    client: AcidMetastoreClient, database: MetastoreDatabase, claim: ClaimedCompaction
) -> None:
    with CompactionTransaction(client, claim.entity):
        check_metastore(client, database)
