"""What waits to be cleaned is kept alive by the housekeeping of Hive 3, beside whoever cleans it."""

from __future__ import annotations

from unittest.mock import Mock

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import Chore, HousekeepingReport
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import MetastoreError, ObjectNotFoundError, OwnershipLostError
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

ROW = CompactionRow(
    id=1, entity=Entity("d", "t"), type="major", state=CompactionState.READY_FOR_CLEANING, txn_id=5, commit_ms=1
)


def swept(keep: Exception | None) -> HousekeepingReport:
    """A round of housekeeping that finds one row, and what comes of keeping it."""
    client, queue = Mock(), Mock(hive=HIVE_3)
    client.transactions.return_value = client.databases.return_value = queue.ready_to_clean.return_value = []
    client.server_now_ms.return_value = 0
    client.get_table.side_effect = ObjectNotFoundError("table d.t", "does not exist", "none")
    queue.rows.return_value = [ROW]
    queue.keep.side_effect = keep
    settings = CompactionSettings(transaction_timeout_seconds=1.0)
    housekeeper = Housekeeper(client, queue, settings, forgotten_seconds=60.0, max_partitions=1)
    return housekeeper.sweep(TableSelection.of(["d.t"], []))


def test_a_claim_that_waits_is_kept() -> None:
    report = swept(None)
    assert [deed.chore for deed in report.deeds] == [Chore.CLAIM_KEPT]
    assert report.stuck == ()


def test_a_claim_that_was_cleaned_since_it_was_looked_at_is_no_problem() -> None:
    report = swept(OwnershipLostError("compaction 1 of d.t", "the row is now succeeded", "none"))
    assert (report.deeds, report.stuck) == ((), ())


def test_a_claim_that_cannot_be_kept_is_a_problem() -> None:
    (stuck,) = swept(MetastoreError("compaction 1 of d.t", "the right is missing", "none")).stuck
    assert "the right is missing" in stuck.message
