"""Results, as the operator reads them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.plan.plan import OutputKind
from airflow_provider_acid.plan.result import CompactionResult, OutputFile
from tests.fuzz.plans import MAJOR
from tests.harness.fuzzing.subject import Subject


def seeds() -> Sequence[bytes]:
    """A success, and a failure."""
    file = OutputFile(
        OutputKind.ROWS, 0, "bucket_00000", 1234, 2, 100, 3, 7, 0, 90, attempt="attempts/0-1/bucket_00000"
    )
    done = CompactionResult(MAJOR.attempt, MAJOR.digest, MAJOR.entity, None, (file,), 1.5)
    failed = CompactionResult.failed(MAJOR, "delta_1: is truncated. Remedy: none.", 0.25)
    return [result.to_json().encode() for result in (done, failed)]


def read(document: bytes) -> None:
    """What is read is written in the same form again."""
    result = CompactionResult.from_json(document)
    assert CompactionResult.from_json(result.to_json()) == result


SUBJECT = Subject("results", seeds, read)
