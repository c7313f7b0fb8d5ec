"""The random histories find each hole by themselves that readers once lost rows through, if its fix is taken out.

So does the run of all at once, of the hole that only a real server has.
"""

from __future__ import annotations

import pytest

from tests.harness.hive_engine_program import HIVE_4_2
from tests.mutants.checkout import Checkout
from tests.mutants.mutant import ROOT, all_mutants

HOLES = (
    "a cleaning takes later compactions for visible to everybody",
    "Hive 4 leaves its READ_ONLY transactions out",
    "what DROP left for Hive's own Cleaner is ended as a compaction",
    "the directory is listed before the transactions are looked at",
    "a group's later partition is looked at as of its first one's transaction",
    "what a dead attempt committed is never made ready for cleaning",
    "who commits while a successor looks is taken for dead",
    "a result is published though another's cleaning may count it",
)
AT_ONCE = "test_whoever_reads_while_others_write_compact_clean_and_undo_reads_the_ledgers_rows"
MOST_HISTORIES = 2_000
SEEDS = range(5_000, 5_005)

FIRST_FAILURE = """
import sys
from tests.harness.acid_history.many import first_failure
print(first_failure(*map(int, sys.argv[1:])))
"""


@pytest.mark.parametrize("hole", HOLES)
def test_histories_find_a_hole(hole: str, capsys: pytest.CaptureFixture[str]) -> None:
    mutant = next(mutant for mutant in all_mutants() if mutant.name == hole)
    checkout = Checkout(ROOT / ".cache" / "holes" / str(HOLES.index(hole)))
    with checkout.spoilt_by(mutant):
        found = [checkout.printed_by(FIRST_FAILURE, str(seed), str(MOST_HISTORIES)).strip() for seed in SEEDS]
    with capsys.disabled():
        print(f"\n{hole}: found by history {', '.join(found)}", end="")
    assert "None" not in found
    mean = sum(map(int, found)) / len(found)
    with capsys.disabled():
        print(f"; mean {mean:.0f}", end="")


def test_writers_and_readers_at_once_find_that_hives_cleaner_takes_a_row_of_ours() -> None:
    """No history can: it is about a thread of Hive 4.2 that only the real server has."""
    mutant = next(mutant for mutant in all_mutants() if mutant.name == "Hive's own Cleaner may take a row of ours")
    checkout = Checkout(ROOT / ".cache" / "holes" / "hives-cleaner")
    run = f"tests/integration/test_concurrency.py::{AT_ONCE}[{HIVE_4_2}]"
    with checkout.spoilt_by(mutant):
        assert checkout.run(run).failed
    assert checkout.run(run).passed
