"""What a task takes of memory does not grow with a stripe; docs/measurements.md has the figures at full size."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from airflow_provider_acid.merge.keys.acid_keys import DELETE, INSERT
from airflow_provider_acid.merge.orc.schema import ACID_COLUMNS
from airflow_provider_acid.plan.plan import CompactionPlan
from tests.unit.merge.acid_files import Partition, bucket_property, delete

BASE, DELETES = "base_0000001", "delete_delta_0000002_0000002_0000"
ROW = pa.struct([("c0", pa.string())])


def in_one_stripe(partition: Partition, name: str, operation: int, rows: int, row: pa.StructArray) -> None:
    """Write and list a file; ``row`` holds that of every row."""
    write_id = 1 if operation == INSERT else 2
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(operation, pa.int32()), rows),
        pa.repeat(pa.scalar(1, pa.int64()), rows),
        pa.repeat(pa.scalar(bucket_property(), pa.int32()), rows),
        pa.array(range(rows), pa.int64()),
        pa.repeat(pa.scalar(write_id, pa.int64()), rows),
        row,
    ]
    (partition.path / name).mkdir()
    with orc.ORCWriter(partition.path / name / "bucket_00000", compression="ZLIB", stripe_size=1 << 30) as writer:
        writer.write(pa.Table.from_arrays(columns, names=list(ACID_COLUMNS)))
    partition.add(name)


def texts(partition: Partition) -> CompactionPlan:
    """400,000 rows of 120 bytes, one of them deleted."""
    values = pa.array([f"{number:x} a text that is as long as others are {number:070}" for number in range(400_000)])
    in_one_stripe(partition, BASE, INSERT, len(values), pa.StructArray.from_arrays([values], fields=list(ROW)))
    partition.write(DELETES, [delete(1, 5, 2)])
    return partition.plan()


def texts_of_dictionaries(partition: Partition) -> CompactionPlan:
    """4,000,000 rows, of which each text comes twice, so that ORC's writers hold them in dictionaries."""
    values = pa.array([f"text {number // 2:08}" for number in range(4_000_000)])
    in_one_stripe(partition, BASE, INSERT, len(values), pa.StructArray.from_arrays([values], fields=list(ROW)))
    partition.write(DELETES, [delete(1, 5, 2)])
    return partition.plan()


def deletes(partition: Partition) -> CompactionPlan:
    """A minor's merge of 3,000,000 delete events."""
    in_one_stripe(partition, DELETES, DELETE, 3_000_000, pa.nulls(3_000_000, ROW))
    plan = partition.minor_plan()
    return replace(plan, buckets=plan.buckets[-1:])


@pytest.mark.parametrize(("made", "most_mb"), [(texts, 150), (texts_of_dictionaries, 280), (deletes, 200)])
def test_a_task_holds_a_part_of_a_stripe(
    made: Callable[[Partition], CompactionPlan], most_mb: int, tmp_path: Path
) -> None:
    partition = Partition(tmp_path / "table", ("string",))
    (tmp_path / "plan").write_bytes(pickle.dumps(made(partition)))
    run = subprocess.run(
        [sys.executable, "-m", "tests.harness.task_memory", str(tmp_path / "plan")],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert int(run.stdout) <= most_mb
