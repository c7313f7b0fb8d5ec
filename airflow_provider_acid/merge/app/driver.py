"""The driver of a run: what ``spark_jobs/compact.py`` does once it has a session.

It waits for plans in the run directory, carries out all that are there at the same time, and reports each partition as
soon as it is finished. It ends when the operator says so, when the operator shows no sign of life, or when the run
directory is gone; whatever ends it, nothing that it began goes on.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    CorruptFileError,
    StorageError,
    UnauthenticatedError,
)
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app.bucket_tasks import RunItem
from airflow_provider_acid.merge.app.driver_run import Batch, DriverRun, RunGoneError, Seen
from airflow_provider_acid.merge.app.packs import PACK_BYTES, PACK_PLANS, PACK_SECONDS, Pack, Packed, is_small
from airflow_provider_acid.merge.app.partition_job import run_plan
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult

_MOST_PAUSE_SECONDS = 0.5
_LEAST_PACKS_AT_ONCE = 1
"""Two were no faster: the plans of a pack are put in place while the next one is merged."""

_SLOTS_OF_A_PACK = 8
"""Of so many task slots each pack has work for all."""

_MAX_CONCURRENT_PLANS = 512
"""Threads, each of which waits for the Spark jobs of a plan; the operator bounds how many plans there are."""
_LAST_CALL_SECONDS = 30.0

EXIT_DONE = 0
EXIT_ABANDONED = 3


@dataclass
class _Running:
    plan: CompactionPlan
    future: Future[CompactionResult]
    start_seconds: float
    done_bytes: int = 0
    reports: int = 0


class Driver:
    """Watches a run directory and runs its plans.

    :param run_uri: the run directory.
    :param storages: opens it and the tables' locations, also in the tasks.
    :param secret: of the run's key; no task gets it.
    """

    def __init__(self, spark: SparkSession, run_uri: str, storages: Storages, secret: bytes) -> None:
        self._spark = spark
        self._storages = storages
        self._run_uri = run_uri
        self._run = DriverRun(storages.open(run_uri), secret)
        self._running: dict[int, _Running] = {}
        self._small: dict[int, CompactionPlan] = {}
        """Those that wait for a pack."""
        self._packs: list[tuple[Future[Any], float]] = []
        """Jobs with small plans, each with the time of its beginning."""
        self._slots = 1
        self._finished: set[int] = set()
        self._alive = -1
        self._last_sign_seconds = 0.0
        self._pause_seconds = exchange.LEAST_PAUSE_SECONDS

    def run(self) -> int:
        """Work until nobody waits for anything; what was begun and is not done is cancelled.

        :returns: the exit code.
        """
        try:
            batch = self._run.batch()
            if self._work(batch):
                return EXIT_DONE
        except RunGoneError as error:
            _say(f"stopped, nothing is published: {error}")
        else:
            _say(
                f"no sign of life from the operator for {batch.idle_timeout_seconds:g} s: stopped, nothing is published"
            )
            bounded(self._remove_run)
        return EXIT_ABANDONED

    def _work(self, batch: Batch) -> bool:
        """Work until the operator says that it is over, or shows no sign of life; whether it said so."""
        self._introduce()
        pool = ThreadPoolExecutor(_MAX_CONCURRENT_PLANS)
        self._last_sign_seconds = time.monotonic()
        try:
            while not self._go_on(pool):
                if time.monotonic() - self._last_sign_seconds > batch.idle_timeout_seconds:
                    return False
                self._wait()
            return True
        finally:
            # Plans in work are not waited for, because they may hang; what they ask of Spark fails from now on.
            pool.shutdown(wait=False, cancel_futures=True)
            bounded(lambda: self._spark.sparkContext.cancelAllJobs())

    def _wait(self) -> None:
        """Until a plan is done, at most until the next look is due."""
        # One that is done already could not be told, and is tried again after a pause.
        futures = [running.future for running in self._running.values() if not running.future.done()]
        if futures:
            wait(futures, self._pause_seconds, FIRST_COMPLETED)
        else:
            time.sleep(self._pause_seconds)

    def _go_on(self, pool: ThreadPoolExecutor) -> bool:
        """Look, report and begin once; whether the operator says that it is over.

        What the storage refuses is tried again. Only a look after which all went well is a sign of life.
        """
        before, begun_seconds = (len(self._running), len(self._finished)), time.perf_counter()
        try:
            seen = self._run.look()
            look_seconds = time.perf_counter() - begun_seconds
            if seen.ended:
                return True
            self._report(seen)
            self._start_new(pool, seen)
            self._start_packs(pool)
        except StorageError as error:
            self._pause_seconds = _MOST_PAUSE_SECONDS
            _say(f"tries again: {error}")
            return False
        news = before != (len(self._running), len(self._finished))
        self._pause_seconds = exchange.pause_seconds(self._pause_seconds, _MOST_PAUSE_SECONDS, look_seconds, news=news)
        if seen.alive != self._alive:
            self._alive, self._last_sign_seconds = seen.alive, time.monotonic()
        return False

    def _introduce(self) -> None:
        context = self._spark.sparkContext
        try:
            self._run.write_application(context.applicationId, context.uiWebUrl)
        except AcidError as error:
            _say(f"goes on unseen: {error}")

    def _start_new(self, pool: ThreadPoolExecutor, seen: Seen) -> None:
        begun = self._finished | self._running.keys() | self._small.keys()
        new = sorted(seen.plans - seen.results - begun)
        if new:
            # Executors come and go.
            self._slots = int(self._spark.sparkContext.defaultParallelism)
        for item in new:
            try:
                plan = self._run.plan(item)
            except (ConfigurationError, CorruptFileError, UnauthenticatedError) as error:
                # Its operator fails this partition and no other.
                _say(f"{item:04d} is left: {error}")
                self._run.write_result(item, CompactionResult.unread(str(error)))
                self._finished.add(item)
                continue
            _say(f"{item:04d} {plan.entity}: {plan.input_bytes:,} bytes in {len(plan.buckets)} buckets, {plan.reason}")
            if is_small(plan):
                self._small[item] = plan
            else:
                self._start(pool, item, plan, None)

    def _start_packs(self, pool: ThreadPoolExecutor) -> None:
        """Begin packs of what came meanwhile, as long as few are in work: the more wait, the larger a pack gets."""
        if not self._small:
            return
        # One plan alone has no limit: if it hangs, it counts no more.
        oldest_seconds = time.monotonic() - PACK_SECONDS
        self._packs = [(job, begun) for job, begun in self._packs if not job.done() and begun > oldest_seconds]
        at_once = max(_LEAST_PACKS_AT_ONCE, self._slots // _SLOTS_OF_A_PACK)
        while self._small and len(self._packs) < at_once:
            plans: dict[int, CompactionPlan] = {}
            size_bytes = 0
            while self._small and len(plans) < PACK_PLANS and size_bytes < PACK_BYTES:
                item = min(self._small)
                plans[item] = self._small.pop(item)
                size_bytes += plans[item].input_bytes
            self._start_pack(pool, plans)

    def _start_pack(self, pool: ThreadPoolExecutor, plans: Mapping[int, CompactionPlan]) -> None:
        pack = Pack({item: Packed(plan, self._item(item)) for item, plan in plans.items()}) if len(plans) > 1 else None
        # Before the plans that wait for it, so that it gets a thread before they do.
        jobs: list[Future[Any]] = []
        if pack is not None:
            jobs = [pool.submit(self._run_pack, pack, f"{self._run_uri} pack {min(plans)}", len(plans))]
        jobs += [self._start(pool, item, plan, pack) for item, plan in plans.items()]
        self._packs.append((jobs[0], time.monotonic()))

    def _start(
        self, pool: ThreadPoolExecutor, item: int, plan: CompactionPlan, pack: Pack | None
    ) -> Future[CompactionResult]:
        future = pool.submit(self._carry_out, plan, item, pack)
        self._running[item] = _Running(plan, future, time.monotonic())
        return future

    def _run_pack(self, pack: Pack, group: str, plans: int) -> None:
        self._spark.sparkContext.setJobGroup(group, f"compact {plans} small partitions", interruptOnCancel=True)
        pack.run(self._spark, group, self._slots)

    def _carry_out(self, plan: CompactionPlan, item: int, pack: Pack | None) -> CompactionResult:
        # Shown in Spark's user interface; it holds for this thread only.
        self._spark.sparkContext.setJobGroup(self._run_uri, f"compact {plan.entity}", interruptOnCancel=True)
        return run_plan(self._spark, plan, self._item(item), pack)

    def _item(self, item: int) -> RunItem:
        return RunItem(self._storages, self._run_uri, item, self._slots)

    def _report(self, seen: Seen) -> None:
        for item, running in list(self._running.items()):
            if running.future.done():
                result = _result_of(running)
                self._run.write_result(item, result)
                _say(_outcome(item, result))
                del self._running[item]
                self._finished.add(item)
            else:
                self._report_progress(item, running, seen)

    def _report_progress(self, item: int, running: _Running, seen: Seen) -> None:
        done_bytes = sum(seen.read_bytes(item, bucket) for bucket in running.plan.buckets)
        if done_bytes <= running.done_bytes:
            return
        # Delete files are listed for every bucket that may need them, so this sum may exceed the partition's bytes.
        total_bytes = sum(bucket.input_bytes for bucket in running.plan.buckets)
        rate = done_bytes / max(time.monotonic() - running.start_seconds, 0.001)
        running.done_bytes, running.reports = done_bytes, running.reports + 1
        self._run.write_progress(
            item,
            running.reports,
            {
                "state": "merging",
                "bytes_done": done_bytes,
                "bytes_total": total_bytes,
                "bytes_per_second": round(rate),
            },
        )
        _say(f"{item:04d} {running.plan.entity}: {done_bytes:,} of {total_bytes:,} bytes, {rate / 1e6:.1f} MB/s")

    def _remove_run(self) -> None:
        # Whoever made the directory is gone, and nobody else would remove it soon.
        parent, _, name = self._run_uri.rstrip("/").rpartition("/")
        try:
            self._storages.open(parent).delete([name])
        except AcidError as error:
            _say(f"the run directory stays: {error}")


def _result_of(running: _Running) -> CompactionResult:
    """The plan's result; an error that nobody foresaw becomes this plan's error and no other's."""
    error = running.future.exception()
    if error is None:
        return running.future.result()
    traceback.print_exception(error)
    seconds = time.monotonic() - running.start_seconds
    reason = f"{running.plan.entity}: {type(error).__name__}: {error}. Remedy: see the Spark driver's log."
    return CompactionResult.failed(running.plan, reason, seconds)


def _outcome(item: int, result: CompactionResult) -> str:
    if result.error is not None:
        return f"{item:04d} {result.entity}: failed: {result.error}"
    size_bytes = sum(file.size_bytes for file in result.files)
    rows = sum(file.rows_out for file in result.files)
    return (
        f"{item:04d} {result.entity}: done in {result.seconds:.1f} s, {len(result.files)} files, {rows:,} rows, "
        f"{size_bytes:,} bytes"
    )


def _say(line: str) -> None:
    print(f"compaction {line}", flush=True)


def bounded(call: Callable[[], None]) -> None:
    """Call, and wait only so long for the end: Spark's JVM or the storage may be gone, or hang."""

    def quietly() -> None:
        with suppress(Exception):
            call()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(_LAST_CALL_SECONDS)
