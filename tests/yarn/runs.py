"""Tries of one compaction task on a real YARN, of which the first gets stuck."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.recover.attempts import pool_of_txn
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.pools import owner_of
from airflow_provider_acid.metastore.values import TxnInfo, TxnState
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.compaction_chain import Chain, wait_until
from tests.harness.executor_faults import Fault
from tests.harness.operator_process import TaskProcess
from tests.harness.server_admin import admin_of
from tests.harness.spark_sites import SparkSite
from tests.harness.yarn_cluster import Application, YarnCluster
from tests.storage.remote_tables import RemoteTable

IDENTITY = "dag/run/compact/0"
"""Of the task, in all its tries."""


@dataclass
class Run:
    """Tries of one task, whose first application waits in the middle of a file.

    :param site: that of a deploy mode, with faults and parameters of the operator.
    :param stuck: the fault of a try that is given none.
    """

    yarn: YarnCluster
    table: RemoteTable
    folder: Path
    site: Callable[..., SparkSite]
    known: set[str] = field(default_factory=set)
    stuck: Fault = field(init=False)

    def begin(self, mode: str, *faults: Fault, **parameters: Any) -> tuple[TaskProcess, Application]:
        """A try in mid-run, with its application.

        :param faults: of which one has struck; by default it is one that strikes any file.
        """
        self.known |= {each.id for each in self.yarn.applications()}
        if not faults:
            faults = (self.stuck,) = (self.fault("any", ""),)
        task = self._start(mode, parameters, *faults)
        wait_until(lambda: any(fault.has_struck for fault in faults) or not task.is_running)
        assert task.is_running, task.log()
        [application] = self.new_applications()
        # Its master and an executor; after the test there is none (conftest.py).
        assert self.yarn.containers() == 2
        return task, application

    def fault(self, name: str, directory: str) -> Fault:
        """A task waits in the middle of its file.

        :param directory: a pattern of what is above the files of attempts.
        """
        return Fault.at(self.folder / name, f"{directory}/attempts/", "writing")

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
        site = self.site(mode, faults, **{"num_executors": 1, **parameters})
        storage = {"hdfs": self.table.place.storages.of(HdfsOptions).to_json()}
        partitions = [asdict(entity) for entity in self.table.entities]
        return TaskProcess(self.table.server, partitions, self.folder / "task", "run", site, storage)

    def open_transactions(self) -> list[TxnInfo]:
        """Those of the task's tries."""
        owners = {owner_of(IDENTITY, str(entity)) for entity in self.table.entities}
        with Chain.on(self.table.server, self.table.entities[0]).client() as client:
            found = [txn for txn in client.transactions() if txn.state is TxnState.OPEN]
        return [txn for txn in found if (pool := pool_of_txn(txn)) is not None and pool.owner in owners]

    def abort_transactions(self) -> None:
        """As the metastore does in the end with those of the dead, for which every cleaner waits."""
        with admin_of(self.table.server) as admin:
            for txn in self.open_transactions():
                admin.abort(txn.id)

    def check_compacted(self) -> None:
        """Each partition has the rows from before, and nothing but a base once it is cleaned."""
        storages = self.table.place.storages
        assert self.table.read() == self.table.expected
        for entity in self.table.entities:
            cleaner = Chain.on(self.table.server, entity, "cleaning", CompactionSettings(storages=storages))
            assert {cleaning.state for cleaning in cleaner.clean()} == {CleaningState.CLEANED}
            assert [name[:5] for name in self.table.names(entity)] == ["base_"]
        assert self.table.read() == self.table.expected
