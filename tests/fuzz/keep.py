"""Puts a case into the corpus: ``python -m tests.fuzz.keep tests.fuzz.plans.SUBJECT 1234``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.harness.fuzzing.mutation import case_bytes
from tests.harness.fuzzing.subject import subject_at


def main(path: str, number: int) -> None:
    """Write the document of a case, under its number."""
    subject = subject_at(path)
    folder = Path(__file__).parent / "corpus" / subject.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_bytes(case_bytes(subject.name, number, subject.seeds()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
