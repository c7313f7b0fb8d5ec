"""One plan as one Spark job: a task per output file, then the driver puts the winners in place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.exchange import PLAN_FILE, RESULT_FILE
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import marker_files
from airflow_provider_acid.acid.plan import CompactionPlan, OutputKind
from airflow_provider_acid.acid.result import CompactionResult, OutputFile
from airflow_provider_acid.exceptions import (
    AcidError,
    RefusedError,
    SparkJobError,
    StorageError,
    VerificationError,
)
from airflow_provider_acid.filesystem import ObjectStorage, Storage, Storages
from airflow_provider_acid.spark_jobs.merge import merge_bucket
from airflow_provider_acid.spark_jobs.merged import Merged
from airflow_provider_acid.spark_jobs.run_directory import RunDirectory

_PERCENT_STEP = 10

_QUIET_SECONDS = 1.0
"""So long a task tells nothing: each word is a new file, which takes as long as merging a small bucket."""


@dataclass(frozen=True)
class RunItem:
    """One partition of a run, as far as a task has to know it.

    :param storages: opens the run directory and the partition's location.
    :param run_uri: the run directory, for the tasks' progress.
    :param number: the item's place in the run.
    """

    storages: Storages
    run_uri: str
    number: int


def run_plan(spark: SparkSession, plan: CompactionPlan, item: RunItem) -> CompactionResult:
    """Carry out a plan up to its sealed staging directory.

    :returns: the result; its ``error`` is set when the plan could not be carried out, whatever the reason.
    """
    return carry_out(item.storages, plan, lambda: _run_tasks(spark, plan, item))


def carry_out(storages: Storages, plan: CompactionPlan, merge_buckets: Callable[[], list[Merged]]) -> CompactionResult:
    """Merge by whatever means and seal the staging directory.

    :param merge_buckets: merges every bucket of the plan; the outcomes by bucket.
    :returns: as :func:`run_plan`.
    """
    start = time.monotonic()
    try:
        storage = storages.open(plan.location)
        files = _merge_all(storage, plan, merge_buckets)
        # Whatever a sealed result names was written before; see compaction/staging_by_copy.
        _check_wanted(storage, plan)
        result = CompactionResult(plan.attempt, plan.entity, None, files, time.monotonic() - start)
        storage.write_new(f"{plan.staging}/{RESULT_FILE}", result.to_json().encode())
    except AcidError as error:
        return CompactionResult(plan.attempt, plan.entity, str(error), (), time.monotonic() - start)
    return result


def _merge_all(
    storage: Storage, plan: CompactionPlan, merge_buckets: Callable[[], list[Merged]]
) -> tuple[OutputFile, ...]:
    _check_wanted(storage, plan)
    for output in plan.outputs:
        _check_untouched(storage, plan, output.kind)
    merged = merge_buckets()
    files = _stay(merged) if isinstance(storage, ObjectStorage) else _put_together(storage, plan, merged)
    for output in plan.outputs:
        for name, content in marker_files(output.target).items():
            storage.write_new(f"{plan.staged(output.kind)}/{name}", content)
    return files


def _put_together(storage: Storage, plan: CompactionPlan, merged: Sequence[Merged]) -> tuple[OutputFile, ...]:
    """Rename the files into one directory, which the operator will rename."""
    for written in merged:
        if written.attempt is not None:
            storage.publish(written.attempt, f"{plan.staged(written.file.output)}/{written.file.name}")
    return tuple(written.file for written in merged)


def _stay(merged: Sequence[Merged]) -> tuple[OutputFile, ...]:
    """Leave them where they are: without renames that would be a copy, and the operator has to make one anyway."""
    return tuple(replace(written.file, attempt=written.attempt) for written in merged)


def _check_wanted(storage: Storage, plan: CompactionPlan) -> None:
    # Only the operator writes plans and makes directories: where a successor removed them, nothing brings them back.
    name = f"{plan.staging}/{PLAN_FILE}"
    if not storage.exists(name):
        raise StorageError(
            f"{plan.location}/{name}",
            "does not exist, its attempt was given up",
            "let the operator try again; it plans anew",
        )


def _check_untouched(storage: Storage, plan: CompactionPlan, kind: OutputKind) -> None:
    output = plan.staged(kind)
    found = storage.list(output) if storage.exists(output) else Listing()
    if found.files or found.directories:
        raise StorageError(
            f"{plan.location}/{output}",
            "holds the output of another run of the same attempt",
            "let the operator try again; it removes this directory and plans anew",
        )


def _run_tasks(spark: SparkSession, plan: CompactionPlan, item: RunItem) -> list[Merged]:
    tasks = len(plan.buckets)
    if tasks == 0:
        return []
    # A range gives exactly one row to each Spark task; a repartition does not promise that. A plain Python function is
    # enough for so few rows, and unlike mapInArrow it does not need pandas on the driver.
    merge = udf(_bucket_task(plan.to_json(), item), "string", useArrow=False).asNondeterministic()
    try:
        rows = spark.range(0, tasks, 1, tasks).select(merge("id").alias("answer")).collect()
    except PySparkException as error:
        raise SparkJobError(
            str(plan.entity),
            f"its Spark job failed ({_last_line(str(error))})",
            "see the executors' logs of the Spark application; nothing was published",
        ) from error
    merged: list[Merged] = []
    errors: list[str] = []
    for row in rows:
        answer = fields.as_object(json.loads(row["answer"]), "task's answer")
        if answer.get("error") is not None:
            errors.append(fields.text(answer, "error"))
        else:
            merged += fields.children(answer, "merged", _merged_from_json)
    if errors:
        more = f" ({len(errors) - 1} more buckets failed)" if len(errors) > 1 else ""
        raise _TaskError(errors[0] + more)
    found = sorted({(written.file.output, written.file.bucket) for written in merged})
    if found != sorted((bucket.output, bucket.bucket) for bucket in plan.buckets):
        raise SparkJobError(str(plan.entity), f"Spark returned results of buckets {found}", "run the compaction again")
    return sorted(merged, key=lambda written: (written.file.output, written.file.bucket, written.file.name or ""))


def _merged_from_json(data: JsonObject) -> Merged:
    return Merged(fields.optional_text(data, "attempt"), OutputFile.from_json(fields.child(data, "file")))


class _TaskError(AcidError):
    """A refusal from a task, whose text already names object, reason and remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "", "")

    def __str__(self) -> str:
        return self.subject


def _bucket_task(document: str, item: RunItem) -> Callable[[int], str]:
    """What runs on an executor: merges the bucket whose place in the plan is the row's number."""

    def run(place: int) -> str:
        return answer_for(document, place, item)

    return run


def answer_for(document: str, place: int, item: RunItem) -> str:
    """Merge one bucket of a plan and describe the outcome in JSON.

    A refusal is an answer: Spark would only repeat it. A failing storage is raised, so that Spark tries again.
    """
    plan = CompactionPlan.from_json(document)
    bucket = plan.buckets[place]
    progress = _BucketProgress(
        RunDirectory(item.storages.open(item.run_uri)), item.number, bucket.bucket, bucket.input_bytes
    )
    try:
        merged = merge_bucket(item.storages.open(plan.location), plan, bucket, progress)
    except (RefusedError, VerificationError) as error:
        return json.dumps({"error": str(error)})
    progress(bucket.input_bytes)
    return json.dumps({"merged": [asdict(written) for written in merged]})


class _BucketProgress:
    """Tells the run directory about every tenth of a bucket, where that takes long."""

    def __init__(self, run: RunDirectory, item: int, bucket: int, input_bytes: int) -> None:
        self._run = run
        self._item = item
        self._bucket = bucket
        self._input_bytes = max(input_bytes, 1)
        self._told = 0
        self._begin_seconds = time.monotonic()

    def __call__(self, done_bytes: int) -> None:
        if time.monotonic() - self._begin_seconds < _QUIET_SECONDS:
            return
        percent = done_bytes * 100 // self._input_bytes
        if percent >= min(self._told + _PERCENT_STEP, 100) > self._told:
            self._told = percent
            # A live display is not worth a compaction.
            with suppress(StorageError):
                self._run.write_bucket_progress(self._item, self._bucket, percent)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    named = [line for line in lines if "Error:" in line or "Exception:" in line]
    return (named or lines or ["no reason was given"])[-1]
