"""Files and names as Hive writes them; written with pyorc, not with the product's code."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyorc

from tests.harness.acid_reader import RowId

Event = tuple[int, int, int, int, int, tuple[object, ...] | None]

INSERT, DELETE = 0, 2
GARBAGE = b"half a stripe that nobody committed"


def bucket_property(bucket: int, statement: int) -> int:
    """Version 1 of ``BucketCodec``."""
    return 1 << 29 | bucket << 16 | max(statement, 0)


def bucket_of(row_id: RowId) -> int:
    """The bucket number inside a row id."""
    return row_id[1] >> 16 & 0xFFF


def delta_name(kind: str, first: int, last: int, statement: int | None = None) -> str:
    """``delta_…`` or ``delete_delta_…``."""
    ending = "" if statement is None else f"_{statement:04d}"
    return f"{kind}_{first:07d}_{last:07d}{ending}"


def insert_event(row_id: RowId, values: tuple[object, ...]) -> Event:
    """A row."""
    return INSERT, *row_id, row_id[0], values


def delete_event(row_id: RowId, by_write_id: int) -> Event:
    """The deletion of a row."""
    return DELETE, *row_id, by_write_id, None


def acid_file(events: Iterable[Event], columns: Mapping[str, str]) -> bytes:
    """An ORC file with ACID columns and the footer keys of ``OrcRecordUpdater``, in one stripe."""
    ordered = sorted(events, key=lambda event: (*event[1:4], -event[4]))
    row = ",".join(f"{name}:{kind}" for name, kind in columns.items())
    schema = (
        "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
        f"row:struct<{row}>>"
    )
    deletes = sum(1 for event in ordered if event[0] == DELETE)
    footer = {
        "hive.acid.key.index": "".join(f"{event[1]},{event[2]},{event[3]};" for event in ordered[-1:]),
        "hive.acid.stats": f"{len(ordered) - deletes},0,{deletes}",
        "hive.acid.version": "2",
    }
    return _orc(ordered, schema, footer)


def raw_file(rows: Iterable[tuple[object, ...]], columns: Mapping[str, str]) -> bytes:
    """An ORC file without ACID columns."""
    return _orc(rows, f"struct<{','.join(f'{name}:{kind}' for name, kind in columns.items())}>", {})


def _orc(rows: Iterable[tuple[Any, ...]], schema: str, footer: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with pyorc.Writer(file, schema) as writer:
        writer.writerows(rows)
        writer.set_user_metadata(**{name: text.encode() for name, text in footer.items()})
    return file.getvalue()


def make_directory(directory: Path) -> None:
    """An ACID directory with its version file."""
    directory.mkdir()
    (directory / "_orc_acid_version").write_bytes(b"2")


def write_side_file(file: Path, lengths: Iterable[int]) -> None:
    """The ``_flush_length`` file of a streaming writer: big-endian numbers, of which the last one counts."""
    side_file = file.with_name(f"{file.name}_flush_length")
    side_file.write_bytes(b"".join(length.to_bytes(8, "big") for length in lengths))
