"""Whether the rows that a job reports can be those of its plan."""

from __future__ import annotations

from dataclasses import fields

from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, OutputKind
from airflow_provider_acid.plan.result import OutputFile


def wrong_counts(plan: CompactionPlan, file: OutputFile) -> str | None:
    """What is wrong with the counts of an output file; None where nothing is.

    :param file: of a bucket of the plan.
    :returns: a clause whose subject is the file.
    """
    numbers = {field.name: getattr(file, field.name) for field in fields(file) if field.type == "int"}
    negative = sorted(name for name, number in numbers.items() if number < 0)
    if negative:
        return f"is reported with {', '.join(f'{name} = {numbers[name]}' for name in negative)}"
    if file.rows_out != file.rows_in - file.rows_aborted - file.rows_deleted - file.rows_repeated:
        return (
            f"holds {file.rows_out} rows, but {file.rows_in} came in, {file.rows_aborted} of them aborted, "
            f"{file.rows_deleted} deleted and {file.rows_repeated} repeated"
        )
    bucket = next(one for one in plan.buckets if (one.output, one.bucket) == (file.output, file.bucket))
    unfounded = sorted(name for name, why in _unfounded(plan, bucket).items() if why and numbers[name])
    if unfounded:
        named = ", ".join(f"{name} = {numbers[name]}" for name in unfounded)
        return f"is reported with {named}, for which the plan gives no reason"
    return None


def _unfounded(plan: CompactionPlan, bucket: BucketPlan) -> dict[str, bool]:
    """Which counts must be 0: rows go for no other reasons than those that the plan names."""
    events = bucket.output is OutputKind.DELETES
    files_stay_whole = plan.format.is_insert_only
    return {
        "rows_in": not (bucket.deletes if events else bucket.rows),
        "rows_aborted": files_stay_whole or not (plan.aborted_write_ids or _goes_beyond_its_snapshot(plan)),
        "rows_deleted": files_stay_whole or events or not bucket.deletes,
        "rows_repeated": not events,
    }


def _goes_beyond_its_snapshot(plan: CompactionPlan) -> bool:
    """Whether an input holds what was written after the snapshot, which is dropped like what was aborted."""
    names = map(parse_directory_name, plan.directories)
    return any(isinstance(name, DeltaName) and name.max_write_id > plan.high_water_mark for name in names)
