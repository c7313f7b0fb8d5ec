"""What a major compaction of one bucket costs when stripes are copied: ``python -m benchmarks.stripe_copy``.

A base and three deltas, deletes in none, a tenth and all of the stripes; merged without copies, with them, and copied
as files are, in turns. Prints processor seconds, which depend little on what else the machine does, and ratios.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.merge.files.sealed_output import sealed_output
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS
from airflow_provider_acid.merge.keys.acid_keys import DELETE, INSERT
from airflow_provider_acid.merge.orc.schema import acid_schema, as_written
from airflow_provider_acid.merge.rows.arrow_rows import ArrowFile
from airflow_provider_acid.plan.plan import (
    BucketPlan,
    Column,
    CompactionPlan,
    CompactionType,
    CopiedStripes,
    FileFormat,
    OrcOptions,
    OutputDirectory,
    OutputKind,
    SourceFile,
)
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import merge_bucket

COLUMNS = (
    Column("id", "bigint"),
    Column("name", "string"),
    Column("price", "decimal(12,2)"),
    Column("score", "double"),
    Column("at", "timestamp"),
)
SCHEMA = acid_schema(COLUMNS)
BUCKET_PROPERTY = 1 << 29
PIECE_ROWS = 65_536
DELTAS = 3
DELETED = {"0 %": 0.0, "10 %": 0.1, "100 %": 1.0}
"""Share of the stripes that lose a row."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description="Measure compactions that copy stripes against those that do not.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stripe-bytes", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    options = OrcOptions(stripe_bytes=given.stripe_bytes)
    print("| deletes in | stripes | MB | copy of the files | auto | never | never / auto | auto / copy |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for deleted, share in DELETED.items():
        with tempfile.TemporaryDirectory(prefix="stripe-copy-") as folder:
            plan, stripes = make_table(Path(folder), given.rows, share, options)
            seconds = measure(plan, Path(folder), given.rounds)
            copy, auto, never = (seconds[name] for name in ("copy", "auto", "never"))
            print(
                f"| {deleted} | {stripes} | {plan.input_bytes / 1e6:.0f} | {copy:.3f} | {auto:.3f} | {never:.3f} "
                f"| {never / auto:.1f} | {auto / copy:.1f} |",
                flush=True,
            )


def measure(plan: CompactionPlan, folder: Path, rounds: int) -> dict[str, float]:
    """Least processor seconds of each way, taken in turns."""
    storage = LocalStorage(plan.location)

    def merge(copies: CopiedStripes) -> None:
        mine = replace(plan, orc=replace(plan.orc, stripe_copy=copies))
        (merged,) = merge_bucket(storage, mine, mine.buckets[0], lambda done_bytes: None)
        storage.delete([merged.attempt or ""])

    def copy() -> None:
        with (folder / "copy").open("wb") as output:
            for source in plan.buckets[0].rows:
                with (folder / source.path).open("rb") as file:
                    shutil.copyfileobj(file, output, 1 << 20)

    ways: dict[str, Callable[[], None]] = {
        "copy": copy,
        "auto": lambda: merge(CopiedStripes.AUTO),
        "never": lambda: merge(CopiedStripes.NEVER),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            found[name].append(time.process_time() - start)
    return {name: min(seconds) for name, seconds in found.items()}


def make_table(folder: Path, rows: int, share: float, options: OrcOptions) -> tuple[CompactionPlan, int]:
    """Seven tenths of the rows in a base, the rest in deltas; one delete in each of a share of the stripes."""
    sizes = [rows - DELTAS * (rows // 10), *[rows // 10] * DELTAS]
    sources, deletes, stripes = [], [], 0
    for write_id, size in enumerate(sizes, 1):
        name = f"delta_{write_id:07}_{write_id:07}_0000" if write_id > 1 else "base_0000001"
        source, ends = write_rows(folder, name, write_id, size, options)
        sources.append(source)
        wanted = [end for number, end in enumerate(ends, stripes) if int((number + 1) * share) > int(number * share)]
        deletes += [(write_id, end) for end in wanted]
        stripes += len(ends)
    last = len(sizes) + 1
    events = (write_deletes(folder, f"delete_delta_{last:07}_{last:07}_0000", deletes, last, options),)
    plan = CompactionPlan(
        attempt="benchmark",
        entity=Entity("default", "t"),
        type=CompactionType.MAJOR,
        reason="benchmark",
        location=str(folder),
        staging="_staging",
        format=FileFormat.ACID_ORC,
        outputs=(OutputDirectory(OutputKind.ROWS, f"base_{last:07}"),),
        columns=COLUMNS,
        high_water_mark=last,
        aborted_write_ids=(),
        directories=(),
        side_files=(),
        bucketed=False,
        orc=options,
        buckets=(BucketPlan(OutputKind.ROWS, 0, tuple(sources), events if deletes else ()),),
    )
    (folder / "_staging" / "attempts").mkdir(parents=True)
    return plan, stripes


def write_rows(
    folder: Path, name: str, write_id: int, rows: int, options: OrcOptions
) -> tuple[SourceFile, tuple[int, ...]]:
    """A file of random rows, and the row ids of its stripes' last rows."""

    def pieces(writer: ArrowFile) -> None:
        for start in range(0, rows, PIECE_ROWS):
            count = min(PIECE_ROWS, rows - start)
            numbers = pc.cast(pc.floor(pc.multiply(pc.random(count), 1e9)), pa.int32())
            names = pc.cast(numbers, pa.string())
            seconds = pc.multiply(pc.cast(numbers, pa.int64()), 1_000_000_000)
            columns: list[pa.Array[Any]] = [
                pc.cast(numbers, pa.int64()),
                names,
                pc.cast(numbers, pa.decimal128(12, 2)),
                pc.random(count),
                pc.cast(seconds, pa.timestamp("ns")),
            ]
            row_ids = pc.cumulative_sum(
                pa.repeat(pa.scalar(1, pa.int64()), count), start=pa.scalar(start - 1, pa.int64())
            )
            writer.append(ids(INSERT, [write_id] * count, row_ids, write_id), columns)

    return write_file(folder, name, INSERT, options, pieces)


def write_deletes(folder: Path, name: str, keys: Sequence[tuple[int, int]], by: int, options: OrcOptions) -> SourceFile:
    """A file of delete events."""

    def pieces(writer: ArrowFile) -> None:
        row_ids = pa.array([row_id for _, row_id in keys], pa.int64())
        columns = [pa.nulls(len(keys), kind) for kind in writer.types]  # type: ignore[call-overload]
        is_null = pa.repeat(pa.scalar(True), len(keys))
        writer.append(ids(DELETE, [write_id for write_id, _ in keys], row_ids, by), columns, is_null)

    return write_file(folder, name, DELETE, options, pieces)[0]


def ids(operation: int, write_ids: Sequence[int], row_ids: pa.Array[Any], by: int) -> pa.RecordBatch:
    """The five columns before the row."""
    count = len(row_ids)
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(operation, pa.int32()), count),
        pa.array(write_ids, pa.int64()),
        pa.repeat(pa.scalar(BUCKET_PROPERTY, pa.int32()), count),
        row_ids,
        pa.repeat(pa.scalar(by, pa.int64()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, names=KEY_FIELDS)


def write_file(
    folder: Path, name: str, operation: int, options: OrcOptions, pieces: Callable[[ArrowFile], None]
) -> tuple[SourceFile, tuple[int, ...]]:
    """A sealed file, and the row ids of its stripes' last rows."""
    path = folder / name / "bucket_00000"
    path.parent.mkdir()
    with path.open("wb") as file, sealed_output(name, file) as output:
        writer = ArrowFile(name, output, as_written(SCHEMA), options, set())
        pieces(writer)
        writer.close()
        keys = writer.keys.last_keys(output.stripe_rows())
        output.seal(SCHEMA, keys, operation, writer.keys.rows, 0)
    source = SourceFile(f"{name}/bucket_00000", path.stat().st_size)
    return source, tuple(row_id for _, _, row_id in keys)


if __name__ == "__main__":
    main()
