"""Compactions on a Spark cluster of the harness: two partitions of two files each, and the operator in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.run.application import ARCHIVE_NAME
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from tests.harness.executor_faults import Fault, settings_of
from tests.harness.spark_cluster import SparkCluster
from tests.harness.spark_homes import SPARKS
from tests.harness.spark_submits import reap
from tests.integration.compaction_site import AcidTable, Site
from tests.unit.merge.acid_files import insert

PARTITIONS = ("p=1", "p=2")
BUCKETS = (0, 1)
ROWS = 200

ON_EACH_SPARK = pytest.mark.parametrize("spark_version", SPARKS, indirect=True)

RowId = tuple[int, int, int]


def due_table(site: Site) -> AcidTable:
    """Each partition has two inserts, each with a file per bucket, and deletes of a row of the first."""
    table = site.table("t", partitions=PARTITIONS)
    for partition in PARTITIONS:
        for _ in range(2):
            write = table.write(partition)
            for bucket in BUCKETS:
                events = [insert(write.id, number, number, bucket=bucket) for number in range(ROWS)]
                table.write_file(f"delta_{write.id:07d}_{write.id:07d}_0000", events, partition, bucket)
            write.commit()
        table.write(partition).delete((write.id, 3)).commit()
    return table


def rows_of(table: AcidTable) -> list[tuple[RowId, Any]]:
    """What every reader sees, row by row with row ids; the same whether it knows of visibility or not."""
    ways = [
        table.site.read(table.name, {"v": "bigint"}, table.partition_keys, check_visibility=check)
        for check in (True, False)
    ]
    first, second = (sorted((row.row_id, str(row.values)) for row in rows) for rows in ways)
    assert first == second
    return first


def due_items(table: AcidTable) -> list[dict[str, object]]:
    """The table's partitions as the operator takes them."""
    return [{"database": table.site.database, "table": table.name, "partition": name} for name in PARTITIONS]


def operator(
    cluster: SparkCluster,
    partitions: Sequence[dict[str, object]],
    faults: Sequence[Fault] = (),
    settings: Mapping[str, str] = MappingProxyType({}),
    **parameters: Any,
) -> AcidCompactionOperator:
    """The operator as docs/deploy.md sets it up, with more settings of Spark, and executors that may have faults."""
    conf = {**cluster.settings, **settings, **(settings_of(*faults) if faults else {})}
    parameters = {"total_executor_cores": 2, "executor_cores": 1, "executor_memory": "512m", **parameters}
    return AcidCompactionOperator(task_id="compact", partitions=partitions, conf=conf, **parameters)


def run(operator: AcidCompactionOperator) -> list[dict[str, object]]:
    """The operator's outcomes."""
    try:
        outcomes: list[dict[str, object]] = operator.execute({})
        return outcomes
    finally:
        reap(operator)


@contextmanager
def running(operator: AcidCompactionOperator) -> Iterator[Future[list[dict[str, object]]]]:
    """The operator at work; where the block fails it is stopped."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(run, operator)
        try:
            yield future
        except BaseException:
            operator.on_kill()
            raise


def executors_of(cluster: SparkCluster) -> set[Path]:
    """Folders of the executors that were sent this package, below that of their worker."""
    return {folder.relative_to(cluster.folder) for folder in cluster.executor_folders(ARCHIVE_NAME)}


def is_compacted(table: AcidTable, partition: str) -> bool:
    """Whether a compaction of this partition waits to be cleaned, or was."""
    done = {CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED}
    return any(row.state in done for row in table.site.rows(table.entity(partition)))


def attempts_at(table: AcidTable, partition: str, bucket: int) -> list[Path]:
    """The files that tasks have written for a bucket, or are writing."""
    return list(table.folder(partition).glob(f"*/attempts/*bucket_{bucket:05d}*"))


def check_result(
    table: AcidTable, before: Sequence[tuple[RowId, Any]], outcomes: Sequence[Mapping[str, object]]
) -> None:
    """All partitions are compacted, each has the rows from before, and nothing else is left once they are cleaned."""
    assert [item["state"] for item in outcomes] == ["compacted"] * len(PARTITIONS)
    assert rows_of(table) == before
    cleanings = table.site.clean(*(table.entity(partition) for partition in PARTITIONS))
    assert {cleaning.state for cleaning in cleanings} <= {CleaningState.CLEANED}
    assert rows_of(table) == before
    check_cleaned(table)


def check_cleaned(table: AcidTable) -> None:
    """Each partition is one base with one file per bucket, and nothing else is left below the table."""
    for partition in PARTITIONS:
        (base,) = table.folder(partition).iterdir()
        assert base.name.startswith("base_")
        files = sorted(file.name for file in base.iterdir())
        assert files == ["_metadata_acid", "_orc_acid_version", *(f"bucket_{bucket:05d}" for bucket in BUCKETS)]
    assert sorted(child.name for child in table.location.iterdir()) == sorted(PARTITIONS)
