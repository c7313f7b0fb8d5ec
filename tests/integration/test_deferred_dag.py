"""Waits of sensor and cleaner in a real Airflow: handed to a trigger and woken by it, when there is something to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_acid.metastore.values import CompactionState
from tests.harness.airflow_commands import AirflowCommands
from tests.integration.airflow_runs import Airflow, Run
from tests.integration.compaction_site import Site

DAGS = Path(__file__).with_name("deferring_dags")
PATIENCE_SECONDS = 300.0
"""Includes a start of Spark, which takes minutes where several test runs share two cores."""


@pytest.fixture
def airflow(site: Site, tmp_path: Path) -> Iterator[Airflow]:
    with AirflowCommands(tmp_path / "airflow", DAGS) as commands:
        yield Airflow(commands, site.server)


def wait_until(condition: Callable[[], bool], output: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, output()
        time.sleep(0.5)


def test_sensor_and_cleaner_wait_deferred_until_there_is_something_to_do(airflow: Airflow, site: Site) -> None:
    table = site.table("deferred")
    table.insert(1)

    def output() -> str:
        return airflow.log.read_text() if airflow.log.exists() else ""

    def run() -> Run:
        return airflow.run_dag("waiting_compaction", {"tables": [f"{site.database}.*"]})

    with ThreadPoolExecutor(1) as other:
        running = other.submit(run)
        wait_until(lambda: running.done() or "none of 1 partitions is due" in output(), output)
        for value in (2, 3):
            table.insert(value)
        reader = site.reader(table)
        waits = f"{table.entity()} waits for transaction {reader} of "
        wait_until(lambda: running.done() or f"Still waiting: {waits}" in output(), output)
        before = table.directories()
        site.end(reader, site.admin.commit)
        ended = running.result()

    assert (ended.exit_code, ended.state) == (0, "success"), ended.output
    assert {task: dict(states) for task, states in ended.states.items()} == dict.fromkeys(
        ("due", "compact", "compacted", "clean"), {"success": 1}
    )
    assert [name for name in before if name.startswith("base_")], before
    assert [name for name in before if name.startswith("delta_")], "nothing was deleted while the reader was there"
    (base,) = table.directories()
    assert base.startswith("base_")
    assert table.values() == [1, 2, 3]
    (row,) = site.rows(table.entity())
    assert row.state is CompactionState.SUCCEEDED
