"""Many partitions in one Spark application: a thread that begins, watches and finishes each on its own.

Claim, transaction and snapshot of a partition happen when its work starts, and only ``max_active`` at a time: an
open transaction holds back every cleaner of the metastore.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.progress import Progress
from airflow_provider_acid.compaction.run_directory import RunDirectory
from airflow_provider_acid.compaction.worker import ActiveCompaction, Worker
from airflow_provider_acid.exceptions import AcidError, SparkJobError

log = logging.getLogger(__name__)

WorkerFactory = Callable[[], AbstractContextManager[Worker]]
"""Opens a worker (and its metastore connection) in the thread that calls it."""

RunDirectoryFactory = Callable[[ActiveCompaction, int], RunDirectory]
"""Makes the run directory when the first plan of the given number of items is there."""


class CompactionBatch:
    """Compacts a list of partitions while one Spark application runs.

    :param max_active: how many partitions may be claimed and in a transaction at the same time.
    :param worker_timeout_seconds: a partition that takes longer is abandoned, before the metastore takes its claim
        back (``hive.compactor.worker.timeout``).
    :param poll_seconds: time between two looks at the run directory.
    """

    def __init__(
        self,
        items: Sequence[DuePartition],
        open_worker: WorkerFactory,
        make_run_directory: RunDirectoryFactory,
        *,
        max_active: int,
        worker_timeout_seconds: float = 86_400.0,
        poll_seconds: float = 1.0,
    ) -> None:
        self._pending = deque(enumerate(items))
        self._count = len(items)
        self._open_worker = open_worker
        self._make_run_directory = make_run_directory
        self._max_active = max_active
        self._worker_timeout_seconds = worker_timeout_seconds
        self._poll_seconds = poll_seconds
        self._active: dict[int, ActiveCompaction] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._run: RunDirectory | None = None
        self._progress = Progress()
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
            self._begin_next(worker)
            if not self._active and not self._pending:
                return
            ended = self._application_ended.is_set()
            self._collect(worker)
            if ended:
                self._abandon_all(worker, "the Spark application ended without a result for this partition")
                self._leave_pending("the Spark application ended before this partition was begun")
                return
            self._application_ended.wait(self._poll_seconds)
        self._abandon_all(worker, "the task was stopped")
        self._leave_pending("the task was stopped before this partition was begun")

    def _begin_next(self, worker: Worker) -> None:
        while self._pending and len(self._active) < self._max_active and not self._stopped.is_set():
            index, due = self._pending.popleft()
            begun = worker.begin(due)
            if isinstance(begun, ActiveCompaction) and begun.adopted is not None:
                begun = worker.finish(begun, begun.adopted)
            if isinstance(begun, Outcome):
                self._end(index, begun)
                continue
            self._hand_over(worker, index, begun)
        if self._run is not None:
            self._planned.set()

    def _hand_over(self, worker: Worker, index: int, begun: ActiveCompaction) -> None:
        self._active[index] = begun
        try:
            if self._run is None:
                self._run = self._make_run_directory(begun, self._count)
                for done in self._outcomes:
                    self._run.put_skip(done)
            self._run.put_plan(index, begun.plan)
        except AcidError as error:
            del self._active[index]
            self._end(index, worker.abandon(begun, str(error)))
            return
        self._progress.began(begun.plan)

    def _end(self, index: int, outcome: Outcome) -> None:
        self._outcomes[index] = outcome
        self._progress.ended(outcome)
        if self._run is not None:
            self._run.put_skip(index)

    def _collect(self, worker: Worker) -> None:
        if self._run is None:
            return
        self._run.beat()
        results, bytes_done = self._run.poll()
        for index, done in bytes_done.items():
            if index in self._active:
                self._progress.advanced(self._active[index].entity, done)
        for index, result in results.items():
            self._finish(worker, index, result)
        for index, active in list(self._active.items()):
            try:
                self._check_time(active)
                active.transaction.check()
            except AcidError as error:
                self._outcomes[index] = worker.abandon(self._active.pop(index), str(error))
                self._progress.ended(self._outcomes[index])

    def _check_time(self, active: ActiveCompaction) -> None:
        seconds = time.monotonic() - active.begun_monotonic
        if seconds > self._worker_timeout_seconds:
            raise SparkJobError(
                str(active.entity),
                f"was not merged within {self._worker_timeout_seconds:.0f} s",
                "give the Spark application more cores, or raise [hive_acid] worker_timeout and Hive's own alike",
            )

    def _finish(self, worker: Worker, index: int, result: CompactionResult) -> None:
        active = self._active.pop(index, None)
        if active is not None:
            self._outcomes[index] = worker.finish(active, result)
            self._progress.ended(self._outcomes[index])

    def _abandon_all(self, worker: Worker, message: str) -> None:
        while self._active:
            index, active = self._active.popitem()
            self._outcomes[index] = worker.abandon(active, message)
            self._progress.ended(self._outcomes[index])

    def _leave_pending(self, message: str) -> None:
        while self._pending:
            index, due = self._pending.popleft()
            self._outcomes[index] = Outcome(due.entity, OutcomeState.FAILED, message)

    def _remove_run(self, run: RunDirectory) -> None:
        # The application still polls until it sees the last answer; it needs the directory until it has ended.
        deadline = time.monotonic() + 60.0
        while not self._application_ended.wait(1.0) and time.monotonic() < deadline:
            run.beat()
        try:
            run.remove()
        except AcidError as error:
            log.warning("The run directory stays behind: %s", error)
