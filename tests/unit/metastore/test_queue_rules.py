"""What no queue does, whichever metastore it is of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.queue_rules import check_recordable, forgettable, in_cleaning_order
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

TABLE, OTHER = Entity("db", "t"), Entity("db", "u")
ROW = CompactionRow(
    4, TABLE, "major", CompactionState.READY_FOR_CLEANING, highest_write_id=5, commit_ms=1, start_ms=1, txn_id=9
)


def test_a_high_water_mark_of_nothing_is_not_recorded() -> None:
    claim = ClaimedCompaction(CompactionInfo.of_row(ROW), "worker")
    check_recordable(claim, 1)
    for nothing in (0, -1):
        with pytest.raises(ConfigurationError, match="nothing was ever written"):
            check_recordable(claim, nothing)


@pytest.mark.parametrize("highest", [None, 0, -1, 6])
def test_nothing_is_forgotten_above_what_the_compaction_saw_nor_everything(highest: int | None) -> None:
    assert [forgettable(ROW, write_id) for write_id in (1, 5)] == [1, 5]
    with pytest.raises(ConfigurationError, match="cannot be marked cleaned"):
        forgettable(ROW, highest)


def test_rows_are_cleaned_once_they_are_committed_older_ones_first() -> None:
    rows = [
        replace(ROW, id=1, highest_write_id=8),
        ROW,
        replace(ROW, id=2),
        replace(ROW, id=3, commit_ms=None),
        replace(ROW, id=5, state=CompactionState.WORKING),
        replace(ROW, id=6, entity=OTHER),
        replace(ROW, id=7, highest_write_id=None),
    ]
    assert [row.id for row in in_cleaning_order(rows, [TABLE])] == [2, 4, 1]
