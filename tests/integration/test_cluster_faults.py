"""Executors and tasks that die in mid-task: each row once in the result, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.compaction_chain import wait_until
from tests.harness.executor_faults import Fault
from tests.harness.spark_cluster import SparkCluster
from tests.integration.cluster_runs import (
    BUCKETS,
    PARTITIONS,
    attempts_at,
    check_result,
    due_items,
    due_table,
    is_compacted,
    operator,
    rows_of,
    run,
    running,
)
from tests.integration.compaction_site import AcidTable, Site

FIRST = PARTITIONS[0]


@pytest.fixture
def table(site: Site) -> AcidTable:
    return due_table(site)


def first_writer_of(
    partition: str, bucket: int, folder: Path, moment: str, more: str = "", fails: bool = False
) -> Fault:
    return Fault.at(folder, f"/{partition}/.*/attempts/bucket_{bucket:05d}{more}", moment, fails=fails)


def test_an_executor_that_is_killed_while_it_writes_is_made_up_for_by_another(
    table: AcidTable, cluster: SparkCluster, tmp_path: Path
) -> None:
    fault = first_writer_of(FIRST, BUCKETS[1], tmp_path / "fault", "writing")
    check_that_its_death_costs_nothing(table, cluster, fault)


def test_an_executor_that_is_killed_when_its_file_has_its_name_is_made_up_for_by_another(
    table: AcidTable, cluster: SparkCluster, tmp_path: Path
) -> None:
    fault = first_writer_of(FIRST, BUCKETS[1], tmp_path / "fault", "written")
    check_that_its_death_costs_nothing(table, cluster, fault)


@pytest.mark.parametrize(
    ("more", "moment"),
    [(r"\.slice_0000", "writing"), (r"\.slice_0001", "written"), (r"\.[0-9a-f]{32}$", "writing")],
    ids=["writing a slice", "a slice is written", "joining"],
)
def test_an_executor_that_is_killed_over_slices_is_made_up_for_by_another(
    table: AcidTable,
    cluster: SparkCluster,
    tmp_path: Path,
    more: str,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SLICE_BYTES", "1")
    fault = first_writer_of(FIRST, BUCKETS[1], tmp_path / "fault", moment, more)
    check_that_its_death_costs_nothing(table, cluster, fault)


def test_a_task_that_fails_when_its_file_has_its_name_is_done_again(
    table: AcidTable, cluster: SparkCluster, tmp_path: Path
) -> None:
    before = rows_of(table)
    fault = first_writer_of(FIRST, BUCKETS[1], tmp_path / "fault", "written", fails=True)
    outcomes = run(operator(cluster, due_items(table), [fault]))
    fault.wait_until_struck()
    check_result(table, before, outcomes)


def check_that_its_death_costs_nothing(table: AcidTable, cluster: SparkCluster, fault: Fault) -> None:
    before = rows_of(table)
    with running(operator(cluster, due_items(table), [fault])) as task:
        fault.wait_until_struck()
        killed = fault.executor()
        assert attempts_at(table, FIRST, BUCKETS[1])
        assert not is_compacted(table, FIRST)
        killed.kill()
        outcomes = task.result()
    wait_until(lambda: not fault.a_worker_lives())
    check_result(table, before, outcomes)
