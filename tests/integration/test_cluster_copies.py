"""Speculative copies of tasks, both of which end: one file per output, each row once, nothing left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    running,
)
from tests.integration.compaction_site import Site

FIRST, SECOND = PARTITIONS

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.efficiency.enabled": "false",
    # Spark stops the slower one after this time; what it does until then is what these tests are about.
    "spark.python.task.killTimeout": "10min",
}

# A task that is stopped keeps its slot until then.
SLOTS = {"total_executor_cores": 4, "executor_cores": 2}

WHOLE = r"\.[0-9a-f]{32}$"
SLICE = r"\.slice_0001"


@pytest.mark.parametrize(
    ("slice_bytes", "late", "equal"),
    [(None, WHOLE, WHOLE), (1, SLICE, WHOLE), (1, WHOLE, SLICE)],
    ids=["files", "late slice", "late joining"],
)
def test_two_tasks_write_the_same_and_one_file_counts(
    site: Site,
    cluster: SparkCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slice_bytes: int | None,
    late: str,
    equal: str,
) -> None:
    """Of the first partition the slow task ends when all is published, of the second both end at once."""
    if slice_bytes is not None:
        monkeypatch.setenv("AIRFLOW__HIVE_ACID__SLICE_BYTES", str(slice_bytes))
    table = due_table(site)
    before = rows_of(table)
    slow = Fault.at(tmp_path / "slow", name_at(FIRST, late), "writing")
    twins = Fault.at(tmp_path / "twins", name_at(SECOND, equal), "written", tasks=2)
    compact = operator(cluster, due_items(table), [slow, twins], SPECULATION, max_active_partitions=1, **SLOTS)
    with running(compact) as task:
        slow.wait_until_struck()
        twins.wait_until_struck()
        assert is_compacted(table, FIRST)
        published = sorted(table.folder(FIRST).rglob("*"))
        assert slow.a_worker_lives()
        slow.release()
        assert sorted(table.folder(FIRST).rglob("*")) == published
        files = attempts_at(table, SECOND, BUCKETS[1])
        assert len([file for file in files if re.search(name_at(SECOND, equal), str(file))]) == twins.tasks
        twins.release()
        outcomes = task.result()
    check_result(table, before, outcomes)


def name_at(partition: str, ending: str) -> str:
    return f"/{partition}/.*/attempts/bucket_{BUCKETS[1]:05d}{ending}"
