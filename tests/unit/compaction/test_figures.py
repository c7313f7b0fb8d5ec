from __future__ import annotations

import logging
import time
from itertools import count

import pytest

from airflow_provider_acid.compaction.evaluate.progress import EvaluationProgress
from airflow_provider_acid.compaction.quantities import human_bytes, human_seconds, time_left


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (12 * 2**20, "12.0 MiB"),
        (2**30, "1.0 GiB"),
        (5 * 2**40, "5.0 TiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_bytes_are_written_for_people(count: int, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (99, "99 s"), (100, "2 min"), (5900, "98 min"), (6100, "1 h 42 min")]
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (1, 4, 10, "about 30 s left"),
        (50, 100, 600, "about 10 min left"),
        (4, 4, 10, "about 0 s left"),
        (0, 4, 10, "time left unknown"),
        (5, 4, 10, "time left unknown"),
    ],
)
def test_what_is_left_takes_as_long_as_what_is_done_did(done: float, total: float, seconds: float, text: str) -> None:
    assert time_left(done, total, seconds) == text


def test_a_long_evaluation_says_now_and_then_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = count()  # one second goes by with every partition
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    progress = EvaluationProgress()
    with caplog.at_level(logging.INFO):
        for number, partitions in enumerate((40, 60), start=1):
            progress.table(number, 2)
            progress.expect(partitions)
            for _ in range(partitions):
                progress.looked_at()
    assert caplog.messages == [
        "30 of 40 partitions looked at (table 1 of 2), 1/s, about 10 s left of the tables known",
        "60 of 100 partitions looked at (table 2 of 2), 1/s, about 40 s left",
        "90 of 100 partitions looked at (table 2 of 2), 1/s, about 10 s left",
    ]
