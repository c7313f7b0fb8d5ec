"""A batch of which some partitions wait for a lock."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome
from airflow_provider_acid.plan.plan import CompactionType
from tests.unit.compaction.batch_setting import Setting, messages, result_of


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def test_who_waits_for_a_lock_keeps_nobody_else_waiting(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 20}
    batch = setting.batch("a", "b", "c", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abc", "merged (minor)")
    assert setting.worker.ended == ["b", "c", "a"]
    assert setting.worker.most_active == 2


def test_who_keeps_readers_out_waits_for_nobody_who_is_begun(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hand finishes what it began; while it begins others it could not."""
    setting.worker.looks_at_lock = {"a": 20}
    begun_by: dict[str, int] = {}
    begin = setting.worker.begin

    def begin_as_somebody(due: DuePartition) -> ActiveCompaction | Outcome:
        begun_by[due.entity.table] = threading.get_ident()
        begun = begin(due)
        setting.worker.transactions["a"].exclusive_lock_id = 1
        return begun

    monkeypatch.setattr(setting.worker, "begin", begin_as_somebody)
    batch = setting.batch("a", "b", "c", max_active=2, poll_seconds=0.05)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == dict.fromkeys("abc", "merged (minor)")
    assert setting.worker.ended[-1] == "a", "it waited for its lock all the while"
    assert begun_by["a"] not in (begun_by["b"], begun_by["c"])


def test_the_application_may_go_while_majors_wait_for_readers(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 1_000_000}
    batch = setting.batch("a", "b", wanted=CompactionType.MAJOR)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    assert setting.worker.ended == ["b"]
    batch.stop()
    assert messages(batch) == {"a": "the task was stopped", "b": "merged (major)"}
