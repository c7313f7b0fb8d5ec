"""The real operator with a real spark-submit, killed in mid-run: the Spark application, or the operator itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness.compaction_chain import Chain, wait_until
from tests.harness.metastore_server import MetastoreServer
from tests.harness.operator_process import OperatorProcess
from tests.harness.table_state import TableState

REAPER_SECONDS = 4
PARTITIONS = ("p=x/q=1", "p=y/q=2")
IN_MID_RUN = "0001.plan.json"
"""Appears once the first partition is done and the second is about to be merged."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    folder = tmp_path_factory.mktemp("reaping-metastore")
    with MetastoreServer(folder, transaction_timeout_seconds=REAPER_SECONDS, reaper=True) as server:
        yield server


@pytest.fixture(scope="module")
def patient_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    folder = tmp_path_factory.mktemp("metastore")
    with MetastoreServer(folder, transaction_timeout_seconds=REAPER_SECONDS, reaper=False) as server:
        yield server


class Batch:
    """Two partitions of one table, compacted by one task."""

    def __init__(self, server: MetastoreServer, folder: Path, database: str) -> None:
        self.server = server
        self.folder = folder
        self.states = [TableState.of(server, "acid_part", database, PARTITIONS[0])]
        table = self.states[0].table
        self.states.append(TableState(server, table, Entity(database, "acid_part", PARTITIONS[1])))

    def start(self, run_id: str = "run 1") -> OperatorProcess:
        partitions = [asdict(state.entity) for state in self.states]
        runs = self.folder / "runs"
        runs.mkdir(exist_ok=True)
        return OperatorProcess(self.server, partitions, self.folder / run_id, runs, run_id)

    def check_rows(self) -> None:
        self.states[0].check_rows()

    def check_finished(self) -> None:
        for state in self.states:
            Chain(self.server.host, self.server.port, state.entity, "cleaning").clean()
        for state in self.states:
            state.check_finished()


def test_a_spark_application_that_is_killed_is_finished_by_the_next_try(
    patient_server: MetastoreServer, tmp_path: Path
) -> None:
    batch = Batch(patient_server, tmp_path, "killed_spark")
    task = batch.start()
    task.wait_for(IN_MID_RUN)
    (jvm,) = [process for process in task.application() if process.name() == "java"]
    jvm.kill()
    assert task.wait() == 1
    assert "the Spark application ended" in task.log()
    batch.check_rows()
    again = batch.start()
    assert again.wait() == 0, again.log()
    batch.check_rows()
    batch.check_finished()
    assert list(again.runs.iterdir()) == []


def test_an_operator_that_is_killed_is_finished_by_the_next_run_and_its_application_ends(
    server: MetastoreServer, tmp_path: Path
) -> None:
    batch = Batch(server, tmp_path, "killed_operator")
    task = batch.start()
    task.wait_for(IN_MID_RUN)
    application = task.application()
    assert {process.name() for process in application} >= {"java"}
    task.kill()
    batch.check_rows()
    wait_until(lambda: not any(_lives(process) for process in application))
    batch.check_rows()

    def is_dead_for_the_metastore() -> bool:
        with Chain(server.host, server.port, batch.states[1].entity, "").client() as client:
            now_ms = client.server_now_ms()
            mine = [row for row in client.compactions(entity=batch.states[1].entity) if not row.state.is_terminal]
            txns = {txn.id: txn for txn in client.transactions()}
        assert mine, "the second partition was in mid-run"
        txn = txns.get(mine[-1].txn_id or 0)
        beat_ms = (txn.last_heartbeat_ms if txn else None) or 0
        return now_ms - beat_ms > REAPER_SECONDS * 1000

    wait_until(is_dead_for_the_metastore)
    assert list(task.runs.glob("*/*")) != [], "nobody was left to remove the run directory"
    later = batch.start("run 2")
    assert later.wait() == 0, later.log()
    states = [outcome["state"] for outcome in json.loads(later.log().splitlines()[-1])]
    assert states[1] == "compacted"
    batch.check_rows()
    batch.check_finished()
    assert [path for path in later.runs.rglob("*") if path.is_file()] == []
    with Chain(server.host, server.port, batch.states[1].entity, "").client() as client:
        ended = [row.state for row in client.compactions(entity=batch.states[1].entity)]
    assert sorted(ended) == [CompactionState.FAILED, CompactionState.SUCCEEDED]


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running()) and bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
