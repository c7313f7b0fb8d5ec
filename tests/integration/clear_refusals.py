"""What every refusal and failure must look like: clear, in the queue, and without a trace in the table."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.values import CompactionState
from tests.integration.compaction_site import AcidTable, Site

UNPUBLISHED = {
    OutcomeState.REFUSED: {CompactionState.REFUSED, CompactionState.FAILED},
    OutcomeState.FAILED: {CompactionState.FAILED},
}
"""States of the queue's row: what a merge refuses is not tried again, and counts against the partition all the same."""


def inserts(site: Site, name: str = "t", count: int = 3, **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(count):
        table.insert(value, value)
    return table


def assert_clear(site: Site, outcome: Outcome, text: str, *, has_row: bool = True) -> None:
    """The message names object, reason and remedy, and the queue's row carries it where there is one."""
    assert outcome.state in UNPUBLISHED, outcome
    assert text in outcome.message
    assert re.fullmatch(r".+: .+\. Remedy: .+\.", outcome.message), outcome.message
    if has_row:
        row = site.row(outcome.request_id)
        assert row.state in UNPUBLISHED[outcome.state]
        assert row.error_message == outcome.message
    assert site.admin.transactions().open <= site.open_txns, "its own transaction is over"


# Kinds of tables
