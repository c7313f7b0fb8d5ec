from __future__ import annotations

import threading

import pytest

from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.heartbeat import Heartbeat

PATIENCE_SECONDS = 30
UNREACHABLE = MetastoreUnavailableError("transaction 7", "no metastore answers", "start it")
FAILED = MetastoreError("transaction 7", "Internal error", "look at the log")
ABORTED = OwnershipLostError("transaction 7", "already aborted", "start again")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers beats with the errors given, in turn, then well; each beat takes ``beat_seconds`` of the clock."""

    def __init__(self, clock: Clock, *answers: Exception | None, beat_seconds: float = 0) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.beat_seconds = beat_seconds
        self.closed = 0

    def heartbeat(self, txn_id: int) -> None:
        self.clock.now += self.beat_seconds
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


def heartbeat_of(server: Server) -> Heartbeat:
    return Heartbeat(
        server, 7, interval_seconds=150, timeout_seconds=300, last_good=server.clock.now, clock=server.clock
    )


def test_a_good_beat_renews_the_transaction() -> None:
    server = Server(Clock())
    heartbeat = heartbeat_of(server)
    for _ in range(5):
        server.clock.now += 299
        heartbeat.check()
        assert heartbeat.beat()


@pytest.mark.parametrize("error", [UNREACHABLE, FAILED])
def test_a_beat_that_fails_is_tried_again_on_a_new_connection(error: MetastoreError) -> None:
    server = Server(Clock(), error, error, None)
    heartbeat = heartbeat_of(server)
    server.clock.now += 299
    assert [heartbeat.beat() for _ in range(3)] == [True] * 3
    assert server.closed == 2
    server.clock.now += 299
    heartbeat.check()


def test_beats_that_fail_for_as_long_as_the_time_out_lose_the_transaction() -> None:
    server = Server(Clock(), *[UNREACHABLE] * 3)
    heartbeat = heartbeat_of(server)
    for _ in range(2):
        server.clock.now += 149
        heartbeat.beat()
        heartbeat.check()
    server.clock.now += 2
    heartbeat.beat()
    with pytest.raises(OwnershipLostError, match="300 s.*no metastore answers"):
        heartbeat.check()


def test_a_beat_that_never_returns_loses_the_transaction_too() -> None:
    clock = Clock()
    heartbeat = heartbeat_of(Server(clock))
    clock.now += 300
    with pytest.raises(OwnershipLostError, match="no heartbeat got through"):
        heartbeat.check()


def test_a_beat_counts_from_when_it_was_sent() -> None:
    server = Server(Clock(), beat_seconds=200)
    heartbeat = heartbeat_of(server)
    heartbeat.beat()
    server.clock.now += 100
    with pytest.raises(OwnershipLostError):
        heartbeat.check()


def test_an_aborted_transaction_is_lost_at_once_and_for_good() -> None:
    server = Server(Clock(), ABORTED, None)
    heartbeat = heartbeat_of(server)
    assert not heartbeat.beat()
    for _ in range(2):
        with pytest.raises(OwnershipLostError, match="already aborted"):
            heartbeat.check()


@pytest.mark.parametrize("interval_seconds", [0, 300, 301])
def test_an_interval_that_does_not_fit_the_time_out_is_refused(interval_seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="does not fit"):
        Heartbeat(Server(Clock()), 7, interval_seconds=interval_seconds, timeout_seconds=300, last_good=0)


class BlockingServer:
    """Answers no beat before it is interrupted."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_interrupted = threading.Event()
        self.beats = 0
        self.closed_by = ""

    def heartbeat(self, txn_id: int) -> None:
        self.beats += 1
        self.is_asked.set()
        assert self.is_interrupted.wait(PATIENCE_SECONDS)
        raise UNREACHABLE

    def interrupt(self) -> None:
        self.is_interrupted.set()

    def close(self) -> None:
        self.closed_by = threading.current_thread().name


def test_k12_stopping_cuts_off_the_running_beat_and_none_follows() -> None:
    server = BlockingServer()
    heartbeat = Heartbeat(server, 7, interval_seconds=0.01, timeout_seconds=300, last_good=0)
    heartbeat.start()
    assert server.is_asked.wait(PATIENCE_SECONDS)
    heartbeat.stop()
    assert not any(thread.name == "heartbeat-txn-7" for thread in threading.enumerate())
    assert server.beats == 1
    assert server.closed_by == "heartbeat-txn-7", "a client belongs to one thread"


def test_stopping_before_the_first_beat_and_twice_is_fine() -> None:
    server = Server(Clock())
    heartbeat = heartbeat_of(server)
    heartbeat.start()
    heartbeat.stop()
    heartbeat.stop()
    assert server.closed == 1
