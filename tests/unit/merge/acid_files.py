"""Small ACID partitions made on the spot: written by pyorc as a Hive writer would, read back by pyorc row by row."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyorc
from pyorc.converters import ORCConverter

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.plan.exchange import PLAN_FILE
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
    SyntheticIds,
)
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import merge_bucket

STAGING = "_staging"

STRIPE_COPY = CopiedStripes(os.environ.get("STRIPE_COPY", "auto"))
"""Whether stripes are copied where a test does not say it; all tests hold for every value."""

SLICE_BYTES = int(os.environ.get("SLICE_BYTES", OrcOptions.slice_bytes))
"""Where buckets are cut if a test does not say it; most tests hold for 1, too, with which every stripe is a slice."""

Event = tuple[int, int, int, int, int, Any]


class Raw(ORCConverter):
    """Passes what the file holds: (seconds, nanoseconds), days, digits."""

    @staticmethod
    def from_orc(*values: Any) -> Any:
        return values[:2] if len(values) == 3 else values[0]

    @staticmethod
    def to_orc(*values: Any) -> Any:
        return values[0]


class RawDecimal(Raw):
    @staticmethod
    def to_orc(*values: Any) -> Any:
        _, scale, digits = values
        whole, _, fraction = digits.partition(".")
        return int(whole + fraction.ljust(scale, "0"))


CONVERTERS: dict[pyorc.TypeKind, type[ORCConverter]] = {
    pyorc.TypeKind.TIMESTAMP: Raw,
    pyorc.TypeKind.DATE: Raw,
    pyorc.TypeKind.DECIMAL: RawDecimal,
}


def bucket_property(bucket: int = 0, statement: int = 0) -> int:
    return 1 << 29 | bucket << 16 | statement


def insert(write_id: int, row_id: int, *values: Any, bucket: int = 0, statement: int = 0) -> Event:
    return 0, write_id, bucket_property(bucket, statement), row_id, write_id, values


def delete(write_id: int, row_id: int, by: int, *, bucket: int = 0, statement: int = 0) -> Event:
    return 2, write_id, bucket_property(bucket, statement), row_id, by, None


def major_plan(path: Path, format: FileFormat, target: str, **fields: Any) -> CompactionPlan:
    """A major compaction of a partition's directory; ``fields`` are what no test's plan has in common."""
    given: dict[str, Any] = {
        "aborted_write_ids": (),
        "directories": (),
        "side_files": (),
        "bucketed": False,
        "orc": OrcOptions(stripe_copy=STRIPE_COPY, slice_bytes=SLICE_BYTES),
        **fields,
    }
    return CompactionPlan(
        attempt="attempt",
        entity=Entity("db", "t"),
        type=CompactionType.MAJOR,
        reason="test",
        location=str(path),
        staging=STAGING,
        format=format,
        outputs=(OutputDirectory(OutputKind.ROWS, target),),
        **given,
    )


class Partition:
    """A partition's directory below ``path``, with one column ``v bigint`` unless told otherwise."""

    def __init__(self, path: Path, types: Sequence[str] = ("bigint",)) -> None:
        self.path = path
        self.types = types
        self.names = [f"c{place}" for place in range(len(types))]
        self.storage = LocalStorage(str(path))
        self.rows: dict[int, list[SourceFile]] = {}
        self.deletes: list[SourceFile] = []
        for name in ("attempts", "output/rows", "output/deletes"):
            (path / STAGING / name).mkdir(parents=True)
        (path / STAGING / PLAN_FILE).touch()

    def write(
        self, name: str, events: Iterable[Event], *, bucket: int = 0, types: Sequence[str] | None = None, **options: Any
    ) -> SourceFile:
        """Write ``name/bucket_N`` and list it as a source."""
        kinds = list(types or self.types)
        names = [*self.names, *(f"more{place}" for place in range(len(kinds)))]
        columns = ",".join(f"{name}:{kind}" for name, kind in zip(names, kinds, strict=False))
        schema = (
            "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
            f"row:struct<{columns}>>"
        )
        file = self.path / name / f"bucket_{bucket:05d}"
        file.parent.mkdir(exist_ok=True)
        with file.open("xb") as output, pyorc.Writer(output, schema, converters=CONVERTERS, **options) as writer:
            writer.writerows(events)
        return self.add(name, bucket=bucket)

    def write_plain(
        self,
        path: str,
        rows: Iterable[tuple[Any, ...]],
        ids: SyntheticIds,
        *,
        bucket: int = 0,
        types: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        **options: Any,
    ) -> SourceFile:
        """Write a file without ACID columns, as from before the conversion or of LOAD DATA, and list it as a source."""
        kinds = types or self.types
        named = zip(names or [f"_col{place}" for place in range(len(kinds))], kinds, strict=True)
        columns = ",".join(f"{name}:{kind}" for name, kind in named)
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        schema = f"struct<{columns}>"
        with file.open("xb") as output, pyorc.Writer(output, schema, converters=CONVERTERS, **options) as writer:
            writer.writerows(rows)
        source = SourceFile(path, file.stat().st_size, synthetic=ids)
        self.rows.setdefault(bucket, []).append(source)
        return source

    def add(self, name: str, *, bucket: int = 0, committed_bytes: int | None = None) -> SourceFile:
        """List a file that lies there as a source."""
        path = f"{name}/bucket_{bucket:05d}"
        source = SourceFile(path, (self.path / path).stat().st_size, committed_bytes)
        (self.deletes if name.startswith("delete_") else self.rows.setdefault(bucket, [])).append(source)
        return source

    def plan(
        self,
        *,
        high_water_mark: int = 1000,
        aborted: Sequence[int] = (),
        orc: OrcOptions | None = None,
        stripe_copy: CopiedStripes = STRIPE_COPY,
        bucketed: bool = False,
        target: str = "base_0001000",
    ) -> CompactionPlan:
        """A major compaction."""
        return major_plan(
            self.path,
            FileFormat.ACID_ORC,
            target,
            columns=tuple(Column(name, kind) for name, kind in zip(self.names, self.types, strict=True)),
            high_water_mark=high_water_mark,
            aborted_write_ids=tuple(aborted),
            bucketed=bucketed,
            orc=replace(orc or OrcOptions(slice_bytes=SLICE_BYTES), stripe_copy=stripe_copy),
            buckets=tuple(
                BucketPlan(OutputKind.ROWS, bucket, tuple(rows), tuple(self.deletes))
                for bucket, rows in sorted(self.rows.items())
            ),
        )

    def minor_plan(self, *, numbers: Sequence[int] = (0,), **plan: Any) -> CompactionPlan:
        """A minor compaction.

        :param numbers: buckets that get a file of delete events; each is given all delete files.
        """
        major = self.plan(**plan)
        rows = [replace(part, deletes=()) for part in major.buckets]
        events = [BucketPlan(OutputKind.DELETES, number, (), tuple(self.deletes)) for number in numbers]
        return replace(
            major,
            type=CompactionType.MINOR,
            outputs=(
                OutputDirectory(OutputKind.ROWS, "delta_0000001_0001000"),
                OutputDirectory(OutputKind.DELETES, "delete_delta_0000001_0001000"),
            ),
            buckets=(*rows, *events),
        )

    def carry_out(self, plan: CompactionPlan, kind: OutputKind, bucket: int = 0) -> Merged:
        """Merge one bucket of a plan."""
        (chosen,) = (part for part in plan.buckets if (part.output, part.bucket) == (kind, bucket))
        (merged,) = merge_bucket(self.storage, plan, chosen, lambda done_bytes: None)
        return merged

    def merge(self, bucket: int = 0, **plan: Any) -> Merged:
        """A bucket of a major compaction."""
        return self.carry_out(self.plan(**plan), OutputKind.ROWS, bucket)

    def merge_deletes(self, bucket: int = 0, **plan: Any) -> Merged:
        """A bucket's delete events in a minor compaction."""
        return self.carry_out(self.minor_plan(**plan), OutputKind.DELETES, bucket)

    def attempts(self) -> list[str]:
        return sorted(file.name for file in (self.path / STAGING / "attempts").iterdir())

    def read(self, merged: Merged) -> list[Event]:
        """The events of a merged file, as pyorc reads them."""
        assert merged.attempt is not None
        return read_events(self.path / merged.attempt)


def orc_content(
    schema: str, rows: Iterable[tuple[Any, ...]], metadata: Mapping[str, bytes] | None = None, **options: Any
) -> bytes:
    """An ORC file in memory, of pyorc's own converters."""
    output = io.BytesIO()
    with pyorc.Writer(output, schema, **options) as writer:
        writer.set_user_metadata(**(metadata or {}))
        writer.writerows(rows)
    return output.getvalue()


def read_events(path: Path, **options: Any) -> list[Event]:
    with path.open("rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS, **options))
