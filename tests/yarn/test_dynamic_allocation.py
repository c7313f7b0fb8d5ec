"""Executors that Spark asks for as it needs them, by the example of docs/deploy.md, and their deaths."""

from __future__ import annotations

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
    assert table.read() == table.expected
    wait_until(lambda: second.has_struck or not task.is_running)
    assert task.is_running, task.log()
    assert yarn.containers() == 2
    node = yarn.node_of(second.worker())
    assert node != yarn.node_of(yarn.master(application.id))
    with yarn.without(node):
        assert table.read() == table.expected
    assert task.wait() == 0, task.log()
    assert [(each.state, yarn.attempts(each.id)) for each in run.new_applications()] == [("FINISHED", 1)]
    assert not any(fault.a_worker_lives() for fault in faults)
    run.check_compacted()
