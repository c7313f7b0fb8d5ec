"""The batch's signs of life: seldom enough for the storage, and often enough for the application."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_acid.compaction.run import run_directory as run_directory_module
from airflow_provider_acid.compaction.run.run_directory import IDLE_TIMEOUT_SECONDS, RunDirectory
from airflow_provider_acid.compaction.work import batch as batch_module
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.batch_setting import PATIENCE_SECONDS, POLL_SECONDS, Setting, messages, result_of

TABLES = "abcdefgh"


class Diary:
    """What the batch does, and at how many seconds of a clock that moves by what each of these is said to take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entries: list[tuple[str, float]] = []
        self._monkeypatch = monkeypatch
        self._seconds = 0.0
        for module in (batch_module, run_directory_module):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self._seconds))

    def keep(self, owner: Any, name: str, takes_seconds: float = 0.0) -> None:
        original = getattr(owner, name)

        def kept(*args: Any) -> Any:
            self.entries.append((name, self._seconds))
            self._seconds += takes_seconds
            return original(*args)

        self._monkeypatch.setattr(owner, name, kept)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.entries]

    def keep_steps(self, setting: Setting, takes_seconds: float = 0.0) -> None:
        for name in ("begin", "finish", "resume"):
            self.keep(setting.worker, name, takes_seconds)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> Diary:
    diary = Diary(monkeypatch)
    diary.keep(RunDirectory, "beat")
    return diary


def test_a_sign_of_life_goes_before_each_step_that_may_take_minutes(
    setting: Setting, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But before there is a run directory."""
    answered = threading.Event()
    setting.worker.adopted = {"d"}
    setting.worker.looks_at_lock = {"a": 2, "b": 2}

    def poll(run: RunDirectory, original: Any = RunDirectory.poll) -> Any:
        assert answered.wait(PATIENCE_SECONDS)
        return original(run)

    diary.keep_steps(setting, takes_seconds=60.0)
    monkeypatch.setattr(RunDirectory, "poll", poll)
    batch = setting.batch("a", "b", "c", "d", max_active=4)
    run = batch.wait_until_planned()
    assert run is not None
    application = job.DriverRun(LocalStorage(run.location), run.key.secret)
    for item in range(3):
        application.write_result(item, result_of(application.plan(item)))
    answered.set()
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abcd", "merged (minor)")
    told = diary.names
    steps = [(before, step) for before, step in zip(told, told[1:], strict=False) if step != "beat"]
    # The fake worker finishes what it resumes itself.
    assert set(steps) == {("beat", "begin"), ("beat", "finish"), ("beat", "resume"), ("resume", "finish")}


def test_partitions_that_wait_for_locks_cost_no_more_signs_of_life_than_one(setting: Setting, diary: Diary) -> None:
    """One in each interval, also if every partition is looked at in it."""
    setting.worker.looks_at_lock = dict.fromkeys(TABLES, 20)
    diary.keep_steps(setting)
    diary.keep(RunDirectory, "poll", takes_seconds=2 * POLL_SECONDS)
    batch = setting.batch(*TABLES, max_active=len(TABLES))
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys(TABLES, "merged (minor)")
    polls, beats = diary.names.count("poll"), diary.names.count("beat")
    assert diary.names.count("resume") == 20 * len(TABLES)
    assert polls <= beats <= polls + 1


@pytest.mark.parametrize(
    ("poll_seconds", "idle_timeout_seconds", "most_seconds"),
    [(1.0, IDLE_TIMEOUT_SECONDS, 1.0), (1.0, 100.0, 1.0), (1.0, 10.0, 0.1), (3600.0, 10.0, 0.1)],
)
def test_a_step_begins_so_soon_after_a_sign_of_life_that_all_but_a_hundredth_of_the_idle_timeout_is_left_to_it(
    setting: Setting, diary: Diary, poll_seconds: float, idle_timeout_seconds: float, most_seconds: float
) -> None:
    diary.keep_steps(setting, takes_seconds=0.4 * most_seconds)
    batch = setting.batch(
        *TABLES, max_active=len(TABLES), poll_seconds=poll_seconds, idle_timeout_seconds=idle_timeout_seconds
    )
    assert batch.wait_until_planned() is not None
    batch.stop()
    batch.join()
    # Before the first there is no run directory.
    after = diary.entries[1:]
    beats = [seconds for name, seconds in after if name == "beat"]
    begins = [seconds for name, seconds in after if name == "begin"]
    assert len(begins) == len(TABLES) - 1
    assert all(min(begin - beat for beat in beats if beat <= begin) <= most_seconds for begin in begins)


def test_signs_of_life_come_while_a_partition_takes_long(setting: Setting) -> None:
    batch = setting.batch("a")
    run = batch.wait_until_planned()
    assert run is not None
    application = job.DriverRun(LocalStorage(run.location), run.key.secret)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while application.look().alive < 10:
        assert time.monotonic() < deadline, "the application would take the operator for dead"
        time.sleep(POLL_SECONDS)
    assert setting.worker.ended == []
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": "merged (minor)"}
