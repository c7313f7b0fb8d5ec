"""Plans, as the application reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import (
    BucketPlan,
    Column,
    CompactionPlan,
    CompactionType,
    FileFormat,
    OrcOptions,
    OutputDirectory,
    OutputKind,
    SourceFile,
    SyntheticIds,
)
from tests.harness.fuzzing.subject import Subject

MAJOR = CompactionPlan(
    attempt="a1",
    entity=Entity("sales", "orders", "ds=2024-01-01"),
    type=CompactionType.MAJOR,
    reason="12 deltas",
    location="hdfs://nameservice1/warehouse/sales.db/orders/ds=2024-01-01",
    staging=".airflow-acid-staging-a1",
    format=FileFormat.ACID_ORC,
    outputs=(OutputDirectory(OutputKind.ROWS, "base_0000005_v0000012"),),
    columns=(Column("id", "int"), Column("lines", "array<struct<a:int,b:decimal(10,2)>>")),
    high_water_mark=5,
    aborted_write_ids=(2, 4),
    directories=("delta_0000001_0000001_0000", "delta_0000003_0000003_0000", "delete_delta_0000005_0000005_0000"),
    side_files=(SourceFile("delta_0000003_0000003_0000/_orc_acid_version", 1),),
    bucketed=True,
    orc=OrcOptions(bloom_filter_columns=("id",)),
    buckets=(
        BucketPlan(
            OutputKind.ROWS,
            0,
            (
                SourceFile("000000_0", 800, synthetic=SyntheticIds(0, 536870912)),
                SourceFile("delta_0000001_0000001_0000/bucket_00000", 700, committed_bytes=650),
            ),
            (SourceFile("delete_delta_0000005_0000005_0000/bucket_00000", 600),),
        ),
    ),
)


def seeds() -> Sequence[bytes]:
    """A major, and a minor of two directories."""
    outputs = (
        OutputDirectory(OutputKind.ROWS, "delta_0000001_0000005_v0000012"),
        OutputDirectory(OutputKind.DELETES, "delete_delta_0000001_0000005_v0000012"),
    )
    minor = replace(MAJOR, type=CompactionType.MINOR, outputs=outputs, entity=Entity("sales", "orders"))
    return [plan.to_json().encode() for plan in (MAJOR, minor)]


def read(document: bytes) -> None:
    """What is read is written in the same form again."""
    plan = CompactionPlan.from_json(document)
    assert CompactionPlan.from_json(plan.to_json()) == plan


SUBJECT = Subject("plans", seeds, read)
