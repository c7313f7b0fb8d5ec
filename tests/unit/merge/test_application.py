"""The application says where it can be watched, and works on where it cannot say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app.driver import EXIT_DONE, Driver
from airflow_provider_acid.merge.app.driver_run import DriverRun
from tests.harness.run_files import SECRET, RunFiles
from tests.unit.merge.fake_spark import FakeSpark


@pytest.fixture
def run(tmp_path: Path) -> Path:
    RunFiles(tmp_path).put_batch()
    RunFiles(tmp_path).put_end()
    return tmp_path


def end_of(run: Path) -> int:
    return Driver(cast("SparkSession", FakeSpark()), str(run), Storages(), SECRET).run()


def test_the_application_says_where_it_can_be_watched(run: Path) -> None:
    assert end_of(run) == EXIT_DONE
    about = json.loads((run / "application.json").read_text())
    assert about == {"id": "app-1", "ui_url": "http://driver:4040"}


def test_an_application_that_cannot_say_so_works_on(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise StorageError("application.json", "the store is full", "make room")

    monkeypatch.setattr(DriverRun, "write_application", fail)
    assert end_of(run) == EXIT_DONE
