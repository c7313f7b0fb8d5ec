"""Plans and results as they lie in the run directory: nothing that was changed is ever looked at."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.acid.sealing import KEY_BYTES, RunKey
from tests.fuzz import plans, results
from tests.harness.fuzzing.subject import Subject

KEY = RunKey("run", bytes(range(KEY_BYTES)))
NAME = "0000.plan.json"
CONTENTS = frozenset((*plans.seeds(), *results.seeds()))


def seeds() -> Sequence[bytes]:
    """Sealed files that the operator or the driver wrote."""
    return [KEY.sealed(NAME, content) for content in sorted(CONTENTS)]


def read(document: bytes) -> None:
    """Only what was written is opened."""
    assert KEY.opened("file:/runs/run/0000.plan.json", NAME, document) in CONTENTS


SUBJECT = Subject("sealed-files", seeds, read)
