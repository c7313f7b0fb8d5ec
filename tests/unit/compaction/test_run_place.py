"""Where runs lie by default and on whose word, and what is in their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.run.dead_runs import DeadRuns
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, is_run_of, run_name
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.local import LocalStorage

METASTORE = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run_at(place: RunPlace, name: str = "run1") -> RunDirectory:
    return RunDirectory(Storages(), place, RunKey.new(name))


def default() -> RunPlace:
    return RunPlace.of(Storages(), None, "file:/warehouse/d.db/t")


def test_by_default_it_is_the_users_own_whatever_the_table(home: Path) -> None:
    run = run_at(default())
    assert run.location == f"file:{home}/.airflow_acid/runs/run1"
    made = sorted(path for path in home.rglob("*") if path.is_dir())
    assert [(str(path.relative_to(home)), path.stat().st_mode & 0o777) for path in made] == [
        (".airflow_acid", 0o700),
        (".airflow_acid/runs", 0o700),
        (".airflow_acid/runs/run1", 0o700),
    ]
    run.remove()
    assert sorted(path.name for path in home.rglob("*")) == [".airflow_acid", "runs"]


def test_a_named_place_may_be_shared_and_each_run_in_it_is_the_users_own(tmp_path: Path) -> None:
    run = run_at(RunPlace.of(Storages(), str(tmp_path), "file:/warehouse/d.db/t"))
    assert run.location == f"{tmp_path}/_acid_runs/run1"
    assert Path(run.location).stat().st_mode & 0o777 == 0o700
    (tmp_path / "_acid_runs").chmod(0o777)
    run_at(RunPlace.in_directory(str(tmp_path)), "run2")


@pytest.mark.parametrize("opened", [".airflow_acid", ".airflow_acid/runs", ".airflow_acid/runs/run1"])
def test_no_run_begins_where_others_may_write(home: Path, opened: str) -> None:
    (home / ".airflow_acid/runs/run1").mkdir(parents=True, mode=0o700)
    (home / opened).chmod(0o777)
    with pytest.raises(
        RefusedError, match=f"{home}/{opened}: is where compactions exchange plans and results, and may"
    ):
        run_at(default())
    assert list((home / ".airflow_acid/runs/run1").iterdir()) == []


@pytest.mark.parametrize("opened", [".airflow_acid", ".airflow_acid/runs"])
def test_no_dead_run_is_removed_where_others_may_write(
    home: Path, opened: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = home / ".airflow_acid/runs" / run_name(METASTORE)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "0000.plan.json").write_bytes(b"?" * 65 + b'{"format_version": 2, "attempt": "a"}')
    (home / opened).chmod(0o777)
    dead_runs = DeadRuns(Storages(), frozenset, lambda: METASTORE)
    dead_runs.remove(None, "file:/warehouse/d.db/t")
    assert folder.exists()
    assert "may be written to by others" in caplog.text
    (home / opened).chmod(0o700)
    DeadRuns(Storages(), frozenset, lambda: METASTORE).remove(None, "file:/warehouse/d.db/t")
    assert not folder.exists()


def test_the_application_looks_too(tmp_path: Path) -> None:
    run = run_at(RunPlace.in_directory(str(tmp_path)))
    application = job.DriverRun(LocalStorage(run.location), run.key.secret)
    assert application.batch().idle_timeout_seconds > 0
    Path(run.location).chmod(0o770)
    with pytest.raises(RefusedError, match="may be written to by others"):
        application.batch()


def test_the_application_follows_no_link(tmp_path: Path) -> None:
    run = run_at(RunPlace.in_directory(str(tmp_path)))
    (tmp_path / "run1").symlink_to(run.location)
    with pytest.raises(RefusedError, match="is a symbolic link"):
        job.DriverRun(LocalStorage(str(tmp_path / "run1")), run.key.secret).batch()


def test_a_run_is_its_metastores() -> None:
    names = {run_name(METASTORE) for _ in range(100)}
    assert len(names) == 100
    assert all(is_run_of(name, METASTORE) for name in names)
    assert not is_run_of(run_name(None), METASTORE)
    assert not is_run_of(run_name(METASTORE), METASTORE.replace("0", "1"))
