"""Which signals interrupt ``airflow-acid compact``, so that it gives back what it holds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from airflow_provider_acid.table_commands import _interrupted_by_signals


def end(*_: object) -> None:
    """In the place of the default, which would end the tests."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of a command that was started from a shell; afterwards those that were there."""
    former = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_hang_up_does_not_interrupt_what_is_being_given_back(how: signal.Signals) -> None:
    given_back = []

    def work() -> None:
        with _interrupted_by_signals():
            try:
                os.kill(os.getpid(), how)
            finally:
                os.kill(os.getpid(), signal.SIGHUP)
                given_back.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert given_back == ["all"]
    assert {signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)} == {end}


def test_under_nohup_a_hang_up_interrupts_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _interrupted_by_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
