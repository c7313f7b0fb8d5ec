"""20,000 random histories; see ``tests/property``."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import pytest

from tests.harness.acid_history.many import HISTORIES_PER_SEED, play_seed

HISTORIES = 20_000
FIRST_SEED = 1_000

LOG = Path(__file__).parents[2] / ".cache" / "histories.log"
"""What happened in them, and how often."""


def test_every_snapshot_reads_its_rows_after_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + HISTORIES // HISTORIES_PER_SEED)
    processes = min(2, os.cpu_count() or 1)
    started = time.monotonic()
    sum_of_all: Counter[str] = Counter()
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        playing = {pool.submit(play_seed, seed): seed for seed in seeds}
        try:
            for done, future in enumerate(as_completed(playing), start=1):
                figures = future.result()
                sum_of_all.update(figures)
                LOG.write_text(table(sum_of_all))
                with capsys.disabled():
                    print(
                        f"\n{done * HISTORIES_PER_SEED} of {HISTORIES} histories, {time.monotonic() - started:.0f} s, "
                        f"seed {playing[future]}: {figures['readings']} readings",
                        end="",
                    )
        finally:
            pool.shutdown(cancel_futures=True)


def table(figures: Counter[str]) -> str:
    return "".join(f"{number:>10,}  {what}\n" for what, number in sorted(figures.items()))
