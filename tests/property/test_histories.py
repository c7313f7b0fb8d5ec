"""500 random histories: after every step every engine reads what was written, whatever was compacted and cleaned."""

from __future__ import annotations

import pytest

from tests.harness.acid_history.many import HISTORIES_PER_SEED, play_seed

SEEDS = range(500 // HISTORIES_PER_SEED)
MUST_HAPPEN = (
    "Write",
    "Overwrite",
    "Stream",
    "AddColumn",
    "OpenReader",
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


@pytest.mark.parametrize("seed", SEEDS)
def test_every_snapshot_reads_its_rows_after_every_step(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    figures = play_seed(seed)
    with capsys.disabled():
        print(f"\nseed {seed}: {figures['histories']} histories, {figures['readings']} readings")
    assert [what for what in MUST_HAPPEN if not figures[what]] == []
