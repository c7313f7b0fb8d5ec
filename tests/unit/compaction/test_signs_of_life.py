"""The batch's signs of life: seldom enough for the storage, and often enough for the application."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.work.batch import BEGUN_TOGETHER
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.batch_setting import PATIENCE_SECONDS, POLL_SECONDS, Setting, messages, result_of

TABLES = "abcdefgh"


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When a sign of life was left, by the monotonic clock."""
    left: list[float] = []
    beat = RunDirectory.beat

    def noted(run: RunDirectory) -> None:
        left.append(time.monotonic())
        beat(run)

    monkeypatch.setattr(RunDirectory, "beat", noted)
    return left


@pytest.mark.parametrize("step", ["begin", "finish", "resume"])
def test_signs_of_life_come_while_a_step_of_one_partition_takes_minutes(
    setting: Setting, beats: list[float], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on S3, where the publication of a large partition copies it."""
    blocked, freed = threading.Event(), threading.Event()
    setting.worker.looks_at_lock = {"b": 2} if step == "resume" else {}
    do = getattr(setting.worker, step)

    def take_minutes(subject: Any, *others: Any) -> object:
        if getattr(subject, "active", subject).entity.table == "b":
            blocked.set()
            assert freed.wait(PATIENCE_SECONDS)
        return do(subject, *others)

    monkeypatch.setattr(setting.worker, step, take_minutes)
    batch = setting.batch("a", "b")
    run = batch.wait_until_planned()
    assert run is not None
    answering = threading.Thread(target=setting.answer, args=(run, result_of))
    answering.start()
    assert blocked.wait(PATIENCE_SECONDS)
    before = len(beats)
    setting.wait_until(lambda: len(beats) >= before + 3)
    freed.set()
    answering.join()
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("ab", "merged (minor)")


def test_a_partition_that_takes_minutes_keeps_only_those_of_its_own_hand_waiting(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked, freed = threading.Event(), threading.Event()
    tables = [f"t{number}" for number in range(3 * BEGUN_TOGETHER)]
    finish = setting.worker.finish

    def take_minutes(active: Any, result: Any) -> Any:
        if active.entity.table == "t0":
            blocked.set()
            assert freed.wait(PATIENCE_SECONDS)
        return finish(active, result)

    monkeypatch.setattr(setting.worker, "finish", take_minutes)
    batch = setting.batch(*tables, max_active=1, max_small=2 * BEGUN_TOGETHER)
    run = batch.wait_until_planned()
    assert run is not None
    answering = threading.Thread(target=setting.answer, args=(run, result_of))
    answering.start()
    assert blocked.wait(PATIENCE_SECONDS)
    setting.wait_until(lambda: len(setting.worker.ended) >= BEGUN_TOGETHER)
    assert "t0" not in setting.worker.ended
    freed.set()
    answering.join()
    batch.application_ended()
    assert messages(batch) == dict.fromkeys(tables, "merged (minor)")


def test_partitions_that_wait_for_locks_cost_no_more_signs_of_life_than_one(
    setting: Setting, beats: list[float]
) -> None:
    """One in each interval, also if every partition is looked at in it."""
    setting.worker.looks_at_lock = dict.fromkeys(TABLES, 20)
    batch = setting.batch(*TABLES, max_active=len(TABLES))
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys(TABLES, "merged (minor)")
    assert min(after - before for before, after in zip(beats, beats[1:], strict=False)) > 0.9 * POLL_SECONDS


@pytest.mark.parametrize(
    ("poll_seconds", "idle_timeout_seconds", "most_seconds"), [(3600.0, 10.0, 0.1), (0.1, 600.0, 0.1)]
)
def test_a_sign_of_life_comes_in_each_hundredth_of_the_idle_timeout_and_each_interval(
    setting: Setting, beats: list[float], poll_seconds: float, idle_timeout_seconds: float, most_seconds: float
) -> None:
    batch = setting.batch("a", poll_seconds=poll_seconds, idle_timeout_seconds=idle_timeout_seconds)
    run = batch.wait_until_planned()
    assert run is not None
    setting.wait_until(lambda: len(beats) > 10)
    assert min(after - before for before, after in zip(beats, beats[1:], strict=False)) > 0.9 * most_seconds
    batch.stop()
    batch.join()


def test_signs_of_life_come_while_a_partition_is_merged_for_long(setting: Setting) -> None:
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
