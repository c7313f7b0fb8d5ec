"""100,000 damaged documents; see ``tests/fuzz``."""

from __future__ import annotations

import pytest

from tests.fuzz.subjects import CORPUS, SUBJECTS
from tests.harness.fuzzing.player import play_cases

CASES = 100_000
FIRST_CASE = 1_000_000
"""Beyond those that CI plays."""


@pytest.mark.parametrize("path", SUBJECTS)
def test_a_damaged_document_is_read_rightly_or_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = range(FIRST_CASE, FIRST_CASE + -(-CASES // len(SUBJECTS)))
    figures = play_cases(path, cases, CORPUS)
    with capsys.disabled():
        print(f"\n{path}: {figures.total():,} cases: {dict(figures.most_common())}", end="")
    assert figures.total() >= len(cases)
