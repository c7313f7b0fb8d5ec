"""One plan as Spark jobs: a task per output file or slice of one, then the driver puts the winners in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from pyspark.sql import SparkSession

from airflow_provider_acid.acid.names import marker_files
from airflow_provider_acid.exceptions import AcidError, ConfigurationError, SparkJobError, StorageError
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.merge.app.bucket_tasks import (
    Begun,
    Parts,
    RunItem,
    Slice,
    begin_task,
    join_task,
    slice_task,
)
from airflow_provider_acid.merge.app.packs import Pack
from airflow_provider_acid.merge.app.pyarrow_version import check_pyarrow
from airflow_provider_acid.merge.app.spark_tasks import TaskError, run_tasks
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.exchange import OUTPUTS_DIRECTORY, PLAN_FILE, RESULT_FILE
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult, Fault, OutputFile


def run_plan(spark: SparkSession, plan: CompactionPlan, item: RunItem, pack: Pack | None = None) -> CompactionResult:
    """Carry out a plan up to its finished staging directory.

    :param pack: merges it together with others, in another thread; None where it is merged alone.
    :returns: the result; its ``error`` is set when the plan could not be carried out, whatever the reason.
    """

    def merge_buckets() -> list[Merged]:
        check_pyarrow()
        together = None if pack is None else pack.merged(item.number)
        return _in_order(plan, _run_tasks(spark, plan, item) if together is None else together)

    return carry_out(item.storages, plan, merge_buckets)


def carry_out(storages: Storages, plan: CompactionPlan, merge_buckets: Callable[[], list[Merged]]) -> CompactionResult:
    """Merge by whatever means and finish the staging directory.

    :param merge_buckets: merges every bucket of the plan; the outcomes by bucket.
    :returns: as :func:`run_plan`.
    """
    start = time.monotonic()
    try:
        storage = storages.open(plan.location)
        files = _merge_all(storage, plan, merge_buckets)
        # Whatever a finished result names was written before; see compaction/by_copy.
        _check_wanted(storage, plan)
        seconds = time.monotonic() - start
        result = CompactionResult(plan.attempt, plan.digest, plan.entity, None, files, seconds)
        storage.write_new(f"{plan.staging}/{RESULT_FILE}", result.to_json().encode())
    except AcidError as error:
        fault = error.fault if isinstance(error, TaskError) else Fault.of(error)
        return CompactionResult.failed(plan, str(error), time.monotonic() - start, fault)
    return result


def _merge_all(
    storage: Storage, plan: CompactionPlan, merge_buckets: Callable[[], list[Merged]]
) -> tuple[OutputFile, ...]:
    _check_untouched(storage, plan)
    merged = merge_buckets()
    files = _put_together(storage, plan, merged) if storage.rules.renames else _stay(merged)
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


def _check_untouched(storage: Storage, plan: CompactionPlan) -> None:
    """Check by one look that the plan is wanted, and that nothing was made of it yet."""
    try:
        staged = storage.list(plan.staging, into=lambda name: name == OUTPUTS_DIRECTORY)
    except StorageError:
        _check_wanted(storage, plan)
        raise
    if PLAN_FILE not in {file.path for file in staged.files}:
        _check_wanted(storage, plan)
    for output in plan.outputs:
        found = staged.below(f"{OUTPUTS_DIRECTORY}/{output.kind.value}")
        if found.files or found.directories:
            raise StorageError(
                f"{plan.location}/{plan.staged(output.kind)}",
                "holds the output of another run of the same attempt",
                "let the operator try again; it removes this directory and plans anew",
            )


def _run_tasks(spark: SparkSession, plan: CompactionPlan, item: RunItem) -> list[Merged]:
    """Merge the buckets by Spark jobs of their own; those that turn out too large for one task in slices."""
    document, entity, places = plan.to_json(), str(plan.entity), range(len(plan.buckets))
    begun: list[Begun] = run_tasks(spark, entity, places, lambda place: begin_task(document, place, item))
    cut = {place: found for place, found in enumerate(begun) if isinstance(found, SlicedRows)}
    slices = [Slice(place, sliced, number) for place, sliced in cut.items() for number in range(len(sliced.slices))]
    written = run_tasks(spark, entity, slices, lambda task: slice_task(document, task, item))
    answers = iter(written)
    parts = [Parts(place, sliced, tuple(islice(answers, len(sliced.slices)))) for place, sliced in cut.items()]
    joined = run_tasks(spark, entity, parts, lambda task: join_task(document, task, item))
    if written:
        # What is left of them goes with the staging directory, as where a driver lacks what it takes to delete.
        with suppress(StorageError, ConfigurationError):
            item.storages.open(plan.location).delete([part.path for part in written])
    return [*joined, *(one for found in begun if not isinstance(found, SlicedRows) for one in found)]


def _in_order(plan: CompactionPlan, merged: Sequence[Merged]) -> list[Merged]:
    """The files of all buckets that were planned, and of no others."""
    found = sorted({(one.file.output, one.file.bucket) for one in merged})
    if found != sorted((bucket.output, bucket.bucket) for bucket in plan.buckets):
        raise SparkJobError(str(plan.entity), f"Spark returned results of buckets {found}", "run the compaction again")
    return sorted(merged, key=lambda one: (one.file.output, one.file.bucket, one.file.name or ""))
