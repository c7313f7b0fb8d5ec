"""The end of a time window: what is in work is finished, nothing else is begun, and the application hears of it."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from tests.unit.compaction.batch_setting import Setting, messages, result_of

NIGHT = TimeWindow.of("22:00-06:00", "UTC")
LEFT = "left to the next run: it is six"


def at(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    monkeypatch.setattr(time, "time", lambda: moment.timestamp())


def test_an_opening_ends_once_and_does_not_come_again_the_next_night(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "2026-01-05T23:00:00")
    window_end = WindowEnd.of(NIGHT)
    assert not window_end.is_over
    for later, is_over in (
        ("2026-01-06T05:59:59", False),
        ("2026-01-06T06:00:00", True),
        ("2026-01-06T23:00:00", True),
    ):
        at(monkeypatch, later)
        assert window_end.is_over is is_over, later
    assert window_end.why_over == "the time window 22:00-06:00 UTC is over"


def test_where_none_is_open_it_is_over_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "2026-01-05T12:00:00")
    window_end = WindowEnd.of(NIGHT)
    assert window_end.is_over
    assert window_end.why_over == "the time window 22:00-06:00 UTC is closed until 2026-01-05 22:00"


def test_after_the_end_no_partition_is_begun_and_no_application_started(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    batch = setting.batch("a", "b", window_end=WindowEnd(time.time(), "it is six"))
    assert batch.wait_until_planned() is None
    assert messages(batch) == {"a": LEFT, "b": LEFT}
    assert setting.worker.begun == []


def test_what_is_in_work_at_the_end_is_finished_and_the_others_are_left(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    batch = setting.batch("a", "b", "c", max_active=1, window_end=(ending := EndingAfterOne(setting)))
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)  # which it does only when it hears that b and c get no plan
    batch.application_ended()
    assert messages(batch) == {"a": "merged (minor)", "b": LEFT, "c": LEFT}
    assert setting.worker.begun == ["a"]
    assert ending.ends_seconds == math.inf


class EndingAfterOne(WindowEnd):
    """Over as soon as one partition was begun."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(math.inf, "it is six")
        object.__setattr__(self, "setting", setting)

    @property
    def is_over(self) -> bool:
        setting: Setting = self.__dict__["setting"]
        return bool(setting.worker.begun)


def test_a_minor_that_gets_no_lock_is_not_begun_anew_as_a_major_after_the_end(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    setting.worker.looks_at_lock, setting.worker.locked = {"a": 1}, {"a"}
    batch = setting.batch("a", window_end=EndingAfterOne(setting))
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": LEFT}
    assert setting.worker.begun == ["a"]


def test_the_last_moment_of_a_day_is_before_the_first_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "2026-01-05T23:59:59")
    window_end = WindowEnd.of(TimeWindow.of("22:00-00:00", "UTC"))
    assert datetime.fromtimestamp(window_end.ends_seconds, timezone.utc) == datetime(
        2026, 1, 5, tzinfo=timezone.utc
    ) + timedelta(days=1)
