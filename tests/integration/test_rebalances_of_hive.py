"""A REBALANCE that Hive's own worker carries out; of its commit, Hive 4.0 leaves no time in the queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.values import CompactionState
from tests.integration.compaction_site import AcidTable, Site, TxnType, fingerprint

_REBALANCE = 3
ON_HIVE_4_0 = pytest.mark.parametrize("site", ["hive_4"], indirect=True)


def rebalance(table: AcidTable, *, committed: bool) -> int:
    """What Hive's worker does with its request; the id of that."""
    site = table.site
    request = structs.CompactionRequest(database=site.database, table=table.name, type=_REBALANCE, initiator_id="user")
    asked = site.client._invoke("rebalance", methods.COMPACT2, request, repeatable=False)
    claimed = site.client.find_next_compaction("hive-worker-1", None, "4.0.1")
    assert claimed is not None
    assert claimed.id == asked.id
    txn = site.open_txn(TxnType.REBALANCE_COMPACTION)
    highest = len(table.directories())
    site.client.update_compactor_state(replace(claimed, highest_write_id=highest, run_as="hive"), txn)
    site.client.mark_compacted(claimed)
    if committed:
        site.end(txn, site.admin.commit)
    return claimed.id


@ON_HIVE_4_0
def test_beside_a_rebalance_that_is_committed_all_goes_on(site: Site) -> None:
    table = site.table()
    for value in (1, 2, 3):
        table.insert(value)
    id = rebalance(table, committed=True)
    row = site.queue.row(id)
    assert row is not None
    assert (row.state, row.commit_ms) == (CompactionState.READY_FOR_CLEANING, None)
    table.insert(4)

    (due,) = site.evaluate().due
    outcome = site.compact(due)
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.directories() == list(outcome.targets)
    assert table.values() == [1, 2, 3, 4]
    assert site.queue.row(id) == row


@ON_HIVE_4_0
def test_a_rebalance_that_may_still_commit_is_waited_for(site: Site) -> None:
    table = site.table()
    for value in (1, 2, 3):
        table.insert(value)
    rebalance(table, committed=False)
    before = fingerprint(table.folder())
    (due,) = site.evaluate().due
    outcome = site.compact(due)
    assert outcome.state is OutcomeState.SKIPPED
    assert "waits for the commit of transaction" in outcome.message
    assert fingerprint(table.folder()) == before
