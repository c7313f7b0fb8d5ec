"""Whatever a document has become, it is read rightly or refused by one of the project's errors, soon and in little
memory.
"""

from __future__ import annotations

import pytest

from tests.fuzz.subjects import CORPUS, SUBJECTS
from tests.harness.fuzzing.player import play_cases
from tests.harness.fuzzing.subject import subject_at


@pytest.mark.parametrize("path", SUBJECTS)
def test_a_damaged_document_is_read_rightly_or_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    subject = subject_at(path)
    figures = play_cases(path, range(subject.cases), CORPUS)
    with capsys.disabled():
        print(f"\n{subject.name}: {dict(figures.most_common())}", end="")
    assert figures.total() >= subject.cases
    assert len(figures) > 1, "some are read and some are refused, or the damages are the wrong ones"
