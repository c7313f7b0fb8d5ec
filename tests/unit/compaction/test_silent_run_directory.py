"""A store of the run directory that does not answer for a while ends no batch, and is no partition's failure."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.batch_setting import Setting, result_of, states


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def fail_once(monkeypatch: pytest.MonkeyPatch, call: str) -> list[str]:
    """The store does not answer one call of the batch's own thread, which is then in the list."""
    answer, failed = getattr(LocalStorage, call), list[str]()

    def fail(storage: LocalStorage, *arguments: Any) -> object:
        if threading.current_thread().name == "acid-compaction-batch" and not failed:
            failed.append(call)
            raise StorageError(storage.location, "does not answer", "try again")
        return answer(storage, *arguments)

    monkeypatch.setattr(LocalStorage, call, fail)
    return failed


@pytest.mark.parametrize("call", ["list", "delete_files", "read", "write_new"])
def test_one_look_or_sign_of_life_that_is_not_answered_ends_nothing(setting: Setting, call: str) -> None:
    batch = setting.batch("a", "b", max_active=2, idle_timeout_seconds=60.0)
    run = batch.wait_until_planned()
    assert run is not None
    with pytest.MonkeyPatch.context() as patch:
        failed = fail_once(patch, call)
        setting.answer(run, result_of)
        batch.application_ended()
        assert states(batch) == {"a": "compacted", "b": "compacted"}
    assert failed == [call]


def test_where_the_last_look_is_not_answered_all_are_given_back_without_a_failure_of_theirs(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = setting.batch("a", "b", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    job.DriverRun(LocalStorage(run.location), run.key.secret).write_application("application_17_0001", None)
    setting.wait_until(lambda: len(setting.worker.begun) == 2)

    def fail(storage: LocalStorage, *_: object) -> None:
        raise StorageError(storage.location, "does not answer", "try again")

    monkeypatch.setattr(LocalStorage, "list", fail)
    batch.application_ended()
    with pytest.raises(StorageError, match="does not answer"):
        batch.join()
    assert sorted(setting.worker.given_back) == ["a", "b"]


def test_who_waits_for_a_lock_needs_no_look_when_the_application_has_ended(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.worker.looks_at_lock = {"a": 20}
    batch = setting.batch("a", wanted=CompactionType.MAJOR)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    look, last_looks = RunDirectory.poll, list[bool]()

    def noted(run: RunDirectory, *, is_last: bool = False) -> Any:
        last_looks.extend([True] * is_last)
        return look(run, is_last=is_last)

    monkeypatch.setattr(RunDirectory, "poll", noted)
    batch.application_ended()
    assert states(batch) == {"a": "compacted"}
    assert setting.worker.looks_at_lock == {"a": 0}
    assert last_looks == []
