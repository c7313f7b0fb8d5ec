"""Executors that die in mid-task: each row once in the result, nothing left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.cleaner import CleaningState
from tests.harness.compaction_chain import wait_until
from tests.harness.executor_faults import Fault
from tests.harness.spark_cluster import SparkCluster
from tests.integration.cluster_runs import (
    BUCKETS,
    PARTITIONS,
    check_cleaned,
    due_items,
    due_table,
    is_compacted,
    operator,
    rows_of,
    running,
)
from tests.integration.compaction_site import AcidTable, Site

FIRST = PARTITIONS[0]


@pytest.fixture
def table(site: Site) -> AcidTable:
    return due_table(site)


def first_writer_of(partition: str, bucket: int, folder: Path, moment: str, more: str = "") -> Fault:
    return Fault.at(folder, f"/{partition}/.*/attempts/bucket_{bucket:05d}{more}", moment)


def attempts_at(table: AcidTable, partition: str, bucket: int) -> list[Path]:
    """The files that tasks have written for a bucket, or are writing."""
    return list(table.folder(partition).glob(f"*/attempts/*bucket_{bucket:05d}*"))


def clean_all(table: AcidTable) -> None:
    cleanings = table.site.clean(*(table.entity(partition) for partition in PARTITIONS))
    assert {cleaning.state for cleaning in cleanings} <= {CleaningState.CLEANED}


def check_result(table: AcidTable, before: Sequence[object], outcomes: Sequence[dict[str, object]]) -> None:
    assert [item["state"] for item in outcomes] == ["compacted"] * len(PARTITIONS)
    assert rows_of(table) == before
    clean_all(table)
    assert rows_of(table) == before
    check_cleaned(table)


@pytest.mark.parametrize("moment", ["writing", "written"])
def test_an_executor_that_is_killed_in_mid_task_is_made_up_for_by_another(
    table: AcidTable, cluster: SparkCluster, tmp_path: Path, moment: str
) -> None:
    check_that_its_death_costs_nothing(table, cluster, first_writer_of(FIRST, BUCKETS[1], tmp_path / "fault", moment))


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


def check_that_its_death_costs_nothing(table: AcidTable, cluster: SparkCluster, fault: Fault) -> None:
    before = rows_of(table)
    with running(operator(cluster, due_items(table), fault)) as task:
        fault.wait_until_struck()
        killed = fault.executor()
        assert attempts_at(table, FIRST, BUCKETS[1])
        assert not is_compacted(table, FIRST)
        killed.kill()
        outcomes = task.result()
    wait_until(lambda: not fault.worker_lives())
    check_result(table, before, outcomes)
