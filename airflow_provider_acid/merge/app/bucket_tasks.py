"""What runs on executors: the merge of a bucket, of a slice of one, and the joining of slices.

A refusal is an answer: Spark would only repeat it. A failing storage is raised, so that Spark tries again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from airflow_provider_acid.exceptions import (
    ConfigurationError,
    ForbiddenError,
    RefusedError,
    StorageError,
    VerificationError,
)
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app.driver_run import TaskReports
from airflow_provider_acid.merge.app.pyarrow_version import check_pyarrow
from airflow_provider_acid.merge.buckets import begin_bucket
from airflow_provider_acid.merge.files.answers import Merged, Part
from airflow_provider_acid.merge.files.kept_files import keeping
from airflow_provider_acid.merge.merge_rows import join_rows, write_part
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan
from airflow_provider_acid.plan.result import Fault

_T = TypeVar("_T")

_PERCENT_STEP = 10

_QUIET_SECONDS = 1.0
"""So long a task tells nothing: each word is a new file, which takes as long as merging a small bucket."""


@dataclass(frozen=True)
class RunItem:
    """One partition of a run, as far as a task has to know it.

    :param storages: opens the run directory and the partition's location.
    :param run_uri: the run directory, for the tasks' progress.
    :param number: the item's place in the run.
    :param slots: how many tasks of the application run at a time.
    """

    storages: Storages
    run_uri: str
    number: int
    slots: int = 1

    @property
    def reports(self) -> TaskReports:
        """What tasks write into the run directory."""
        return TaskReports(self.storages.open(self.run_uri))


@dataclass(frozen=True)
class Refusal:
    """Why a task's work is not possible; the text names object, reason and remedy."""

    text: str
    fault: Fault = Fault.UNKNOWN


Begun = tuple[Merged, ...] | SlicedRows
"""What a look at a bucket comes to: its files, or how it is cut."""


@dataclass(frozen=True)
class Slice:
    """One slice of a bucket.

    :param place: of the bucket in the plan.
    :param number: of the slice.
    """

    place: int
    sliced: SlicedRows
    number: int


@dataclass(frozen=True)
class Parts:
    """All slices of a bucket, written.

    :param place: of the bucket in the plan.
    :param parts: in their order.
    """

    place: int
    sliced: SlicedRows
    parts: tuple[Part, ...]


def begin_task(document: str, place: int, item: RunItem) -> Begun | Refusal:
    """Merge a bucket, or find out how it is cut.

    :param document: the plan in JSON.
    :param place: of the bucket in the plan.
    """
    plan, bucket = _bucket_of(document, place)
    progress = _Tenths(item, bucket)

    def work() -> Begun:
        begun = begin_bucket(keeping(item.storages.open(plan.location)), plan, bucket, progress, item.slots)
        if not isinstance(begun, SlicedRows):
            progress(bucket.input_bytes)
        return begun

    return _answer(work)


def slice_task(document: str, task: Slice, item: RunItem) -> Part | Refusal:
    """Write a slice's part.

    :param document: the plan in JSON.
    """
    plan, bucket = _bucket_of(document, task.place)
    begin_seconds = time.monotonic()

    def work() -> Part:
        part = write_part(item.storages.open(plan.location), plan, bucket, task.sliced, task.number)
        if time.monotonic() - begin_seconds >= _QUIET_SECONDS:
            mebibytes = sum(segment.size_bytes for segment in task.sliced.of_slice(task.number)) >> 20
            with suppress(StorageError):
                item.reports.write_slice(item.number, bucket.bucket, task.number, mebibytes)
        return part

    return _answer(work)


def join_task(document: str, task: Parts, item: RunItem) -> Merged | Refusal:
    """Join a bucket's parts.

    :param document: the plan in JSON.
    """
    plan, bucket = _bucket_of(document, task.place)
    progress = _Tenths(item, bucket)

    def work() -> Merged:
        merged = join_rows(item.storages.open(plan.location), plan, bucket, task.sliced, task.parts, progress)
        progress(bucket.input_bytes)
        return merged

    return _answer(work)


@cache
def spare_what_is_loaded() -> None:
    """Keep the garbage collector off all modules, once a process.

    PySpark's worker collects after every task, which with pyarrow loaded takes longer than merging a small bucket.
    """
    gc.collect()
    gc.freeze()


def _bucket_of(document: str, place: int) -> tuple[CompactionPlan, BucketPlan]:
    plan = CompactionPlan.from_json(document)
    return plan, plan.buckets[place]


def _answer(work: Callable[[], _T]) -> _T | Refusal:
    try:
        check_pyarrow()
        return work()
    except (ConfigurationError, ForbiddenError, RefusedError, VerificationError) as error:
        return Refusal(str(error), Fault.of(error))


class _Tenths:
    """Tells the run directory about every tenth of a bucket, where that takes long."""

    def __init__(self, item: RunItem, bucket: BucketPlan) -> None:
        self._reports = item.reports
        self._item = item.number
        self._bucket = bucket.bucket
        self._input_bytes = max(bucket.input_bytes, 1)
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
                self._reports.write_bucket_progress(self._item, self._bucket, percent)
