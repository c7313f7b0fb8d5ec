"""Tables whose compactions can be taken back, and what takes them back."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo, Undone
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import AcidTable, Site, due

VALUES = [2, 3, 4, 5]
"""Of five rows, of which one is deleted."""


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
