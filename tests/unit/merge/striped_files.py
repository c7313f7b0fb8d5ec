"""ACID files of several stripes, and the stripes of merged ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.files.orc_stripes import look_at, write_stripes
from tests.unit.merge.acid_files import CONVERTERS, Event, Partition, insert, orc_content
from tests.unit.merge.orc_tails import Tail

STRIPE_ROWS = 100
BASE, DELTA, STREAM, DELETES = (
    "base_0000005",
    "delta_0000006_0000006_0000",
    "delta_0000007_0000009",
    "delete_delta_0000010_0000011",
)

TYPES = ("bigint", "string", "double", "decimal(10,2)", "date", "timestamp", "boolean", "binary", "array<int>")


def values(number: int) -> tuple[Any, ...]:
    if number % 17 == 0:
        return (None,) * len(TYPES)
    return (
        number * 3,
        f"text {number:05}" * 3,
        number / 8,
        f"{number}.25",
        number,
        (number * 86400, number * 1000),
        number % 2 == 0,
        b"x" * (number % 5),
        [number, None],
    )


def striped_partition(path: Path) -> Partition:
    """Ten stripes, three, and two; write ids 7 and 9 share a stripe of the last file."""
    partition = Partition(path, TYPES)
    write_in_stripes(partition, BASE, [insert(3, row_id, *values(row_id)) for row_id in range(1000)])
    write_in_stripes(partition, DELTA, [insert(6, row_id, *values(row_id)) for row_id in range(250)])
    streamed = [insert(7 if number < 150 else 9, number % 150, *values(number)) for number in range(200)]
    write_in_stripes(partition, STREAM, streamed)
    return partition


def write_in_stripes(
    partition: Partition,
    name: str,
    events: Sequence[Event],
    *,
    types: Sequence[str] | None = None,
    stripe_rows: int = STRIPE_ROWS,
    **options: Any,
) -> None:
    """Write and list a file of which every stripe has so many rows: files of one stripe each, put together."""
    columns = ",".join(f"c{place}:{kind}" for place, kind in enumerate(types or partition.types))
    schema = (
        "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
        f"row:struct<{columns}>>"
    )
    parts = [
        orc_content(schema, events[start : start + stripe_rows], converters=CONVERTERS, **options)
        for start in range(0, len(events), stripe_rows)
    ]
    (partition.path / name).mkdir()
    with (partition.path / name / "bucket_00000").open("xb") as file:
        write_stripes([look_at(name, partial(io.BytesIO, part)) for part in parts], file)
    partition.add(name)


def source_stripes(partition: Partition) -> list[bytes]:
    return [
        stripe for source in partition.rows[0] for stripe in stripes_of((partition.path / source.path).read_bytes())
    ]


def content(partition: Partition, name: str) -> bytes:
    return (partition.path / name / "bucket_00000").read_bytes()


def attempt(partition: Partition, merged: Merged) -> bytes:
    assert merged.attempt is not None
    return (partition.path / merged.attempt).read_bytes()


def stripes_of(found: bytes) -> list[bytes]:
    return [
        found[stripe.offset : stripe.offset + stripe.indexLength + stripe.dataLength + stripe.footerLength]
        for stripe in Tail(found).footer.stripes
    ]
