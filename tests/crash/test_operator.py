"""The real operator with a real spark-submit, killed in mid-run: the application, its Python workers, the operator."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.run.run_place import RUNS_DIRECTORY
from airflow_provider_acid.metastore.values import CompactionState
from tests.crash.metastores import HIVE_3, THE_HIVE_4, CrashMetastore, FixtureName, on_its_own_worker
from tests.harness.compaction_chain import Chain, wait_until
from tests.harness.every_case import some_of
from tests.harness.metastore_server import MetastoreServer
from tests.harness.operator_process import OperatorProcess
from tests.harness.table_state import TableState

PARTITIONS = {THE_HIVE_4: ("p=x/q=1", "p=y/q=2"), HIVE_3: ("ds=2024-01-01/h=0", "ds=2024-01-02/h=0")}
IN_MID_RUN = "0001.plan.json"
"""Appears once the first partition is done and the second is about to be merged."""

METASTORES = (THE_HIVE_4, HIVE_3)

on_the_newest = pytest.mark.parametrize("metastore", some_of([on_its_own_worker(one) for one in METASTORES], 0))
"""Where the metastore has little to do with it."""


class Batch:
    """Two partitions of one table, compacted by one task."""

    def __init__(self, metastore: CrashMetastore, server: MetastoreServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        first, second = PARTITIONS[metastore]
        table = FixtureName(metastore.partitioned.version, metastore.partitioned.name, first)
        self.states = [table.register(server)]
        entity = self.states[0].entity
        self.states.append(TableState(server, self.states[0].table, Entity(entity.database, entity.table, second)))

    def start(self, run_id: str = "run 1") -> OperatorProcess:
        partitions = [asdict(state.entity) for state in self.states]
        runs = self.folder / "runs"
        runs.mkdir(exist_ok=True)
        return OperatorProcess(self.server, partitions, self.folder / run_id, runs, run_id)

    def check_rows(self) -> None:
        self.states[0].check_rows()

    def check_finished(self) -> None:
        for state in self.states:
            Chain.on(self.server, state.entity, "cleaning").clean()
        for state in self.states:
            assert [name.partition("_")[0] for name in state.result()] == ["base"]
            state.check_finished(state.result())


def finish_by_next_try(batch: Batch) -> None:
    again = batch.start()
    assert again.wait() == 0, again.log()
    batch.check_rows()
    batch.check_finished()
    assert list((again.runs / RUNS_DIRECTORY).iterdir()) == []


@on_the_newest
def test_a_spark_application_that_is_killed_is_finished_by_the_next_try(
    request: pytest.FixtureRequest, metastore: CrashMetastore, tmp_path: Path
) -> None:
    batch = Batch(metastore, metastore.start(request), tmp_path)
    task = batch.start()
    task.wait_for(IN_MID_RUN)
    (jvm,) = [process for process in task.application() if process.name() == "java"]
    jvm.kill()
    assert task.wait() == 1
    assert "the Spark application ended" in task.log()
    batch.check_rows()
    finish_by_next_try(batch)


@on_the_newest
def test_python_workers_that_are_killed_are_made_up_for_by_spark_or_by_the_next_try(
    request: pytest.FixtureRequest, metastore: CrashMetastore, tmp_path: Path
) -> None:
    batch = Batch(metastore, metastore.start(request), tmp_path)
    task = batch.start()
    task.wait_for(IN_MID_RUN)
    killed = task.python_workers()
    for process in killed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert killed
    assert task.wait() in (0, 1)
    batch.check_rows()
    finish_by_next_try(batch)


@pytest.mark.parametrize("metastore", [on_its_own_worker(one, reaping=True) for one in METASTORES])
def test_an_operator_that_is_killed_is_finished_by_the_next_run_and_its_application_ends(
    request: pytest.FixtureRequest, metastore: CrashMetastore, tmp_path: Path
) -> None:
    server = metastore.start(request, reaping=True)
    batch = Batch(metastore, server, tmp_path)
    task = batch.start()
    task.wait_for(IN_MID_RUN)
    application = task.application()
    assert {process.name() for process in application} >= {"java"}
    task.kill()
    batch.check_rows()
    wait_until(lambda: not any(_lives(process) for process in application))
    batch.check_rows()
    second = batch.states[1]
    assert not all(row.state.is_terminal for row in second.queue_rows()), "the second partition was in mid-run"
    wait_until(lambda: _is_silent(second))
    assert [path for path in task.runs.rglob("*") if path.is_file()] == [], "what is done lies in the table"
    later = batch.start("run 2")
    assert later.wait() == 0, later.log()
    states = [outcome["state"] for outcome in json.loads(later.log().splitlines()[-1])]
    assert states[1] == "compacted"
    batch.check_rows()
    batch.check_finished()
    assert [path for path in later.runs.rglob("*") if path.is_file()] == []
    ended = [row.state for row in second.queue_rows()]
    assert sorted(ended) == [CompactionState.FAILED, CompactionState.SUCCEEDED]


def _is_silent(state: TableState) -> bool:
    """Whether the attempt's transaction is dead for the metastore, and its claim too old to be waited for."""
    with Chain.on(state.server, state.entity).client() as client:
        now_ms = client.server_now_ms()
        txns = {txn.id: txn for txn in client.transactions()}
    (row,) = [row for row in state.queue_rows() if not row.state.is_terminal]
    txn = txns.get(row.txn_id or 0)
    last_ms = max((txn.last_heartbeat_ms if txn else None) or 0, row.start_ms or 0)
    return now_ms - last_ms > state.server.transaction_timeout_seconds * 1000


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running()) and bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
