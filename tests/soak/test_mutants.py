"""Every mutant of the protocol is noticed by its test, which passes where nothing is broken."""

from __future__ import annotations

import time

import pytest

from tests.mutants.hunt import PLACE, Hunt, table
from tests.mutants.mutant import all_mutants

LOG = PLACE / "mutants.log"
"""The table."""


def test_no_mutant_is_alive(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()

    def say(line: str) -> None:
        with capsys.disabled():
            print(f"\n{time.monotonic() - started:.0f} s, {line}", end="")

    hunt = Hunt(all_mutants(), say)
    hunt.check_imports()
    assert hunt.broken_tests() == []
    verdicts = hunt.verdicts()
    LOG.write_text(table(verdicts))
    say(f"\n{table(verdicts)}")
    assert [f"{verdict.mutant.name}: {verdict.run}" for verdict in verdicts if verdict.is_alive] == []
