"""Work in threads: results in order, a bounded number under way, and nothing left behind whatever happens."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from types import FrameType

import pytest

from airflow_provider_acid.compaction.evaluate import looking
from airflow_provider_acid.compaction.evaluate.looking import ITEMS_PER_THREAD, in_advance, in_order

PATIENCE_SECONDS = 30
"""After which a test that waits for a thread fails instead of hanging; it is never waited for otherwise."""


class TimeOut(BaseException):
    """As Airflow's, it is no ``Exception``."""


@pytest.fixture(autouse=True)
def _threads_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "PATIENCE_SECONDS", 0.0)


@dataclass
class Clocks:
    """In the place of the module ``time``: every item takes as long as it is told to, in the calling thread."""

    clock: float = 0.0
    processor: float = 0.0

    def perf_counter(self) -> float:
        return self.clock

    def thread_time(self) -> float:
        return self.processor

    def spend(self, waited: float, worked: float) -> None:
        self.clock += waited + worked
        self.processor += worked


def looking_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("looking")]


def wait_for(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS)


def test_results_come_in_the_order_of_the_items_though_the_first_ends_last() -> None:
    done = [threading.Event() for _ in range(4)]

    def end_after_the_next(item: int) -> int:
        if item < 3:
            wait_for(done[item + 1])
        done[item].set()
        return item

    assert list(in_order(end_after_the_next, range(4), 4)) == [0, 1, 2, 3]


def test_as_many_items_are_worked_on_at_once_as_there_are_threads_and_no_more() -> None:
    meeting = threading.Barrier(3)
    lock = threading.Lock()
    running: set[int] = set()
    most = 0

    def meet(item: int) -> int:
        nonlocal most
        with lock:
            running.add(item)
            most = max(most, len(running))
        meeting.wait(PATIENCE_SECONDS)
        with lock:
            running.remove(item)
        return item

    assert list(in_order(meet, range(9), 3)) == list(range(9))
    assert most == 3


@pytest.mark.parametrize("threads", [2, 5])
def test_items_are_taken_only_when_few_are_under_way(threads: int) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(1000):
            taken += 1
            yield item

    most = 0
    for handled, item in enumerate(in_order(lambda item: item, items(), threads)):
        assert item == handled
        most = max(most, taken - handled)
    assert most == threads * ITEMS_PER_THREAD
    assert taken == 1000


def test_with_one_thread_each_item_is_worked_on_here_when_its_result_is_asked_for() -> None:
    worked_on: list[tuple[int, threading.Thread]] = []

    def work(item: int) -> int:
        worked_on.append((item, threading.current_thread()))
        return item

    assert next(in_order(work, range(3), 1)) == 0
    assert worked_on == [(0, threading.current_thread())]


def worked_on_here(waits: Sequence[float], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many items the calling thread works on, each for 1 ms beside what it waits."""
    clocks, here = Clocks(), threading.current_thread()
    monkeypatch.setattr(looking, "time", clocks)
    monkeypatch.setattr(looking, "PATIENCE_SECONDS", 0.2)

    def work(item: int) -> threading.Thread:
        clocks.spend(waits[item], 0.001)
        return threading.current_thread()

    workers = list(in_order(work, range(len(waits)), 3))
    assert len(workers) == len(waits)
    first_elsewhere = next((number for number, worker in enumerate(workers) if worker is not here), len(workers))
    assert here not in workers[first_elsewhere:]
    return first_elsewhere


@pytest.mark.parametrize(
    ("waits", "worked_on"),
    [
        pytest.param([0.0] * 1000, 1000, id="nothing to wait for"),
        pytest.param([0.0009] * 1000, 1000, id="less waiting than work"),
        pytest.param([0.0111] * 1000, 20, id="a server"),
        pytest.param([0.1, *[0.0] * 200] * 5, 1005, id="a pause now and then"),
        pytest.param([5.0] + [0.0] * 100, 1, id="a long pause"),
        # The first that is slow is not measured.
        pytest.param([0.0] * 500 + [0.0111] * 500, 521, id="first here, then at a server"),
    ],
)
def test_threads_begin_when_there_was_waiting_for_longer_than_work(
    waits: list[float], worked_on: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worked_on_here(waits, monkeypatch) == worked_on


def test_items_are_taken_in_the_calling_thread_and_worked_on_in_others() -> None:
    takers: set[threading.Thread] = set()

    def items() -> Iterator[int]:
        for item in range(20):
            takers.add(threading.current_thread())
            yield item

    workers = set(in_order(lambda item: threading.current_thread(), items(), 2))
    assert takers == {threading.current_thread()}
    assert workers.isdisjoint(takers)


@pytest.mark.parametrize("kind", [ValueError, TimeOut])
def test_an_error_comes_in_its_turn_and_of_several_the_first(kind: type[BaseException]) -> None:
    second_failed = threading.Event()

    def fail(item: int) -> int:
        if item == 1:
            wait_for(second_failed)
            raise kind("first")
        if item == 2:
            second_failed.set()
            raise kind("second")
        return item

    results = in_order(fail, range(4), 4)
    assert next(results) == 0
    with pytest.raises(kind, match="first"):
        next(results)
    assert looking_threads() == []


def test_whoever_leaves_early_waits_for_what_has_begun_and_drops_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    ended: list[int] = []
    both_begun = threading.Barrier(3)
    dropped = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            dropped.set()
            super().shutdown(wait=wait)
            assert wait

    def work(item: int) -> int:
        begun.append(item)
        if item in (1, 2):
            both_begun.wait(PATIENCE_SECONDS)
            wait_for(dropped)
        ended.append(item)
        return item

    def leave() -> None:
        with closing(in_order(work, range(100), 2)) as results:
            assert next(results) == 0
            both_begun.wait(PATIENCE_SECONDS)
            raise TimeOut

    monkeypatch.setattr(looking, "ThreadPoolExecutor", Pool)
    with pytest.raises(TimeOut):
        leave()
    assert looking_threads() == []
    assert sorted(begun) == sorted(ended) == [0, 1, 2]


def test_a_time_out_that_strikes_while_a_result_is_waited_for_leaves_no_thread() -> None:
    second_begun, struck = threading.Event(), threading.Event()

    def time_out(number: int, frame: FrameType | None) -> None:
        if not struck.is_set():
            struck.set()
            raise TimeOut

    def work(item: int) -> int:
        if item == 0:
            wait_for(second_begun)
        elif item == 1:
            second_begun.set()
            wait_for(struck)
        else:
            # Both threads run by now, so that the main thread starts none at this moment. Python passes over a signal
            # that comes right before a wait begins.
            for _ in range(int(PATIENCE_SECONDS / 0.01)):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
                if struck.wait(0.01):
                    break
        return item

    before = signal.signal(signal.SIGALRM, time_out)
    try:
        with pytest.raises(TimeOut), closing(in_order(work, range(3), 2)) as results:
            list(results)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert looking_threads() == []


def test_items_in_advance_are_taken_by_another_thread_one_ahead_of_the_one_worked_on() -> None:
    takers: set[threading.Thread] = set()
    taken = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for item in range(4):
            takers.add(threading.current_thread())
            taken[item].set()
            yield item

    given = []
    for item in in_advance(items()):
        given.append(item)
        wait_for(taken[min(item + 1, 3)])
        assert not any(event.is_set() for event in taken[item + 2 :])
    assert given == [0, 1, 2, 3]
    assert threading.current_thread() not in takers


@pytest.mark.parametrize("kind", [ValueError, TimeOut])
def test_an_error_of_an_item_in_advance_comes_in_its_turn(kind: type[BaseException]) -> None:
    def items() -> Iterator[int]:
        yield 0
        raise kind("second")

    ahead = in_advance(items())
    assert next(ahead) == 0
    with pytest.raises(kind, match="second"):
        next(ahead)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("fetching")] == []
