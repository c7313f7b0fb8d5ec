"""What Hive 4 leaves to be removed after a DROP stands in the compaction queue, and is no compaction."""

from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.wire import BOOL, I64, Method, struct_of
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from tests.integration.compaction_site import WITHOUT_HIVES_THREADS, AcidTable, Site, TxnType, fingerprint

_SUBMIT = Method("submit_for_cleanup", (struct_of(structs.CompactionRequest), I64, I64), BOOL)
_MAJOR = 2
PARTITION = "p=a"

pytestmark = WITHOUT_HIVES_THREADS


def soft_delete(table: AcidTable, *, committed: bool) -> None:
    """What Hive does at DROP PARTITION under soft delete."""
    site = table.site
    txn = site.open_txn(TxnType.SOFT_DELETE)
    request = structs.CompactionRequest(
        database=site.database,
        table=table.name,
        partition=PARTITION,
        type=_MAJOR,
        run_as="hive",
        properties={"location": str(table.folder(PARTITION)), "ifPurge": "true"},
    )
    assert site.client._invoke("soft delete", _SUBMIT, request, 3, txn, repeatable=False)
    if committed:
        site.end(txn, site.admin.commit)


def written_table(site: Site) -> AcidTable:
    table = site.table(partitions=[PARTITION, "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition=PARTITION)
        table.insert(10 * value, partition="p=b")
    return table


def stored_row(table: AcidTable) -> CompactionRow:
    """As Hive's own SHOW COMPACTIONS has it."""
    (row,) = table.site.client.compactions(entity=table.entity(PARTITION))
    return row


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "still open"])
def test_a_soft_deletes_row_is_nobodys_compaction(site: Site, committed: bool) -> None:
    table = written_table(site)
    soft_delete(table, committed=committed)
    row, before = stored_row(table), fingerprint(table.folder(PARTITION))
    assert row.state is CompactionState.READY_FOR_CLEANING
    assert (row.commit_ms is not None) is committed
    assert site.rows(table.entity(PARTITION)) == []
    assert site.queue.row(row.id) is None

    assert site.look(table.entity(PARTITION)) == ()
    assert site.clean(table.entity(PARTITION)) == ()
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    report = keeper.sweep(TableSelection.of([f"{site.database}.*"]))
    assert (report.deeds, report.to_clean) == ((), ())
    assert [stuck for stuck in report.stuck if stuck.subject == str(table.entity(PARTITION))] == []

    assert stored_row(table) == row
    assert fingerprint(table.folder(PARTITION)) == before


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "still open"])
def test_beside_a_soft_deletes_row_all_else_goes_on(site: Site, committed: bool) -> None:
    table = written_table(site)
    soft_delete(table, committed=committed)
    row = stored_row(table)
    evaluation = site.evaluate()
    assert {due.entity for due in evaluation.due} == {table.entity(PARTITION), table.entity("p=b")}
    for due in evaluation.due:
        assert site.compact(due).state is OutcomeState.COMPACTED
    site.close()
    assert len(site.clean(table.entity(PARTITION), table.entity("p=b"))) == 2
    assert table.values() == [1, 2, 3, 10, 20, 30]
    assert [found.state for found in site.rows(table.entity("p=b"))] == [CompactionState.SUCCEEDED]
    assert row.id in {found.id for found in site.client.compactions(state=CompactionState.READY_FOR_CLEANING)}
