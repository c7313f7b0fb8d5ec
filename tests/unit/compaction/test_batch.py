"""Many partitions and one application: each is begun, watched and finished on its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.work import batch as batch_module
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import ConfigurationError, MetastoreUnavailableError, StorageError
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.batch_setting import PATIENCE_SECONDS, Setting, Transaction, messages, result_of, states


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def begin_application(run: RunDirectory) -> None:
    job.DriverRun(LocalStorage(run.location), run.key.secret).write_application("application_17_0001", None)


def test_one_failure_leaves_the_others_alone_and_no_more_than_allowed_are_open(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", "d", "e", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, lambda plan: result_of(plan, "corrupt" if plan.entity.table == "c" else None))
    batch.application_ended()
    assert states(batch) == {"a": "compacted", "b": "compacted", "c": "failed", "d": "compacted", "e": "compacted"}
    assert setting.worker.most_active == 2
    assert list(setting.path.glob("_acid_runs/*")) == []


@pytest.mark.parametrize(("small_bytes", "most"), [(1 << 30, 5), (1, 2)])
def test_more_partitions_are_in_work_while_they_are_small(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, small_bytes: int, most: int
) -> None:
    monkeypatch.setattr(batch_module, "SMALL_BYTES", small_bytes)
    batch = setting.batch(*"abcdefgh", max_active=2, max_small=5)
    run = batch.wait_until_planned()
    assert run is not None
    setting.wait_until(lambda: setting.worker.most_active >= most)
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == dict.fromkeys("abcdefgh", "compacted")
    assert setting.worker.most_active == most


def test_no_application_is_needed_where_nothing_is_to_be_merged(setting: Setting) -> None:
    setting.worker.outcomes = {"a": OutcomeState.SKIPPED, "b": OutcomeState.REFUSED}
    batch = setting.batch("a", "b")
    assert batch.wait_until_planned() is None
    assert states(batch) == {"a": "skipped", "b": "refused"}
    assert setting.run is None


def test_items_without_a_plan_are_skipped_for_the_application_also_those_before_the_first_plan(
    setting: Setting,
) -> None:
    setting.worker.outcomes = {"a": OutcomeState.SKIPPED, "c": OutcomeState.NOTHING_TO_MERGE}
    batch = setting.batch("a", "b", "c")
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "skipped", "b": "compacted", "c": "nothing_to_merge"}


def test_a_dead_attempts_output_is_finished_without_the_application(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    batch = setting.batch("a")
    assert batch.wait_until_planned() is None
    assert states(batch) == {"a": "compacted"}


def test_what_the_application_left_undone_is_abandoned_and_the_rest_is_not_begun(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    begin_application(run)
    batch.application_ended()
    found = {outcome.entity.table: (outcome.state.value, outcome.message) for outcome in batch.join()}
    assert found == {
        "a": ("failed", "the Spark application ended without a result for this partition"),
        "b": ("failed", "the Spark application ended without a result for this partition"),
        "c": ("failed", "the Spark application ended before this partition was begun"),
    }
    assert (setting.worker.begun, setting.worker.given_back) == (["a", "b"], [])


def test_what_an_application_that_never_began_left_undone_is_given_back_and_tried_again(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=2)
    batch.wait_until_planned()
    batch.application_ended()
    outcomes = batch.join()
    assert {outcome.state.value for outcome in outcomes} == {"failed"}
    assert [outcome.message for outcome in outcomes[:2]] == [batch_module.NEVER_BEGAN] * 2
    assert sorted(setting.worker.given_back) == ["a", "b"]


def test_what_is_wrong_before_anything_is_claimed_ends_the_batch_as_it_is(setting: Setting) -> None:
    def check(worker: Worker) -> None:
        raise ConfigurationError("run directory", "is not there", "make it")

    batch = setting.batch("a", "b", check=check)
    assert batch.wait_until_planned() is None
    with pytest.raises(ConfigurationError, match="^run directory: is not there"):
        batch.join()
    assert setting.worker.begun == []


def test_what_no_application_can_be_had_for_is_refused_and_no_failure(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=2)
    batch.wait_until_planned()
    refusal = ConfigurationError("queue q", "is not there", "name another")
    batch.application_ended(refusal)
    found = {outcome.entity.table: (outcome.state.value, outcome.message) for outcome in batch.join()}
    assert found == dict.fromkeys("abc", ("refused", str(refusal)))
    assert setting.worker.begun == ["a", "b"]
    assert sorted(setting.worker.given_back) == ["a", "b"]


def test_a_result_that_was_written_before_the_application_ended_counts(setting: Setting) -> None:
    batch = setting.batch("a", max_active=1)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "compacted"}


def test_a_lost_transaction_ends_its_partition_and_no_other(setting: Setting) -> None:
    setting.worker.transactions["a"] = Transaction()
    setting.worker.transactions["a"].is_lost = True
    batch = setting.batch("a", "b")
    run = batch.wait_until_planned()
    assert run is not None
    setting.wait_until_one_ended()
    setting.answer(run, result_of)
    batch.application_ended()
    found = {outcome.entity.table: (outcome.state.value, outcome.message) for outcome in batch.join()}
    assert found == {
        "a": ("failed", "transaction 7: was aborted. Remedy: start the attempt again."),
        "b": ("compacted", "merged (minor)"),
    }


def test_a_merge_that_takes_longer_than_a_worker_may_is_abandoned(setting: Setting) -> None:
    """W-15"""
    batch = setting.batch("a", worker_timeout_seconds=0.0)
    assert batch.wait_until_planned() is not None
    setting.wait_until_one_ended()
    batch.application_ended()
    assert "was not merged within 0 s" in messages(batch)["a"]


def test_the_application_stays_for_a_minor_that_may_be_begun_anew_as_a_major(setting: Setting) -> None:
    looks = 20
    setting.worker.looks_at_lock = {"a": looks}
    batch = setting.batch("a")
    run = batch.wait_until_planned()
    assert run is not None
    application = job.DriverRun(LocalStorage(run.location), run.key.secret)
    application.write_result(0, result_of(application.plan(0)))
    setting.wait_until(lambda: setting.worker.looks_at_lock["a"] < looks - 2)
    assert not application.look().ended
    batch.application_ended()
    assert messages(batch) == {"a": "merged (minor)"}


def test_a_minor_without_its_lock_is_begun_anew_as_a_major_in_the_same_application(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 3}
    setting.worker.locked = {"a"}
    batch = setting.batch("a", "b", max_active=1)
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": "merged (major)", "b": "merged (minor)"}
    assert setting.worker.begun == ["a", "a", "b"]


def test_an_adopted_minor_without_its_lock_brings_up_the_application_after_all(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    setting.worker.looks_at_lock = {"a": 2}
    setting.worker.locked = {"a"}
    batch = setting.batch("a")
    run = batch.wait_until_planned()
    assert run is not None
    setting.answer(run, result_of)
    batch.application_ended()
    assert messages(batch) == {"a": "merged (major)"}


def test_who_waits_for_a_lock_is_waited_for_when_the_application_has_ended(setting: Setting) -> None:
    setting.worker.adopted = {"a"}
    setting.worker.looks_at_lock = {"a": 20}
    batch = setting.batch("a", "b")
    batch.wait_until_planned()
    batch.application_ended()
    assert messages(batch) == {
        "a": "merged (minor)",
        "b": batch_module.NEVER_BEGAN,
    }


def test_a_stopped_task_waits_for_no_lock(setting: Setting) -> None:
    setting.worker.looks_at_lock = {"a": 1_000_000}
    setting.worker.adopted = {"a"}
    batch = setting.batch("a")
    patience = threading.Event()
    while not setting.worker.begun:
        patience.wait(0.01)
    batch.stop()
    batch.wait(PATIENCE_SECONDS)
    assert messages(batch) == {"a": "the task was stopped"}
    assert setting.worker.ended == ["a"]


def test_a_stopped_task_gives_everything_back(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=1)
    assert batch.wait_until_planned() is not None
    batch.stop()
    batch.wait(PATIENCE_SECONDS)
    assert {outcome.message for outcome in batch.join()} == {
        "the task was stopped",
        "the task was stopped before this partition was begun",
    }
    assert sorted(setting.worker.ended) == ["a"]


@pytest.mark.parametrize("troubles", [[], [StorageError("end.json", "is not written", "")]], ids=["", "not told"])
def test_a_stopped_task_tells_its_application_before_it_gives_anything_back(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, troubles: list[StorageError]
) -> None:
    """Airflow kills it a few seconds later, whether it has given back all or not."""
    told: list[str] = []

    def put_end(run: RunDirectory) -> None:
        told.append("end")
        for trouble in troubles:
            raise trouble

    monkeypatch.setattr(RunDirectory, "put_end", put_end)
    monkeypatch.setattr(setting.worker, "ended", told)
    batch = setting.batch("a")
    assert batch.wait_until_planned() is not None
    batch.stop()
    assert messages(batch) == {"a": "the task was stopped"}
    assert told[:2] == ["end", "a"]


def test_an_error_that_is_no_partitions_own_is_raised_after_everything_was_given_back(setting: Setting) -> None:
    setting.worker.crash = MetastoreUnavailableError("metastore", "does not answer", "start it")
    batch = setting.batch("a", "crash")
    batch.wait_until_planned()
    batch.application_ended()
    with pytest.raises(MetastoreUnavailableError, match="does not answer"):
        batch.join()
    assert setting.worker.ended == setting.worker.given_back == ["a"], "it is no failure of that partition"


@pytest.mark.parametrize("step", ["finish", "resume", "keep"])
def test_what_nobody_foresaw_at_one_step_of_one_partition_ends_that_partition_alone(
    setting: Setting, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen: a RecursionError of one odd file ended a batch of fifty."""
    setting.worker.looks_at_lock = {"odd": 3} if step == "resume" else {}
    done = getattr(setting.worker, step)

    def fail_at_odd(subject: Any, *others: Any) -> object:
        if getattr(subject, "active", subject).entity.table == "odd":
            raise RecursionError("maximum recursion depth exceeded")
        return done(subject, *others)

    monkeypatch.setattr(setting.worker, step, fail_at_odd)
    batch = setting.batch("a", "odd", "b", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    if step == "keep":
        setting.wait_until(lambda: "odd" in setting.worker.ended)
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "compacted", "odd": "failed", "b": "compacted"}
    assert "maximum recursion depth exceeded" in messages(batch)["odd"]
    assert any(record.exc_info for record in caplog.records)


def test_a_result_that_cannot_be_understood_ends_its_partition_alone(setting: Setting) -> None:
    batch = setting.batch("odd", "a", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    storage = LocalStorage(run.location)
    name = "0000.result.json"
    storage.write_new(name, run.key.sealed(name, b"[" * 200_000))
    application = job.DriverRun(storage, run.key.secret)
    setting.wait_until(lambda: 1 in application.look().plans)
    application.write_result(1, result_of(application.plan(1)))
    batch.application_ended()
    assert states(batch) == {"odd": "failed", "a": "compacted"}
    assert "is nested too deep" in messages(batch)["odd"]


def test_the_error_of_giving_one_partition_up_is_its_own_too(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    abandon = setting.worker.abandon

    def fail_at_a(active: ActiveCompaction, message: str) -> Outcome:
        if active.entity.table == "a":
            raise KeyError("type 5")
        return abandon(active, message)

    monkeypatch.setattr(setting.worker, "abandon", fail_at_a)
    batch = setting.batch("a", "b", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    begin_application(run)
    batch.application_ended()
    found = messages(batch)
    assert "KeyError: 'type 5'" in found["a"]
    assert found["b"] == "the Spark application ended without a result for this partition"


def test_where_runs_may_not_lie_every_partition_is_refused_and_given_back(setting: Setting) -> None:
    """Another try would end the same way."""
    (setting.path / "_acid_runs/run").mkdir(parents=True)
    (setting.path / "_acid_runs/run").chmod(0o777)
    batch = setting.batch("a", "b")
    assert batch.wait_until_planned() is None
    assert states(batch) == {"a": "refused", "b": "refused"}
    assert all("may be written to by others" in message for message in messages(batch).values())
    assert sorted(setting.worker.given_back) == ["a", "b"]


def test_the_queue_is_told_once_which_application_merges_a_partition(setting: Setting) -> None:
    batch = setting.batch("a", "b", "c", max_active=2)
    run = batch.wait_until_planned()
    assert run is not None
    begin_application(run)
    setting.wait_until(lambda: len(setting.worker.named) == 2)
    setting.answer(run, result_of)
    batch.application_ended()
    batch.join()
    named = [(table, "application_17_0001") for table in ("a", "b", "c")]
    assert sorted(setting.worker.named) in (named, named[:2]), "c may have been merged between two looks"


@pytest.mark.parametrize("said", [b"{", b'{"id": 7}', b'{"id": "a b"}', b'{"id": "' + b"x" * 201 + b'"}'])
def test_what_is_no_applications_id_is_told_to_nobody(setting: Setting, said: bytes) -> None:
    batch = setting.batch("a")
    run = batch.wait_until_planned()
    assert run is not None
    LocalStorage(run.location).write_new("application.json", said)
    setting.answer(run, result_of)
    batch.application_ended()
    assert states(batch) == {"a": "compacted"}
    assert setting.worker.named == []
