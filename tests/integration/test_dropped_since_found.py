"""What was due, and is dropped before its work begins, fails no task; what somebody names, and is not there, does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from tests.integration.clear_refusals import assert_clear
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, StepRecorder

DROPPED = "it was dropped since it was found due ("


def found_due(site: Site, table: AcidTable, partition: str | None) -> DuePartition:
    for value in range(3):
        table.insert(value, partition=partition)
    (due,) = site.evaluate().due
    assert due.entity == table.entity(partition)
    return due


def drop(site: Site, due: DuePartition) -> None:
    database, table, partition = due.entity.database, due.entity.table, due.entity.partition
    if partition is None:
        site.admin.drop_table(database, table)
    else:
        site.admin.drop_partition(database, table, partition)


@pytest.mark.parametrize("partition", [None, "p=a"])
@ON_BOTH_METASTORES
def test_what_was_found_and_dropped_is_skipped_and_what_is_named_is_refused(site: Site, partition: str | None) -> None:
    table = site.table(partitions=["p=a", "p=b"] if partition else [])
    due = found_due(site, table, partition)
    drop(site, due)
    outcome = site.compact(due)
    assert (outcome.state, outcome.entity) == (OutcomeState.SKIPPED, due.entity)
    assert outcome.message.startswith(DROPPED)
    assert (partition or table.name) in outcome.message
    assert_clear(site, site.compact(replace(due, was_seen=False)), "the metastore does not know", has_row=False)
    assert site.rows(due.entity) == []


@pytest.mark.parametrize("partition", [None, "p=a"])
@ON_BOTH_METASTORES
def test_what_is_dropped_after_its_claim_is_skipped_too_and_its_row_ends(site: Site, partition: str | None) -> None:
    due = found_due(site, site.table(partitions=["p=a", "p=b"] if partition else []), partition)
    recorder = StepRecorder(lambda step: drop(site, due) if step is Step.CLAIMED else None)
    outcome = site.compact(due, on_step=recorder)
    assert outcome.state is OutcomeState.SKIPPED
    assert outcome.message.startswith(DROPPED)
    assert recorder.steps[-1] is Step.TRANSACTION_OPENED
    states = {row.state for row in site.rows(due.entity)}
    assert states <= {CompactionState.REFUSED, CompactionState.FAILED, CompactionState.DID_NOT_INITIATE}
    assert site.admin.transactions().open <= site.open_txns, "its own transaction is over"


@ON_BOTH_METASTORES
def test_a_table_that_was_made_anew_in_another_form_is_refused(site: Site) -> None:
    due = found_due(site, site.table(), None)
    drop(site, due)
    site.table(partitions=["p=a"])
    assert_clear(site, site.compact(due), "is partitioned, but no partition is named", has_row=False)
