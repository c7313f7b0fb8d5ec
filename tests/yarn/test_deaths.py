"""What is left on a real YARN when a part of a run dies: no application without an operator, none beside another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.recover.attempts import pool_of_txn
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.pools import owner_of
from airflow_provider_acid.metastore.values import TxnInfo, TxnState
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.compaction_chain import Chain, wait_until
from tests.harness.executor_faults import Fault
from tests.harness.operator_process import TaskProcess
from tests.harness.spark_homes import spark_home
from tests.harness.yarn_cluster import Application, YarnCluster
from tests.storage.remote_tables import RemoteTable
from tests.yarn.sites import yarn_site

IDLE_SECONDS = 10
END_SECONDS = 30
"""How long an application may take to end that has begun to: its driver, Spark, and YARN's word on it."""

NO_ADDRESS = {"yarn_resourcemanager_webapp_address": ""}
"""Of the ResourceManager, at which Airflow ends applications."""

IDENTITY = "dag/run/compact/0"
"""Of the task, in all its tries."""


@dataclass
class Run:
    """Tries of one task, whose first application waits in the middle of a file."""

    yarn: YarnCluster
    table: RemoteTable
    folder: Path
    known: set[str] = field(default_factory=set)

    def begin(self, mode: str, **parameters: Any) -> tuple[TaskProcess, Application]:
        """A try in mid-run, with its application."""
        self.known |= {each.id for each in self.yarn.applications()}
        fault = Fault.at(self.folder / "fault", "/attempts/", "writing")
        task = self._start(mode, parameters, fault)
        wait_until(lambda: fault.has_struck or not task.is_running)
        assert task.is_running, task.log()
        [application] = self.new_applications()
        # Its master and an executor; after the test there is none (conftest.py).
        assert self.yarn.containers() == 2
        return task, application

    def try_again(self, mode: str, **parameters: Any) -> TaskProcess:
        """The task's next try, without a fault."""
        return self._start(mode, parameters)

    def new_applications(self) -> list[Application]:
        """Those of this run."""
        return [each for each in self.yarn.applications() if each.id not in self.known]

    def application(self, id: str) -> Application:
        """As it is now."""
        [found] = [each for each in self.yarn.applications() if each.id == id]
        return found

    def wait_for_end(self, id: str, seconds: float) -> Application:
        """Waits until an application has ended and none of its processes is left."""
        wait_until(lambda: self.application(id).has_ended and not self.yarn.processes(id), seconds)
        return self.application(id)

    def _start(self, mode: str, parameters: Mapping[str, Any], *faults: Fault) -> TaskProcess:
        site = yarn_site(self.yarn, spark_home().folder, mode, faults, **{"num_executors": 1, **parameters})
        storage = {"hdfs": self.table.place.storages.of(HdfsOptions).to_json()}
        partitions = [asdict(entity) for entity in self.table.entities]
        return TaskProcess(self.table.server, partitions, self.folder / "task", "run", site, storage)

    def open_transactions(self) -> list[TxnInfo]:
        """Those of the task's tries."""
        owners = {owner_of(IDENTITY, str(entity)) for entity in self.table.entities}
        with Chain.on(self.table.server, self.table.entities[0]).client() as client:
            found = [txn for txn in client.transactions() if txn.state is TxnState.OPEN]
        return [txn for txn in found if (pool := pool_of_txn(txn)) is not None and pool.owner in owners]

    def check_compacted(self) -> None:
        """Each partition has the rows from before, and nothing but a base once it is cleaned."""
        storages = self.table.place.storages
        assert self.table.read() == self.table.expected
        for entity in self.table.entities:
            cleaner = Chain.on(self.table.server, entity, "cleaning", CompactionSettings(storages=storages))
            assert {cleaning.state for cleaning in cleaner.clean()} == {CleaningState.CLEANED}
            assert [name[:5] for name in self.table.names(entity)] == ["base_"]
        assert self.table.read() == self.table.expected


@pytest.fixture
def run(yarn: YarnCluster, table: RemoteTable, tmp_path: Path) -> Run:
    """Of a new table."""
    return Run(yarn, table, tmp_path)


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
