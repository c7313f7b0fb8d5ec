"""The threads of a batch: each has a worker with a metastore connection of its own, and waits for it.

What one of them began it also finishes, for a partition's transaction belongs to its connection.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import AbstractContextManager
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import AcidError

log = logging.getLogger(__name__)

T = TypeVar("T")

WorkerFactory = Callable[[], AbstractContextManager[Worker]]
"""Opens a worker (and its metastore connection) in the thread that calls it."""


class Hand:
    """A thread that does one thing after the other with its worker.

    :param tell: called in the thread, whenever something is done.
    :ivar opened: done when the worker is there, or cannot be had; nothing may be asked for before.
    """

    def __init__(self, open_worker: WorkerFactory, tell: Callable[[], None]) -> None:
        self.opened: Future[None] = Future()
        self._open_worker = open_worker
        self._tell = tell
        self._asked: SimpleQueue[Callable[[Worker], None] | None] = SimpleQueue()
        self._last: Future[object] | Future[None] = self.opened
        # An end of the process waits for no thread that waits for a server.
        self._thread = threading.Thread(target=self._work, name="acid-compaction-hand", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether all that it was asked for is done."""
        return self._last.done()

    def ask(self, work: Callable[[Worker], T]) -> Future[T]:
        """Have something done after all that was asked for before."""
        answer: Future[T] = Future()

        def do(worker: Worker) -> None:
            try:
                done = work(worker)
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                answer.set_exception(error)
            else:
                answer.set_result(done)
            self._tell()

        self._last = answer  # type: ignore[assignment]
        self._asked.put(do)
        return answer

    def close(self) -> None:
        """End the thread, and its worker's connection, when all that was asked for is done."""
        self._asked.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            with self._open_worker() as worker:
                self.opened.set_result(None)
                self._tell()
                while (do := self._asked.get()) is not None:
                    do(worker)
        except BaseException as error:
            if self.opened.done():
                log.exception("A connection that is needed no more did not end well")
            else:
                self.opened.set_exception(error)
                self._tell()


class Hands:
    """As many hands as there is work for; all belongs to the thread that makes this, which also closes it.

    :param most: hands.
    :param tell: called in their threads, whenever one is there or has done something.
    :raises BaseException: there is not even one worker.
    """

    def __init__(self, open_worker: WorkerFactory, most: int, tell: Callable[[], None]) -> None:
        self._open_worker = open_worker
        self._most = most
        self._tell = tell
        first = Hand(open_worker, tell)
        first.opened.result()
        self._hands = [first]
        self._coming: Hand | None = None

    def __enter__(self) -> Hands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hand in [*self._hands, *([] if self._coming is None else [self._coming])]:
            hand.close()

    @property
    def first(self) -> Hand:
        """One that is there from the beginning."""
        return self._hands[0]

    def idle(self, apart_from: Collection[Hand] = ()) -> Hand | None:
        """One that has nothing to do; where there is none, another comes if there may be more.

        :param apart_from: are about to have something to do.
        :raises BaseException: that other one met what nobody foresaw.
        """
        self._welcome()
        idle = next((hand for hand in self._hands if hand.is_idle and hand not in apart_from), None)
        if idle is None and self._coming is None and len(self._hands) < self._most:
            self._coming = Hand(self._open_worker, self._tell)
        return idle

    def _welcome(self) -> None:
        coming = self._coming
        if coming is None or not coming.opened.done():
            return
        self._coming = None
        try:
            coming.opened.result()
        except AcidError as error:
            log.warning("No more than %d connections compact: %s", len(self._hands), error)
            self._most = len(self._hands)
        else:
            self._hands.append(coming)
