"""20,000 random histories; see ``tests/property``."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.harness.acid_history.many import HISTORIES_PER_SEED, play_seeds

HISTORIES = 20_000
FIRST_SEED = 1_000

LOG = Path(__file__).parents[2] / ".cache" / "histories.log"
"""What happened in them, and how often."""


def test_every_snapshot_reads_its_rows_after_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + HISTORIES // HISTORIES_PER_SEED)
    started = time.monotonic()
    sum_of_all: Counter[str] = Counter()
    for seed, figures in play_seeds(seeds):
        sum_of_all.update(figures)
        LOG.write_text(table(sum_of_all))
        with capsys.disabled():
            print(
                f"\n{sum_of_all['histories']} of {HISTORIES} histories, {time.monotonic() - started:.0f} s, "
                f"seed {seed}: {figures['readings']} readings",
                end="",
            )


def table(figures: Counter[str]) -> str:
    return "".join(f"{number:>10,}  {what}\n" for what, number in sorted(figures.items()))
