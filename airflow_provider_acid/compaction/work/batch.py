"""Many partitions in one Spark application: a thread that begins, watches and finishes each on its own.

Claim, transaction and snapshot of a partition happen when its work starts, and only ``max_active`` at a time: an
open transaction holds back every cleaner of the metastore.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction, Waiting
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.compaction.work.finishing import Finished
from airflow_provider_acid.compaction.work.progress import Progress
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import AcidError, SparkJobError, UnexpectedError
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.result import CompactionResult

log = logging.getLogger(__name__)

T = TypeVar("T")

SMALL_BYTES = 1 << 30
"""What a batch may have in work before it begins no more partitions than its task slots need."""

BEGINNING_SECONDS = 0.25
"""So long small partitions are begun before a look at what was merged meanwhile; or as long as such a look takes."""

BEGUN_TOGETHER = 16
"""So many partitions are begun by the same looks at the metastore; the first of them waits for the last."""

APPLICATION_END_SECONDS = 60.0
"""So long the run directory stays for an application that was told to end; when it is gone, that ends it too."""

WorkerFactory = Callable[[], AbstractContextManager[Worker]]
"""Opens a worker (and its metastore connection) in the thread that calls it."""

RunDirectoryFactory = Callable[[Worker, ActiveCompaction], RunDirectory]
"""Makes the run directory when a worker has the first plan."""


class CompactionBatch:
    """Compacts a list of partitions while one Spark application runs.

    Each has two numbers in the run directory: its place in the list, and a spare one for the major compaction that
    takes the place of a minor whose lock was not granted.

    :param max_active: how many partitions may be claimed and in a transaction at the same time, whatever their size.
    :param max_small: as many may be while what is being merged is less than :data:`SMALL_BYTES` in all.
    :param worker_timeout_seconds: a partition that takes longer is abandoned, before the metastore takes its claim
        back (``hive.compactor.worker.timeout``).
    :param poll_seconds: longest time between two looks at the run directory, shortest between two looks at one lock,
        and between two signs of life; a sign comes sooner where this is more than a hundredth of the application's
        idle time-out.
    :param window_end: partitions that are not begun when it is over are left out; None for no such limit. What is in
        work by then is finished.
    """

    def __init__(
        self,
        items: Sequence[DuePartition],
        open_worker: WorkerFactory,
        make_run_directory: RunDirectoryFactory,
        *,
        max_active: int,
        max_small: int = 0,
        worker_timeout_seconds: float = 86_400.0,
        poll_seconds: float = 1.0,
        window_end: WindowEnd | None = None,
    ) -> None:
        self._pending = deque(enumerate(items))
        self._count = len(items)
        self._open_worker = open_worker
        self._make_run_directory = make_run_directory
        self._max_active = max_active
        self._max_small = max_small
        self._worker_timeout_seconds = worker_timeout_seconds
        self._poll_seconds = poll_seconds
        self._window_end = window_end
        self._active: dict[int, ActiveCompaction] = {}
        self._waiting: dict[int, Waiting] = {}
        self._named: set[int] = set()
        self._outcomes: dict[int, Outcome] = {}
        self._run: RunDirectory | None = None
        self._last_resume_monotonic = -math.inf
        self._look_seconds = 0.0
        self._pause_seconds = exchange.LEAST_PAUSE_SECONDS
        self._progress = Progress(len(items))
        self._planned = threading.Event()
        self._application_ended = threading.Event()
        self._stopped = threading.Event()
        self._crash: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="acid-compaction-batch", daemon=True)

    def start(self) -> None:
        """Begin with the first partitions."""
        self._thread.start()

    def wait_until_planned(self) -> RunDirectory | None:
        """Wait for the first plans; None where no partition needs the Spark application, or the batch is over."""
        self._planned.wait()
        return None if self._stopped.is_set() or self._crash is not None else self._run

    def application_ended(self) -> None:
        """Tell that the Spark application is over, however it ended."""
        self._application_ended.set()

    def stop(self) -> None:
        """Give up: active partitions are abandoned, the rest is not begun."""
        self._stopped.set()
        self._application_ended.set()

    def wait(self, seconds: float) -> None:
        """Wait at most so long for the thread to give everything back."""
        self._thread.join(seconds)

    def join(self) -> tuple[Outcome, ...]:
        """Wait for the end; the outcomes in the order of the items.

        :raises BaseException: what ended the thread, if it was not one partition's own error.
        """
        self._thread.join()
        if self._crash is not None:
            raise self._crash
        return tuple(self._outcomes[index] for index in sorted(self._outcomes))

    def _guarded(self) -> None:
        try:
            with self._open_worker() as worker:
                try:
                    self._run_all(worker)
                finally:
                    self._abandon_all(worker, "the batch ended before this partition was finished")
        except BaseException as error:  # noqa: BLE001 - handed to the thread that joins, which raises it
            self._crash = error
        finally:
            self._planned.set()
            if self._run is not None:
                self._remove_run(self._run)

    def _run_all(self, worker: Worker) -> None:
        while not self._stopped.is_set():
            before, ended_before = self._in_transaction, len(self._outcomes)
            self._begin_next(worker)
            if not self._active and not self._waiting and not self._pending:
                return
            # Whoever stops says that first.
            ended = self._application_ended.is_set() and not self._stopped.is_set()
            self._collect(worker)
            self._resume_waiting(worker)
            self._let_application_go()
            if ended:
                self._abandon_active(worker, "the Spark application ended without a result for this partition")
                self._leave_pending("the Spark application ended before this partition was begun")
            news = (before, ended_before) != (self._in_transaction, len(self._outcomes))
            self._pause_seconds = exchange.pause_seconds(
                self._pause_seconds, self._poll_seconds, self._look_seconds, news=news
            )
            if not self._has_work:
                (self._stopped if ended else self._application_ended).wait(self._pause_seconds)
        self._abandon_all(worker, "the task was stopped")
        self._leave_pending("the task was stopped before this partition was begun")

    def _begin_next(self, worker: Worker) -> None:
        until = time.monotonic() + max(BEGINNING_SECONDS, self._look_seconds)
        while self._has_work and not self._stopped.is_set():
            # Not all small ones at once: what is merged meanwhile is to be published.
            if self._in_transaction >= self._max_active and time.monotonic() >= until:
                break
            group = self._next_group()
            begun = worker.begin_together([due for _, due in group], self._beat)
            for (item, _), one in zip(group, begun, strict=True):
                if isinstance(one, Outcome):
                    self._end(item, one)
                else:
                    self._active[item] = one
            for (item, _), one in zip(group, begun, strict=True):
                if isinstance(one, Outcome):
                    continue
                if one.adopted is not None:
                    self._finish(worker, item, one.adopted)
                else:
                    self._hand_over(worker, item, one)
        if self._run is not None:
            self._planned.set()

    def _next_group(self) -> list[tuple[int, DuePartition]]:
        """What is begun together now, as far as the limits let it; what is too late is left out."""
        group: list[tuple[int, DuePartition]] = []
        # The first plan starts the application, which takes seconds.
        most = BEGUN_TOGETHER if self._run is not None else 1
        while self._may_begin(len(group)) and len(group) < most:
            item, due = self._pending.popleft()
            late = self._too_late(due)
            if late is None:
                group.append((item, due))
            else:
                self._end(item, late)
        return group

    def _too_late(self, due: DuePartition) -> Outcome | None:
        if self._window_end is None or not self._window_end.is_over:
            return None
        return Outcome(due.entity, OutcomeState.SKIPPED, f"left to the next run: {self._window_end.why_over}")

    @property
    def _has_work(self) -> bool:
        """Whether the next partition may be begun now."""
        return self._may_begin(0)

    def _may_begin(self, beside: int) -> bool:
        """Whether one more may be begun, beside as many others."""
        in_transaction = self._in_transaction + beside
        if not self._pending:
            return False
        if in_transaction < self._max_active:
            return True
        sizes = [active.plan.input_bytes for active in self._active.values()]
        # Whose size is not known yet may be as large as the largest.
        merging_bytes = sum(sizes) + beside * max(sizes, default=SMALL_BYTES)
        return in_transaction < self._max_small and merging_bytes < SMALL_BYTES

    @property
    def _in_transaction(self) -> int:
        return len(self._active) + len(self._waiting)

    def _hand_over(self, worker: Worker, item: int, begun: ActiveCompaction) -> None:
        try:
            with Supervised(begun.entity):
                if self._run is None:
                    self._run = self._make_run_directory(worker, begun)
                self._run.put_plan(item, begun.plan)
        except AcidError as error:
            outcome = _abandoned(worker, self._active.pop(item), str(error))
            self._end(item, replace(outcome, state=OutcomeState.REFUSED) if error.is_permanent else outcome)
            return
        self._progress.began(begun.plan)

    def _settle(self, item: int, finished: Finished) -> None:
        """Keep what came of an item, or have it wait, or begun anew under its spare number."""
        if isinstance(finished, Outcome):
            self._end(item, finished)
        elif isinstance(finished, DuePartition):
            log.info("%s: %s", finished.entity, finished.reason)
            self._forget(item)
            self._pending.appendleft((item % self._count + self._count, finished))
        else:
            self._waiting[item] = finished

    def _end(self, item: int, outcome: Outcome) -> None:
        self._keep(item, outcome)
        self._forget(item)

    def _keep(self, item: int, outcome: Outcome) -> None:
        self._outcomes[item % self._count] = outcome
        self._progress.ended(outcome)

    def _forget(self, item: int) -> None:
        if self._run is not None:
            self._run.forget(item)

    def _collect(self, worker: Worker) -> None:
        """Take what the application has said."""
        if self._run is None:
            return
        self._beat()
        begun = time.monotonic()
        results, bytes_done = self._run.poll()
        self._look_seconds = time.monotonic() - begun
        self._name_application(worker, self._run.application_id)
        for item, done in bytes_done.items():
            if item in self._active:
                self._progress.advanced(self._active[item].entity, done)
        for item, result in results.items():
            if item in self._active:
                self._finish(worker, item, result)
        for item, active in list(self._active.items()):
            try:
                with Supervised(active.entity):
                    self._check_time(active)
                    active.transaction.check()
                    worker.keep(active)
            except AcidError as error:
                self._abandon(worker, item, str(error))

    def _name_application(self, worker: Worker, application_id: str | None) -> None:
        """Have SHOW COMPACTIONS name the Spark application of each partition in work."""
        if application_id is None:
            return
        for item in self._active.keys() - self._named:
            self._named.add(item)
            active = self._active[item]
            _guarded(active.entity, partial(worker.name_application, active, application_id))

    def _abandon(self, worker: Worker, item: int, message: str) -> None:
        self._end(item, _abandoned(worker, self._active.pop(item), message))

    def _finish(self, worker: Worker, item: int, result: CompactionResult | AcidError) -> None:
        self._beat()
        if isinstance(result, AcidError):
            self._abandon(worker, item, str(result))
            return
        active = self._active.pop(item)
        self._settle(item, _guarded(active.entity, partial(worker.finish, active, result)))

    def _beat(self) -> None:
        """Leave a sign of life, if one is due, before what may take minutes: a publication on S3, or a take-over.

        What it is about is still listed then, and so given back should the storage fail.
        """
        if self._run is not None:
            self._run.beat_if_due(self._poll_seconds)

    def _resume_waiting(self, worker: Worker) -> None:
        # Each look is a call to the metastore.
        now = time.monotonic()
        if now - self._last_resume_monotonic < self._poll_seconds:
            return
        self._last_resume_monotonic = now
        for item in list(self._waiting):
            self._beat()
            waiting = self._waiting.pop(item)
            self._settle(item, _guarded(waiting.active.entity, partial(worker.resume, waiting)))

    def _let_application_go(self) -> None:
        """Have it end as soon as nothing can need it: a minor that gets no lock may be begun anew, as a major."""
        of_waiting = {waiting.active.plan.type for waiting in self._waiting.values()}
        if self._run is not None and not self._pending and not self._active and CompactionType.MINOR not in of_waiting:
            self._run.put_end()

    def _check_time(self, active: ActiveCompaction) -> None:
        seconds = time.monotonic() - active.begun_monotonic
        if seconds > self._worker_timeout_seconds:
            raise SparkJobError(
                str(active.entity),
                f"was not merged within {self._worker_timeout_seconds:.0f} s",
                "give the application more cores, or raise [hive_acid] worker_timeout_seconds and Hive's own alike",
            )

    def _abandon_all(self, worker: Worker, message: str) -> None:
        self._abandon_active(worker, message)
        while self._waiting:
            item, waiting = self._waiting.popitem()
            self._keep(item, _abandoned(worker, waiting.active, message))

    def _abandon_active(self, worker: Worker, message: str) -> None:
        while self._active:
            item, active = self._active.popitem()
            self._keep(item, _abandoned(worker, active, message))

    def _leave_pending(self, message: str) -> None:
        while self._pending:
            item, due = self._pending.popleft()
            self._outcomes[item % self._count] = Outcome(due.entity, OutcomeState.FAILED, message)

    def _remove_run(self, run: RunDirectory) -> None:
        try:
            run.put_end()
            # The application needs the directory until it has ended.
            self._application_ended.wait(APPLICATION_END_SECONDS)
            run.remove()
        except AcidError as error:
            log.warning("The run directory stays behind: %s", error)


def _guarded(entity: Entity, work: Callable[[], T]) -> T | Outcome:
    """What is done for one partition; what nobody foresaw of it ends this partition alone."""
    try:
        with Supervised(entity):
            return work()
    except UnexpectedError as error:
        return Outcome(entity, OutcomeState.FAILED, str(error))


def _abandoned(worker: Worker, active: ActiveCompaction, message: str) -> Outcome:
    return _guarded(active.entity, partial(worker.abandon, active, message))
