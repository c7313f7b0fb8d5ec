"""Histories in which a cleaning once took a reader's rows away, played step by step."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_acid.acid.partition import MinorPublication
from airflow_provider_acid.acid.plan import CompactionType
from tests.harness.acid_history.player import play
from tests.harness.acid_history.steps import (
    Begin,
    Clean,
    Compact,
    End,
    FinishCompaction,
    History,
    OpenReader,
    StartCompaction,
    Statement,
    TableKind,
    What,
    Write,
)


def insert(*places: int) -> Write:
    return Write((Statement(What.INSERT, places),))


def test_a_reader_begins_while_a_later_compaction_runs_and_the_older_one_is_cleaned_after_it(tmp_path: Path) -> None:
    steps = (
        insert(0, 0, 0),
        insert(0),
        insert(0),
        Write((Statement(What.DELETE, (0,)),)),
        Begin(),
        Compact(CompactionType.MINOR),
        StartCompaction(CompactionType.MAJOR),
        OpenReader(has_lock=False),
        FinishCompaction(),
        End(0),
        Clean(),
    )
    figures = play(History(TableKind(4, mixed=MinorPublication.LOCK_FREE), steps), tmp_path)
    assert figures["directories deleted"] > 0
