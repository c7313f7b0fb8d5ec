"""Executors that Spark asks for as it needs them, by the example of docs/deploy.md, and their deaths."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.harness.compaction_chain import wait_until
from tests.harness.spark_homes import the_spark
from tests.harness.yarn_cluster import YarnCluster
from tests.storage.remote_tables import RemoteTable
from tests.unit.test_documented_settings import json_of
from tests.yarn.runs import Run
from tests.yarn.sites import yarn_site

ONE_AT_A_TIME = {"spark.executor.memoryOverhead": "2800m"}
"""One executor fills a node, and there is no place for it on that of the application's master."""


def test_an_executor_dies_and_then_a_node_and_the_same_try_compacts_all(
    yarn: YarnCluster, table: RemoteTable, tmp_path: Path
) -> None:
    run = Run(yarn, table, tmp_path, partial(yarn_site, yarn, the_spark().folder))
    [example] = json_of("docs/deploy.md", "YARN with dynamic allocation")
    faults = [run.fault(f"fault-{place}", f"/{entity.partition}/.*") for place, entity in enumerate(table.entities[:2])]
    task, application = run.begin("cluster", *faults, **{**example, "conf": {**example["conf"], **ONE_AT_A_TIME}})
    first, second = sorted(faults, key=lambda fault: not fault.has_struck)
    first.executor().kill()
    read_until(table, lambda: second.has_struck or not task.is_running)
    assert second.has_struck, task.log()
    node = yarn.node_of(second.worker())
    assert node != yarn.node_of(yarn.master(application.id))
    with yarn.without(node):
        assert table.read() == table.expected
    read_until(table, lambda: not task.is_running)
    assert task.wait() == 0, task.log()
    assert [(each.state, yarn.attempts(each.id)) for each in run.new_applications()] == [("FINISHED", 1)]
    assert not any(fault.a_worker_lives() for fault in faults)
    run.check_compacted()


def read_until(table: RemoteTable, condition: Callable[[], bool]) -> None:
    """Reads the table about once a second, which has the same rows each time."""

    def is_met_after_a_read() -> bool:
        assert table.read() == table.expected
        time.sleep(1)
        return condition()

    wait_until(is_met_after_a_read)
