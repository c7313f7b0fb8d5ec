"""Many partitions in one Spark application: a thread that decides which is begun, watched and finished when.

Claim, transaction and snapshot of a partition happen when its work starts, and only ``max_active`` at a time: an
open transaction holds back every cleaner of the metastore. What waits for metastore or store is done by the batch's
hands (:mod:`.hands`), so that neither other partitions nor the signs of life wait for it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import BEATS_IN_IDLE_TIMEOUT, RunDirectory
from airflow_provider_acid.compaction.work.hands import Hand, Hands, WorkerFactory
from airflow_provider_acid.compaction.work.in_work import BATCH_ENDED, InWork, begin
from airflow_provider_acid.compaction.work.progress import Progress
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.result import CompactionResult

log = logging.getLogger(__name__)

SMALL_BYTES = 1 << 30
"""What a batch may have in work before it begins no more partitions than its task slots need."""

HANDS = 16
"""So many work at once at most; each has a connection, and waits for metastore and store most of the time."""

BEGUN_TOGETHER = 16
"""So many partitions are begun by the same looks at the metastore; the first of them waits for the last."""

APPLICATION_END_SECONDS = 60.0
"""So long the run directory stays for an application that was told to end; when it is gone, that ends it too."""

NEVER_BEGAN = (
    "the Spark application ended before it read any plan; the last lines of spark-submit in this log, or the driver's "
    "own log, say why"
)

RunDirectoryFactory = Callable[[Worker, ActiveCompaction], RunDirectory]
"""Makes the run directory when a worker has the first plan."""


@dataclass(frozen=True)
class _Group:
    """Partitions that are begun together, each with its number in the run directory."""

    hand: Hand
    items: tuple[tuple[int, DuePartition], ...]


class CompactionBatch:
    """Compacts a list of partitions while one Spark application runs.

    Each has two numbers in the run directory: its place in the list, and a spare one for the major compaction that
    takes the place of a minor whose lock was not granted.

    :param check: done before anything is claimed; what it raises ends the batch.
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
        check: Callable[[Worker], None] = lambda worker: None,
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
        self._check = check
        self._max_active = max_active
        self._max_small = max_small
        self._worker_timeout_seconds = worker_timeout_seconds
        self._poll_seconds = poll_seconds
        self._window_end = window_end
        self._beginning: dict[Future[list[ActiveCompaction | Outcome]], _Group] = {}
        self._in_work: dict[int, InWork] = {}
        self._results: dict[int, CompactionResult | AcidError] = {}
        """Of partitions whose hand has other things to do."""
        self._outcomes: dict[int, Outcome] = {}
        self._run: RunDirectory | None = None
        self._look_due_monotonic = self._watch_due_monotonic = self._resume_due_monotonic = -math.inf
        self._seen_last = (0, 0)
        self._pause_seconds = exchange.LEAST_PAUSE_SECONDS
        self._progress = Progress(len(items))
        self._planned = threading.Event()
        self._application_ended = threading.Event()
        self._refusal: ConfigurationError | None = None
        self._stopped = threading.Event()
        self._news = threading.Event()
        self._crash: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="acid-compaction-batch", daemon=True)

    def start(self) -> None:
        """Begin with the first partitions."""
        self._thread.start()

    def wait_until_planned(self) -> RunDirectory | None:
        """Wait for the first plans; None where no partition needs the Spark application, or the batch is over."""
        self._planned.wait()
        return None if self._stopped.is_set() or self._crash is not None else self._run

    def application_ended(self, refusal: ConfigurationError | None = None) -> None:
        """Tell that the Spark application is over, however it ended.

        :param refusal: why there was none, nor will be in another try; None where it began.
        """
        self._refusal = refusal
        self._application_ended.set()
        self._news.set()

    def stop(self) -> None:
        """Give up: active partitions are abandoned, the rest is not begun."""
        self._stopped.set()
        self.application_ended()

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
            with Hands(self._open_worker, min(HANDS, self._count), self._news.set) as hands:
                try:
                    hands.first.ask(self._check).result()
                    self._run_all(hands)
                finally:
                    self._end_all(lambda each: each.give_back(BATCH_ENDED, OutcomeState.FAILED))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that joins, which raises it
            self._crash = error
        finally:
            self._planned.set()
            if self._run is not None:
                self._remove_run(self._run)

    def _run_all(self, hands: Hands) -> None:
        while not self._stopped.is_set():
            self._news.clear()
            # Whoever stops says that first.
            ended = self._application_ended.is_set() and not self._stopped.is_set()
            self._take_done()
            if not ended:
                self._begin_next(hands)
            if not self._in_transaction and not self._pending:
                return
            self._collect(is_last=ended)
            self._go_on(watched=not ended)
            self._resume_waiting()
            self._let_application_go()
            if ended:
                self._end_unmerged()
            self._news.wait(self._seconds_until_due())
        # Airflow gives a killed task only a few seconds; what is left of it must not wait for signs of life.
        self._tell_end()
        self._end_all(lambda each: each.abandon("the task was stopped"))
        self._leave_pending("the task was stopped before this partition was begun")

    def _seconds_until_due(self) -> float:
        """How long nothing has to be looked at unless there is news."""
        if self._run is None:
            return self._poll_seconds
        beat_seconds = min(self._poll_seconds, self._run.idle_timeout_seconds / BEATS_IN_IDLE_TIMEOUT)
        return min(max(self._look_due_monotonic - time.monotonic(), 0.0), beat_seconds)

    def _begin_next(self, hands: Hands) -> None:
        """Have as many begun as the limits let, by those who have nothing else to do."""
        while self._pending and not self._stopped.is_set():
            room = self._room()
            # The first plan starts the application, which takes seconds.
            if not self._planned.is_set():
                room = 0 if self._beginning else min(room, 1)
            needed = [each.hand for each in self._in_work.values() if each.keeps_readers_out]
            hand = hands.idle(needed) if room else None
            if hand is None:
                return
            items = tuple(self._next_items(min(room, BEGUN_TOGETHER)))
            if items:
                work = partial(begin, [due for _, due in items], partial(self._hand_over, items))
                self._beginning[hand.ask(work)] = _Group(hand, items)

    def _next_items(self, most: int) -> Iterator[tuple[int, DuePartition]]:
        """The next partitions; what is too late is left out."""
        for _ in range(min(most, len(self._pending))):
            item, due = self._pending.popleft()
            if self._window_end is not None and self._window_end.is_over:
                why = f"left to the next run: {self._window_end.why_over}"
                self._end(item, Outcome(due.entity, OutcomeState.SKIPPED, why))
            else:
                yield item, due

    def _room(self) -> int:
        """How many partitions may be begun now.

        Of small ones either as many as are begun together, or none: each group costs looks at the metastore.
        """
        in_transaction = self._in_transaction
        few = self._max_active - in_transaction
        if few < min(len(self._pending), BEGUN_TOGETHER, self._max_active // 32):
            few = 0
        sizes = [each.input_bytes for each in self._in_work.values() if each.waiting is None]
        # Whose size is not known yet may be as large as the largest.
        largest = max(sizes, default=SMALL_BYTES)
        left_bytes = SMALL_BYTES - sum(sizes) - sum(len(group.items) for group in self._beginning.values()) * largest
        small = min(self._max_small - in_transaction, math.ceil(left_bytes / max(largest, 1)))
        if small > few and small < min(len(self._pending), BEGUN_TOGETHER, self._max_small // 4):
            small = 0
        return max(few, small, 0)

    @property
    def _in_transaction(self) -> int:
        return len(self._in_work) + sum(len(group.items) for group in self._beginning.values())

    def _hand_over(
        self, items: Sequence[tuple[int, DuePartition]], worker: Worker, place: int, begun: ActiveCompaction
    ) -> None:
        """Put a plan where the application finds it; done by a hand, one of which alone makes the run directory."""
        if self._run is None:
            self._run = self._make_run_directory(worker, begun)
        self._run.put_plan(items[place][0], begun.plan)

    def _take_done(self) -> None:
        """Take what the hands have done."""
        for done in [each for each in self._beginning if each.done()]:
            group = self._beginning.pop(done)
            for (item, _), begun in zip(group.items, done.result(), strict=True):
                self._take_begun(item, group.hand, begun)
        for item, each in list(self._in_work.items()):
            taken = each.take()
            if isinstance(taken, Outcome):
                self._end(item, taken)
            elif taken is not None:
                log.info("%s: %s", taken.entity, taken.reason)
                self._forget(item)
                self._pending.appendleft((item % self._count + self._count, taken))
        if self._run is not None and not self._beginning:
            self._planned.set()

    def _take_begun(self, item: int, hand: Hand, begun: ActiveCompaction | Outcome) -> None:
        if isinstance(begun, Outcome):
            self._end(item, begun)
            return
        self._in_work[item] = InWork(hand, begun)
        if begun.adopted is None:
            self._progress.began(begun.plan)
        else:
            self._in_work[item].finish(begun.adopted, None)

    def _end(self, item: int, outcome: Outcome) -> None:
        self._outcomes[item % self._count] = outcome
        self._progress.ended(outcome)
        self._forget(item)

    def _forget(self, item: int) -> None:
        self._in_work.pop(item, None)
        self._results.pop(item, None)
        if self._run is not None:
            self._run.forget(item)

    def _collect(self, *, is_last: bool) -> None:
        """Take what the application has said, if a look is due; of one that has ended, what is left to be had."""
        if self._run is None or (is_last and all(each.waiting for each in self._in_work.values())):
            return
        begun = time.monotonic()
        if not is_last:
            self._run.beat_if_due(self._poll_seconds)
            if begun < self._look_due_monotonic:
                return
        results, bytes_done = self._run.poll(is_last=is_last)
        look_seconds = time.monotonic() - begun
        for item, done in bytes_done.items():
            if item in self._in_work:
                self._progress.advanced(self._in_work[item].active.entity, done)
        known = self._in_work.keys() | {item for group in self._beginning.values() for item, _ in group.items}
        self._results |= {item: result for item, result in results.items() if item in known}
        seen = (self._in_transaction, len(self._outcomes))
        news, self._seen_last = seen != self._seen_last, seen
        self._pause_seconds = exchange.pause_seconds(self._pause_seconds, self._poll_seconds, look_seconds, news=news)
        self._look_due_monotonic = time.monotonic() + self._pause_seconds

    def _go_on(self, *, watched: bool) -> None:
        """Finish what is merged, and watch over what is not while somebody merges it."""
        application_id = None if self._run is None else self._run.application_id
        for item in [item for item in self._results if item in self._in_work]:
            if self._in_work[item].is_merging:
                self._in_work[item].finish(self._results.pop(item), application_id)
        now = time.monotonic()
        if not watched or now < self._watch_due_monotonic:
            return
        self._watch_due_monotonic = now + self._poll_seconds
        for each in self._in_work.values():
            if each.is_merging:
                each.watch(application_id, self._worker_timeout_seconds)

    def _resume_waiting(self) -> None:
        # Each look is a call to the metastore.
        now = time.monotonic()
        if now >= self._resume_due_monotonic:
            self._resume_due_monotonic = now + self._poll_seconds
            for each in self._in_work.values():
                each.resume()

    def _let_application_go(self) -> None:
        """Have it end as soon as nothing can need it."""
        if self._run is None or self._pending or self._beginning:
            return
        if not any(each.may_need_the_application for each in self._in_work.values()):
            self._tell_end()

    def _tell_end(self) -> None:
        """Tell the application that it is over; where that fails, the end of the run directory tells it."""
        try:
            if self._run is not None:
                self._run.put_end()
        except AcidError as error:
            log.warning("The application was not told that it is over: %s", error)

    def _end_unmerged(self) -> None:
        refusal = self._refusal
        began = self._run is not None and self._run.application_id is not None
        for each in self._in_work.values():
            if each.is_merging and refusal is not None:
                each.give_back(str(refusal), OutcomeState.REFUSED)
            elif each.is_merging and began:
                each.abandon("the Spark application ended without a result for this partition")
            elif each.is_merging:
                # What keeps an application from its first step is no partition's fault.
                each.give_back(NEVER_BEGAN, OutcomeState.FAILED)
        if refusal is not None:
            self._leave_pending(str(refusal), OutcomeState.REFUSED)
        else:
            self._leave_pending("the Spark application ended before this partition was begun")

    def _end_all(self, end: Callable[[InWork], None]) -> None:
        """Give all up, when what is being done for them is done."""
        self._drain()
        for each in self._in_work.values():
            end(each)
        self._drain()

    def _drain(self) -> None:
        """Wait until nothing is being done; an error of it that is no partition's own is for who joins."""
        while self._beginning or any(each.job for each in self._in_work.values()):
            wait(self._beginning)
            wait([each.job for each in self._in_work.values() if each.job is not None])
            try:
                self._take_done()
            except BaseException as error:  # noqa: BLE001 - raised by join
                self._crash = self._crash or error

    def _leave_pending(self, message: str, state: OutcomeState = OutcomeState.FAILED) -> None:
        while self._pending:
            item, due = self._pending.popleft()
            self._outcomes[item % self._count] = Outcome(due.entity, state, message)

    def _remove_run(self, run: RunDirectory) -> None:
        try:
            run.put_end()
            # The application needs the directory until it has ended.
            self._application_ended.wait(APPLICATION_END_SECONDS)
            run.remove()
        except AcidError as error:
            log.warning("The run directory stays behind: %s", error)
