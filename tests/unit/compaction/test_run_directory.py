"""The operator's side of the run directory, read by the application's side."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.publish.staging import staging_tokens
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RUNS_DIRECTORY, RunPlace
from airflow_provider_acid.exceptions import ConfigurationError, ForbiddenError, NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.copying_storage import CopyingStorage, CopyingStorages
from tests.unit.merge.acid_files import Partition, insert

RESULT = CompactionResult("attempt", "digest", Entity("db", "t"), "no luck", (), 1.5)


def run_in(
    folder: Path,
    name: str,
    idle_timeout_seconds: float = 600.0,
    storages: Storages = Storages(),  # noqa: B008 - a value
) -> RunDirectory:
    return RunDirectory(storages, RunPlace.in_directory(str(folder)), RunKey.new(name), idle_timeout_seconds)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return run_in(tmp_path, "run-1", 42.0)


@pytest.fixture
def application(run: RunDirectory) -> job.DriverRun:
    return job.DriverRun(LocalStorage(run.location), run.key.secret)


def test_the_application_reads_what_the_operator_wrote(
    run: RunDirectory, application: job.DriverRun, tmp_path: Path
) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    run.put_plan(0, partition.plan())
    run.beat()
    assert application.batch() == job.Batch(42.0)
    seen = application.look()
    assert (seen.plans, seen.ended, seen.alive) == (frozenset({0}), False, 1)
    assert application.plan(0) == partition.plan()


def test_results_and_progress_come_once(run: RunDirectory, application: job.DriverRun) -> None:
    application.write_progress(1, 1, {"bytes_done": 10})
    application.write_progress(1, 2, {"bytes_done": 30})
    application.write_result(0, RESULT)
    assert run.poll() == ({0: RESULT}, {1: 30})
    assert run.poll() == ({}, {})
    application.write_progress(1, 3, {"bytes_done": 50})
    assert run.poll() == ({}, {1: 50})


def test_signs_of_life_grow_and_old_ones_go(run: RunDirectory, application: job.DriverRun) -> None:
    for beats in range(1, 5):
        run.beat()
        assert application.look().alive == beats
    assert len(list(Path(run.location).glob("operator.alive.*"))) == 2


def test_a_plan_is_given_once(run: RunDirectory, tmp_path: Path) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    run.put_plan(0, partition.plan())
    with pytest.raises(NameTakenError):
        run.put_plan(0, partition.plan())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps({"format_version": 99}).encode(), "format version 99"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 200_000, "is nested too deep"),
        (b"[]", "expected an object, found list"),
    ],
)
def test_a_result_that_cannot_be_understood_is_its_items_error_and_the_others_come(
    run: RunDirectory, application: job.DriverRun, content: bytes, reason: str
) -> None:
    name = "0000.result.json"
    (Path(run.location) / name).write_bytes(run.key.sealed(name, content))
    application.write_result(1, RESULT)
    results, _ = run.poll()
    assert results[1] == RESULT
    assert isinstance(results[0], ConfigurationError)
    assert reason in str(results[0])


def test_a_report_of_progress_that_cannot_be_understood_is_passed_over(run: RunDirectory) -> None:
    (Path(run.location) / "0000.progress.1").write_bytes(b"{")
    assert run.poll() == ({}, {0: 0})


def test_the_last_run_leaves_the_directory_of_all_runs_to_one_that_just_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_in(tmp_path, "a")
    make_private = LocalStorage.make_private

    def make_after_the_last_went(storage: LocalStorage, path: str) -> None:
        first.remove()
        make_private(storage, path)

    monkeypatch.setattr(LocalStorage, "make_private", make_after_the_last_went)
    second = run_in(tmp_path, "b")
    second.beat()
    assert [path.name for path in (tmp_path / RUNS_DIRECTORY).iterdir()] == ["b"]
    second.remove()
    assert list((tmp_path / RUNS_DIRECTORY).iterdir()) == []


def test_where_the_directory_of_all_runs_went_with_the_last_nothing_is_deleted_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run may just begin in it."""
    (tmp_path / RUNS_DIRECTORY / "a").mkdir(parents=True)
    run = run_in(tmp_path, "a", storages=CopyingStorages())
    named: list[str] = []

    def delete(self: CopyingStorage, paths: Iterable[str]) -> None:
        names = list(paths)
        named.extend(names)
        LocalStorage.delete(self, names)

    monkeypatch.setattr(CopyingStorage, "delete", delete)
    run.remove()
    assert named == [f"{RUNS_DIRECTORY}/a"]


def test_a_run_directory_is_hidden_and_never_taken_for_staging(run: RunDirectory, tmp_path: Path) -> None:
    assert RUNS_DIRECTORY.startswith("_")
    assert staging_tokens(LocalStorage(str(tmp_path)).list()) == ()


def test_only_the_operator_says_that_it_is_over(run: RunDirectory, application: job.DriverRun) -> None:
    file = Path(run.location) / "end.json"
    for content in (b"", b"{}", run.key.sealed("batch.json", b"")):
        file.write_bytes(content)
        assert not application.look().ended
    run.put_end()
    assert application.look().ended


def test_a_look_does_not_grow_with_what_is_over(
    run: RunDirectory, application: job.DriverRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    for item in range(20):
        run.put_plan(item, partition.plan())
        application.write_progress(item, 1, {"bytes_done": 10})
        application.write_result(item, RESULT)
    assert len(run.poll()[0]) == 20
    calls: list[int] = []
    delete = LocalStorage.delete

    def counting(self: LocalStorage, paths: Iterable[str]) -> None:
        names = list(paths)
        calls.append(len(names))
        delete(self, names)

    monkeypatch.setattr(LocalStorage, "delete", counting)
    for item in range(19):
        run.forget(item)
    assert run.poll() == ({}, {})
    assert calls == [19 * 3]
    seen = application.look()
    assert (seen.plans, seen.results) == (frozenset({19}), frozenset({19}))


def test_what_the_application_says_of_itself_is_read_once(run: RunDirectory, caplog: pytest.LogCaptureFixture) -> None:
    LocalStorage(run.location).write_new("application.json", b"{")
    for _ in range(3):
        run.poll()
    assert run.application_id is None
    assert [line for line in caplog.messages if "application's id" in line] == caplog.messages[:1]


def silenced(monkeypatch: pytest.MonkeyPatch, call: str, kind: type[StorageError] = StorageError) -> None:
    """From now on a call of the store gets no answer, but for those about names of other files than results."""
    answer = getattr(LocalStorage, call)

    def fail(storage: LocalStorage, path: object = "", *others: object) -> object:
        if call == "read" and "result" not in str(path):
            return answer(storage, path, *others)
        raise kind(storage.location, "does not answer", "try again")

    monkeypatch.setattr(LocalStorage, call, fail)


@pytest.mark.parametrize("call", ["list", "read", "delete"])
def test_what_a_store_does_not_answer_comes_with_a_later_look(
    run: RunDirectory, application: job.DriverRun, call: str
) -> None:
    run.put_plan(7, Partition(Path(run.location, "t")).plan())
    run.forget(7)
    application.write_result(0, RESULT)
    application.write_result(1, RESULT)
    with pytest.MonkeyPatch.context() as patch:
        silenced(patch, call)
        assert run.poll() == ({}, {})
    assert run.poll() == ({0: RESULT, 1: RESULT}, {})
    assert not Path(run.location, "0007.plan.json").exists()


def test_a_result_that_cannot_be_read_keeps_no_other_from_coming(run: RunDirectory, application: job.DriverRun) -> None:
    application.write_result(0, RESULT)
    with pytest.MonkeyPatch.context() as patch:
        silenced(patch, "read")
        assert run.poll() == ({}, {})
        application.write_progress(1, 1, {"bytes_done": 10})
        assert run.poll() == ({}, {1: 10})
    assert run.poll() == ({0: RESULT}, {})


@pytest.mark.parametrize("is_last", [True, False], ids=["the last look", "a right is missing"])
def test_what_is_not_answered_at_the_last_look_or_never_will_be_is_not_waited_for(
    run: RunDirectory, application: job.DriverRun, is_last: bool
) -> None:
    kind = StorageError if is_last else ForbiddenError
    application.write_result(0, RESULT)
    with pytest.MonkeyPatch.context() as patch:
        silenced(patch, "read", kind)
        results, _ = run.poll(is_last=is_last)
        assert isinstance(results[0], kind)
        silenced(patch, "list", kind)
        with pytest.raises(kind, match="does not answer"):
            run.poll(is_last=is_last)


@pytest.mark.parametrize("call", ["list", "write_new", "read"])
def test_a_store_is_asked_again_for_as_long_as_the_application_asks_it(
    run: RunDirectory, application: job.DriverRun, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def look() -> None:
        run.beat_if_due(0.0)
        results, _ = run.poll()
        for result in results.values():
            raise result if isinstance(result, StorageError) else AssertionError(result)

    if call == "read":
        application.write_result(0, RESULT)
    else:
        with pytest.MonkeyPatch.context() as patch:
            silenced(patch, call)
            look()
        # An answer is the end of that; what comes then is another silence.
        now += run.idle_timeout_seconds
        look()
    silenced(monkeypatch, call)
    look()
    now += run.idle_timeout_seconds - 1
    look()
    now += 1
    with pytest.raises(StorageError, match="does not answer"):
        look()
