"""What is left on a real YARN when a part of a run dies: no application without an operator, none beside another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.harness.compaction_chain import wait_until
from tests.harness.spark_homes import the_spark
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.remote_tables import RemoteTable
from tests.yarn.runs import Run
from tests.yarn.sites import yarn_site

IDLE_SECONDS = 10
END_SECONDS = 30
"""How long an application may take to end that has begun to: its driver, Spark, and YARN's word on it."""

NO_ADDRESS = {"yarn_resourcemanager_webapp_address": ""}
"""Of the ResourceManager, at which Airflow ends applications."""


@pytest.fixture
def run(yarn: YarnCluster, table: RemoteTable, tmp_path: Path) -> Iterator[Run]:
    """Of a new table."""
    run = Run(yarn, table, tmp_path, partial(yarn_site, yarn, the_spark().folder))
    yield run
    run.abort_transactions()


def test_yarn_starts_no_second_master_and_the_task_gives_all_back(run: Run) -> None:
    task, application = run.begin("cluster")
    run.yarn.master(application.id).kill()
    assert task.wait() == 1
    assert run.wait_for_end(application.id, END_SECONDS).state == "FAILED"
    assert run.yarn.attempts(application.id) == 1
    assert run.open_transactions() == []
    assert run.table.read() == run.table.expected


def test_the_next_try_of_an_operator_that_was_killed_has_its_application_end_first(run: Run) -> None:
    """Nothing of it is dead yet for the metastore, nor has its application missed a sign of life."""
    task, application = run.begin("cluster", idle_timeout_seconds=600)
    task.kill()
    again = run.try_again("cluster")
    ended = run.wait_for_end(application.id, 2 * END_SECONDS)
    assert again.wait() == 0, again.log()
    [_, second] = run.new_applications()
    assert ended.finished < second.finished
    assert [run.yarn.attempts(each.id) for each in run.new_applications()] == [1, 1]
    run.check_compacted()


def test_an_application_outlives_its_operator_by_no_more_than_the_idle_time_out(run: Run) -> None:
    task, application = run.begin("client", idle_timeout_seconds=IDLE_SECONDS)
    driver = task.application()
    task.kill()
    killed = time.time()
    ended = run.wait_for_end(application.id, IDLE_SECONDS + END_SECONDS)
    assert ended.finished - killed < IDLE_SECONDS + END_SECONDS
    wait_until(lambda: not any(_lives(process) for process in driver), END_SECONDS)
    assert run.yarn.attempts(application.id) == 1
    assert run.table.read() == run.table.expected


def test_a_task_that_is_killed_takes_an_application_along_that_airflow_cannot_end(run: Run) -> None:
    task, application = run.begin("cluster", extra=NO_ADDRESS, yarn_track_via_rm_api=False, idle_timeout_seconds=600)
    task.terminate()
    assert run.wait_for_end(application.id, END_SECONDS).state != "KILLED"
    assert run.yarn.attempts(application.id) == 1
    assert run.open_transactions() == []
    assert run.table.read() == run.table.expected


def _lives(process: psutil.Process) -> bool:
    return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
