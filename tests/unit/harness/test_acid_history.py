"""The random histories' own tests: that a difference is found, told and can be played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history import player, steps
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.script import as_python, in_words
from tests.harness.acid_history.steps import Death, History, Oddity, Outcome, Statement, TableKind, What

INSERT = steps.Write((Statement(What.INSERT, (0, 1, 1)),))
DELETE = steps.Write((Statement(What.DELETE, (1,)),))
HISTORIES = {
    "minor of two kinds, then major": (
        TableKind(4),
        (INSERT, INSERT, DELETE, steps.Compact(CompactionType.MINOR), steps.Compact(CompactionType.MAJOR)),
    ),
    "an open batch of a stream": (
        TableKind(3),
        (
            steps.Stream((Outcome.COMMIT, Outcome.ABORT, Outcome.OPEN), (0, 1), halted=True),
            INSERT,
            steps.Compact(CompactionType.MAJOR),
            steps.End(0),
            steps.Compact(CompactionType.MAJOR),
            steps.Clean(),
        ),
    ),
    "original files with a deleted row": (
        TableKind(4, buckets=2, originals=(2, 1, 1, 1, 2, 1, -1)),
        (DELETE, steps.Compact(CompactionType.MINOR), steps.Clean()),
    ),
    "LOAD DATA over everything, read by an older query": (
        TableKind(4),
        (
            INSERT,
            steps.OpenReader(),
            steps.Overwrite((0, 3, 6, 9, 1), loaded=True),
            DELETE,
            steps.Compact(CompactionType.MAJOR),
            steps.Clean(),
        ),
    ),
    "a pair of a group died one step before its end, is read around, and is made ready late": (
        TableKind(4),
        (
            INSERT,
            INSERT,
            DELETE,
            steps.GroupBegins(),
            steps.Compact(CompactionType.MINOR, Death.BEFORE_ITS_END),
            steps.OpenReader(has_lock=False),
            INSERT,
            steps.Compact(CompactionType.MINOR),
            steps.Compact(CompactionType.MINOR, Death.BEFORE_ITS_END),
            steps.Clean(),
            steps.Compact(CompactionType.MINOR),
            steps.CloseReader(0),
            steps.Clean(),
        ),
    ),
    "death between two renames": (
        TableKind(3),
        (INSERT, INSERT, DELETE, DELETE, steps.Compact(CompactionType.MINOR, Death.BETWEEN_RENAMES)),
    ),
}


@pytest.mark.parametrize(("table", "some"), HISTORIES.values(), ids=HISTORIES.keys())
def test_a_history_is_read_as_it_was_written(table: TableKind, some: tuple[steps.Step, ...], tmp_path: Path) -> None:
    assert player.play(History(table, some), tmp_path)["readings"] > len(some)


def test_a_lost_row_is_told_with_the_script_and_how_to_play_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partition, "rows_for", lambda self, committed: {(1, 536870912, 7): {"id": "7", "v": "lost"}})
    with pytest.raises(player.HistoryError, match=r"rows \[\(1, 536870912, 7\)\] are missing") as told:
        player.play(History(TableKind(4), (INSERT,)), tmp_path)
    assert "TableKind hive_version 4" in str(told.value)
    assert f"History(table={as_python(TableKind(4))}, steps=({as_python(INSERT)}, ))" in str(told.value)


def test_a_step_in_words_says_what_is_special_about_it() -> None:
    step = steps.Write((Statement(What.UPDATE, (3, 1)),), Outcome.OPEN, Oddity.NONE)
    assert in_words(step) == "Write statements [Statement what update, picks [3, 1]], outcome open"


def test_a_history_as_python_is_that_history() -> None:
    names = {**vars(steps), "MinorPublication": MinorPublication, "CompactionType": CompactionType}
    for table, some in HISTORIES.values():
        history = History(table, some)
        assert eval(as_python(history), names) == history
