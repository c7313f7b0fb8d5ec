"""A compaction is taken back as long as what it replaced is kept: all readers read that again, the same rows and ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo, Undone
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness import the_hive_4
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due
from tests.integration.insert_only_tables import InsertOnly

KEPT_HOURS = 48.0
VALUES = [2, 3, 4, 5]
"""Of five rows, of which one is deleted."""


@pytest.fixture
def keeping(site: Site) -> Site:
    site.settings = replace(site.settings, keep_replaced_hours=KEPT_HOURS, minor_lock_wait_seconds=2.0)
    return site


def written(site: Site, name: str = "t") -> AcidTable:
    table = site.table(name)
    table.insert(1, 2)
    table.insert(3)
    table.write().delete((1, 0)).commit()
    table.insert(4, 5)
    return table


def compacted(site: Site, table: AcidTable, type: CompactionType = CompactionType.MAJOR) -> str:
    outcome = site.compact(due(table.entity(), type=type))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    (target,) = outcome.targets
    return target


def undo(site: Site, table: AcidTable) -> Undone:
    return Undo(site.client, site.queue, site.settings).undo(table.entity())


def cleaned_now(site: Site, table: AcidTable) -> list[CleaningState]:
    """As if the time were over."""
    kept, site.settings = site.settings, replace(site.settings, keep_replaced_hours=0.0)
    states = [cleaning.state for cleaning in site.clean(table.entity())]
    site.settings = kept
    return states


def is_read_by_all(table: AcidTable, rows: object) -> bool:
    """By readers of Hive's kind and by those of Trino's."""
    return table.rows() == rows == table.rows(check_visibility=False)


@ON_BOTH_METASTORES
def test_readers_read_the_same_rows_with_the_same_ids_before_and_after(keeping: Site) -> None:
    site, table = keeping, written(keeping)
    before, rows = table.visible(), table.rows()
    assert sorted(rows.values()) == VALUES
    result = compacted(site, table)
    (kept,) = site.clean(table.entity())
    assert (kept.state, kept.deleted) == (CleaningState.KEPT, ())
    assert kept.message == "what it replaced is kept for 48.0 h more, for an undo (keep_replaced_hours)"
    assert table.visible() == sorted([result, *before])
    assert is_read_by_all(table, rows)

    undone = undo(site, table)
    assert (undone.removed, sorted(undone.restored)) == (result, before)
    assert table.directories() == before, "nothing else is left"
    assert is_read_by_all(table, rows)
    assert site.client.show_locks(table.entity()) == []
    assert site.row(undone.request_id).state is CompactionState.REFUSED
    assert undo(site, table).removed == "", "another try finds it done"

    again = compacted(site, table)
    assert cleaned_now(site, table) == [CleaningState.CLEANED]
    assert table.directories() == [again]
    assert is_read_by_all(table, rows)
