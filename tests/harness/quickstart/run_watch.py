"""How far a run is, seen on the tables' storage alone: asking the metastore as well would be one client too many
for its Derby database.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from airflow_provider_acid.acid.sealing import content_of
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.quickstart.demo_tables import DATABASE, DemoTable


class CompactionStage(str, Enum):
    """What has become visible of a partition's compaction."""

    UNTOUCHED = "untouched"
    PLANNED = "planned"
    MERGING = "merging"
    MERGED = "merged"
    COMPACTED = "compacted"
    CLEANED = "cleaned"


@dataclass
class PartitionProgress:
    """One partition as last seen.

    :param old_directories: names of what lay there before the run.
    :param bytes_per_second: speed of the merge as the Spark application tells it; None before it has.
    """

    label: str
    folder: Path
    old_directories: frozenset[str]
    stage: CompactionStage = CompactionStage.UNTOUCHED
    bytes_done: int = 0
    bytes_total: int = 0
    bytes_per_second: float | None = None


class RunWatch:
    """Remembers every partition as it was, and follows it from then on.

    :param runs: the directory of all run directories.
    """

    def __init__(self, tables: Sequence[DemoTable], runs: Path) -> None:
        self._runs = runs
        self._partitions = {
            (table.name, partition): PartitionProgress(table.label(partition), folder, _directories(folder))
            for table in tables
            for partition, folder in table.folders.items()
        }

    def poll(self) -> list[PartitionProgress]:
        """Looks again; all partitions in a fixed order."""
        for run in self._runs.glob("*"):
            self._read_run(run)
        for partition in self._partitions.values():
            _look_at_directories(partition)
        return list(self._partitions.values())

    def _read_run(self, run: Path) -> None:
        # The operator removes the directory when it is done, maybe while it is read here.
        with suppress(FileNotFoundError):
            for file in sorted(run.glob("*.plan.json")):
                plan = CompactionPlan.from_json(content_of(file.read_bytes()))
                partition = self._partitions.get((plan.entity.table, plan.entity.partition))
                if plan.entity.database == DATABASE and partition is not None:
                    _read_item(partition, plan, run, file.name.partition(".")[0])


def _read_item(partition: PartitionProgress, plan: CompactionPlan, run: Path, item: str) -> None:
    if partition.stage is CompactionStage.UNTOUCHED:
        partition.stage = CompactionStage.PLANNED
        partition.bytes_total = plan.input_bytes
    if partition.stage in (CompactionStage.PLANNED, CompactionStage.MERGING):
        for file in run.glob(f"{item}.progress.*"):
            _read_report(partition, json.loads(file.read_text()))
        result = run / f"{item}.result.json"
        if result.exists():
            seconds = CompactionResult.from_json(content_of(result.read_bytes())).seconds
            partition.bytes_done = partition.bytes_total
            partition.bytes_per_second = partition.bytes_total / max(seconds, 0.001)
            partition.stage = CompactionStage.MERGED


def _read_report(partition: PartitionProgress, report: dict[str, int]) -> None:
    # Delete deltas count once per bucket in these reports.
    done = min(report["bytes_done"], partition.bytes_total)
    if done > partition.bytes_done:
        partition.bytes_done, partition.bytes_per_second = done, report["bytes_per_second"]
        partition.stage = CompactionStage.MERGING


def _look_at_directories(partition: PartitionProgress) -> None:
    names = _directories(partition.folder)
    if not any(name.startswith("base_") for name in names - partition.old_directories):
        return
    partition.bytes_done = partition.bytes_total
    partition.stage = CompactionStage.COMPACTED if names & partition.old_directories else CompactionStage.CLEANED


def _directories(folder: Path) -> frozenset[str]:
    with suppress(FileNotFoundError):
        return frozenset(
            child.name for child in folder.iterdir() if child.name.startswith(("base_", "delta_", "delete_delta_"))
        )
    return frozenset()
