"""Which counts of a job are refused, whatever its storage shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, FileFormat, OutputKind, SourceFile
from airflow_provider_acid.plan.result import OutputFile
from airflow_provider_acid.plan.row_counts import wrong_counts
from tests.unit.acid.test_plan import PLAN

FILE = OutputFile(OutputKind.ROWS, 0, "bucket_00000", 99, 1, 10, 0, 0, 0, 10)
SOURCE = SourceFile("delta_0000001_0000001_0000/bucket_00000", 100)
DELETES = SourceFile("delete_delta_0000004_0000004_0000/bucket_00000", 10)


def plan(**changed: object) -> CompactionPlan:
    """Inserts alone, of which none is aborted."""
    plain = replace(
        PLAN,
        aborted_write_ids=(),
        directories=("delta_0000001_0000001_0000",),
        buckets=(BucketPlan(OutputKind.ROWS, 0, (SOURCE,), ()),),
    )
    return CompactionPlan(**{**vars(plain), **changed})


WITH_DELETES = plan(buckets=(BucketPlan(OutputKind.ROWS, 0, (SOURCE,), (DELETES,)),))
WITH_ABORTED = plan(aborted_write_ids=(1,))
STREAMED = plan(directories=("delta_0000001_0000009",), high_water_mark=5)
OF_DELETES = plan(buckets=(BucketPlan(OutputKind.DELETES, 0, (), (DELETES,)),))
OF_NOTHING = plan(buckets=(BucketPlan(OutputKind.ROWS, 0, (), (DELETES,)),))
INSERT_ONLY = plan(format=FileFormat.ORC, aborted_write_ids=(1,), buckets=WITH_DELETES.buckets)


@pytest.mark.parametrize(
    ("of", "changed"),
    [
        (plan(), {}),
        (WITH_DELETES, {"rows_deleted": 4, "rows_out": 6}),
        (WITH_ABORTED, {"rows_aborted": 4, "rows_out": 6}),
        (STREAMED, {"rows_aborted": 4, "rows_out": 6}),
        (OF_DELETES, {"output": OutputKind.DELETES, "rows_repeated": 4, "rows_out": 6}),
        (OF_NOTHING, {"rows_in": 0, "rows_out": 0}),
        (INSERT_ONLY, {}),
    ],
    ids=["all stay", "deleted", "aborted", "after the snapshot", "repeated", "nothing", "insert-only"],
)
def test_rows_that_go_for_a_reason_of_the_plan_are_right(of: CompactionPlan, changed: dict[str, int]) -> None:
    assert wrong_counts(of, replace(FILE, **changed)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("of", "changed", "reason"),
    [
        (plan(), {"rows_out": 9}, "holds 9 rows, but 10 came in, 0 of them aborted, 0 deleted and 0 repeated"),
        (plan(), {"rows_in": 9}, "holds 10 rows, but 9 came in"),
        (WITH_DELETES, {"rows_deleted": 1}, "holds 10 rows, but 10 came in, 0 of them aborted, 1 deleted"),
        (WITH_DELETES, {"rows_deleted": -1, "rows_in": 9}, "rows_deleted = -1"),
        (WITH_DELETES, {"rows_in": -1, "rows_out": -1}, "rows_in = -1, rows_out = -1"),
        (plan(), {"size_bytes": -1}, "size_bytes = -1"),
        (plan(), {"stripes": -1}, "stripes = -1"),
        (plan(), {"rows_deleted": 10, "rows_out": 0}, "rows_deleted = 10, for which the plan gives no reason"),
        (WITH_DELETES, {"rows_aborted": 10, "rows_out": 0}, "rows_aborted = 10, for which the plan gives no reason"),
        (WITH_DELETES, {"rows_repeated": 10, "rows_out": 0}, "rows_repeated = 10, for which"),
        (OF_DELETES, {"output": OutputKind.DELETES, "rows_deleted": 4, "rows_out": 6}, "rows_deleted = 4, for which"),
        (OF_DELETES, {"output": OutputKind.DELETES, "rows_aborted": 4, "rows_out": 6}, "rows_aborted = 4, for which"),
        (OF_NOTHING, {}, "rows_in = 10, for which the plan gives no reason"),
        (INSERT_ONLY, {"rows_aborted": 4, "rows_out": 6}, "rows_aborted = 4, for which"),
        (INSERT_ONLY, {"rows_deleted": 4, "rows_out": 6}, "rows_deleted = 4, for which"),
    ],
)
def test_any_other_count_is_refused(of: CompactionPlan, changed: dict[str, int], reason: str) -> None:
    assert reason in (wrong_counts(of, replace(FILE, **changed)) or "")  # type: ignore[arg-type]
