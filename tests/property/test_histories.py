"""500 random histories: after every step every engine reads what was written, whatever was compacted and cleaned."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.harness.acid_history.many import HISTORIES_PER_SEED, play_seeds

HISTORIES = 500
MUST_HAPPEN = (
    "Write",
    "Overwrite",
    "Stream",
    "AddColumn",
    "OpenReader",
    "SoftDelete",
    "GroupBegins",
    "HiveCompacts",
    "HiveStarts",
    "HiveMarks",
    "HiveMarks between two looks",
    "HiveFinishes between two looks",
    "HiveFinishes",
    "HiveCleans",
    "Write between two looks",
    "OpenReader between two looks",
    "died one step before its end",
    "made ready late",
    "woke up before its commit",
    "ended while a successor looked",
    "requests cleaned",
    "histories of Hive 3",
    "histories of Hive 4",
    "major published, 1 directories",
    "minor published, 1 directories",
    "minor published, 2 directories",
    "original files merged",
    "LOAD DATA files merged",
    "flush lengths kept",
    "aborted write ids dropped",
    "directories deleted",
    "aborted write ids forgotten",
)


def test_every_snapshot_reads_its_rows_after_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    figures: Counter[str] = Counter()
    for _, of_seed in play_seeds(range(HISTORIES // HISTORIES_PER_SEED)):
        figures.update(of_seed)
        with capsys.disabled():
            print(f"\n{figures['histories']} of {HISTORIES} histories, {figures['readings']} readings", end="")
    assert [what for what in MUST_HAPPEN if not figures[what]] == []
