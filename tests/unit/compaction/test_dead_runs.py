"""Run directories of operators that died are removed; a look at them costs next to nothing, and never a living run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import HEAD_BYTES, RunKey
from airflow_provider_acid.compaction.run.dead_runs import DeadRuns
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RUNS_DIRECTORY, RunPlace
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.plan.plan import FORMAT_VERSION
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.merge.acid_files import Partition, insert

RESULT = CompactionResult("attempt", "digest", Entity("db", "t"), "no luck", (), 1.5)


OWN, OTHERS = (f"{number}0000000-0000-0000-0000-000000000000" for number in range(2))
"""Ids of metastores' databases."""

SEAL = b"?" * HEAD_BYTES
"""Nobody but the dead operator could say whether it is right."""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(Storages(), RunPlace.in_directory(str(tmp_path)), RunKey.new(named("run-1")), 42.0)


def runs_of(tmp_path: Path) -> list[str]:
    folder = tmp_path / RUNS_DIRECTORY
    return sorted(_called(path.name) for path in folder.iterdir()) if folder.exists() else []


def named(call: str, metastore: str = OWN) -> str:
    """The name of a run that the tests call otherwise."""
    return f"{metastore}.{call.encode().hex():0>32}"


def _called(name: str) -> str:
    return bytes.fromhex(name.rpartition(".")[2]).lstrip(b"\0").decode()


def dead_runs(look: Callable[[], Collection[str]], metastore: str | None = OWN) -> DeadRuns:
    return DeadRuns(Storages(), look, lambda: metastore)


@pytest.mark.parametrize(
    ("plans", "results", "ended", "alive", "left"),
    [
        (["a"], [], False, set(), []),
        (["a"], [], False, {"a"}, ["run-1"]),
        (["a", "b"], [], False, {"b"}, ["run-1"]),
        (["a", "b"], [1], False, {"b"}, ["run-1"]),
        (["a"], [0], False, set(), ["run-1"]),
        (["a", "b", "c"], [0, 1, 2], True, set(), []),
        (["a", "b", "c"], [0, 1, 2], True, {"c"}, ["run-1"]),
        ([], [], True, set(), []),
        ([], [], False, set(), ["run-1"]),
    ],
    ids=[
        "its only attempt is dead",
        "its only attempt lives",
        "one of its attempts lives",
        "the one that lives has its result already",
        "all plans have results: the operator may be about to begin the next partition",
        "all partitions have results, and the operator died before it published them",
        "all partitions have results, and the operator is about to publish the last",
        "nothing is left to do but to remove it",
        "nothing is handed out yet",
    ],
)
def test_a_run_is_removed_when_it_was_at_work_or_over_and_none_of_its_attempts_lives(
    run: RunDirectory,
    tmp_path: Path,
    plans: list[str],
    results: list[int],
    ended: bool,
    alive: set[str],
    left: list[str],
) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    for item, token in enumerate(plans):
        run.put_plan(item, replace(partition.plan(), attempt=token))
    for item in results:
        job.DriverRun(LocalStorage(run.location), run.key.secret).write_result(item, RESULT)
    if ended:
        run.put_end()
    dead_runs(lambda: alive).remove(str(tmp_path), "")
    assert runs_of(tmp_path) == left


def test_where_no_run_ever_was_nothing_is_removed_and_nothing_fails(tmp_path: Path) -> None:
    dead_runs(nobody).remove(str(tmp_path), "")
    assert runs_of(tmp_path) == []


def others_run(parent: Path, name: str, plans: int, *, results: int = 0) -> Path:
    """Plans of attempts that are called by the run and the item."""
    folder = parent / RUNS_DIRECTORY / named(name)
    folder.mkdir(parents=True)
    for item in range(plans):
        plan = {"format_version": FORMAT_VERSION, "attempt": f"{name}-{item}"}
        (folder / f"{item:04d}.plan.json").write_bytes(SEAL + json.dumps(plan).encode())
    for item in range(results):
        (folder / f"{item:04d}.result.json").write_text("{}")
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that are read."""
    found: list[str] = []
    real = LocalStorage.read

    def reading(storage: LocalStorage, path: str, *most_bytes: int) -> bytes:
        found.append(path)
        return real(storage, path, *most_bytes)

    monkeypatch.setattr(LocalStorage, "read", reading)
    return found


def nobody() -> Collection[str]:
    return ()


@pytest.mark.parametrize("plans", [10, 100])
def test_where_nobody_lives_a_run_is_known_for_dead_by_one_plan_whatever_their_number(
    tmp_path: Path, read: list[str], plans: int
) -> None:
    folder = others_run(tmp_path, "dead", plans, results=plans // 2)
    dead_runs(nobody).remove(str(tmp_path), "")
    assert len(read) == 1
    assert not folder.exists()


@pytest.mark.parametrize("plans", [10, 100, 1000])
def test_of_a_living_run_one_plan_is_read_whatever_its_number_and_it_stays(
    tmp_path: Path, read: list[str], plans: int
) -> None:
    """What is merged just now is alive; all before it has its result."""
    folder = others_run(tmp_path, "living", plans, results=plans - 1)
    dead_runs(lambda: {f"living-{plans - 1}"}).remove(str(tmp_path), "")
    assert [Path(path).name for path in read] == [f"{plans - 1:04d}.plan.json"]
    assert folder.exists()


@pytest.mark.parametrize("partitions", [10, 1000])
def test_a_batch_looks_once_in_each_place_whatever_the_number_of_its_partitions(
    tmp_path: Path, read: list[str], partitions: int
) -> None:
    """Seen: each of its own plans was read at each of its beginnings."""
    looks: list[int] = []

    def look() -> Collection[str]:
        looks.append(1)
        return {f"living-{item}" for item in range(5)}

    own = dead_runs(look)
    for place in ("a", "b"):
        others_run(tmp_path / place, "dead", 5)
        others_run(tmp_path / place, "living", 5)
    for number in range(partitions):
        own.remove(str(tmp_path / "ab"[number % 2]), "")
        others_run(tmp_path / "a", f"own-{number}", 1)
    assert len(looks) == 2
    assert len(read) == 2 * (5 + 1)
    assert not [path for path in read if "own" in path]
    assert runs_of(tmp_path / "b") == ["living"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 200_000, "is nested too deep"),
        (b"", "is not JSON"),
        (b'{"format_version": 1, "attempt": "a"}', "has format version 1"),
        (b'{"format_version": 99, "attempt": "a"}', "has format version 99"),
        (json.dumps({"format_version": FORMAT_VERSION, "attempt": 5}).encode(), "expected a string, found int"),
    ],
)
def test_a_run_that_nobody_understands_is_left_alone_with_one_warning_that_names_it(
    tmp_path: Path, content: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd = others_run(tmp_path, "odd", 1)
    (odd / "0000.plan.json").write_bytes(SEAL + content)
    others_run(tmp_path, "dead", 1)
    with caplog.at_level(logging.WARNING):
        dead_runs(nobody).remove(str(tmp_path), "")
    assert runs_of(tmp_path) == ["odd"]
    told = [record.getMessage() for record in caplog.records]
    assert [reason in message and f"{RUNS_DIRECTORY}/{named('odd')}" in message for message in told] == [True]


@pytest.mark.parametrize("error", [StorageError("x", "permission denied", "ask"), OSError("gone"), KeyError("x")])
@pytest.mark.parametrize("call", ["list", "read", "delete"])
def test_a_place_that_cannot_be_looked_at_is_nobodys_failure(
    tmp_path: Path, call: str, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another batch may be removing the same run just now."""

    def fail(*arguments: object) -> bytes:
        raise error

    others_run(tmp_path, "dead", 1)
    monkeypatch.setattr(LocalStorage, call, fail)
    dead_runs(nobody).remove(str(tmp_path), "")
    assert runs_of(tmp_path) == ["dead"]
    assert [record.levelname for record in caplog.records if record.exc_info is None] == ["WARNING"]


@pytest.mark.parametrize(
    ("name", "metastore"),
    [
        (named("other", OTHERS), OWN),
        (named("nobodys", "unknown"), OWN),
        (named("own"), None),
        (named("nobodys", "unknown"), None),
        ("0123456789abcdef0123456789abcdef", OWN),
        (f"{OWN}.{'0' * 31}", OWN),
        (f"x{named('own')}", OWN),
    ],
    ids=["another's", "of no known one", "asked is no known one", "neither is", "old release's", "short", "odd"],
)
def test_a_run_of_another_metastore_or_of_one_that_nobody_knows_is_left_alone_without_a_word(
    tmp_path: Path, read: list[str], name: str, metastore: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    others_run(tmp_path, "dead", 1).rename(tmp_path / RUNS_DIRECTORY / name)
    with caplog.at_level(logging.INFO):
        dead_runs(nobody, metastore).remove(str(tmp_path), "")
    assert [path.name for path in (tmp_path / RUNS_DIRECTORY).iterdir()] == [name]
    assert (read, caplog.records) == ([], [])
