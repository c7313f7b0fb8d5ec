"""What every directory that a compaction publishes must keep to, whoever reads it."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pyorc

from tests.harness.acid_history.hive_files import DELETE, INSERT

_INPUT_MARKERS = {"_orc_acid_version": b"2"}
_BASE_MARKERS = {**_INPUT_MARKERS, "_metadata_acid": b'{"thisFileVersion":"0","dataFormat":"compacted"}'}


def check_published(directory: Path) -> None:
    """Check markers, names, order, buckets and footers.

    :raises AssertionError: with the file and the rule it breaks.
    """
    markers = _BASE_MARKERS if directory.name.startswith("base_") else _INPUT_MARKERS
    found = {file.name: file.read_bytes() for file in directory.iterdir() if file.name.startswith("_")}
    assert found == markers, f"{directory}: markers {found}"
    operation = DELETE if directory.name.startswith("delete_delta_") else INSERT
    for file in directory.iterdir():
        if not file.name.startswith("_"):
            _check_file(file, operation)


def _check_file(file: Path, operation: int) -> None:
    prefix, _, number = file.name.partition("_")
    assert prefix == "bucket", f"{file}: no name that every reader understands"
    assert len(number) == 5, f"{file}: no name that every reader understands"
    reader = pyorc.Reader(io.BytesIO(file.read_bytes()))
    rows = list(reader)
    assert {row[0] for row in rows} == {operation}, f"{file}: other operations than {operation}, or no rows"
    assert {row[2] >> 16 & 0xFFF for row in rows} == {int(number)}, f"{file}: rows of another bucket"
    keys = [(*row[1:4], -row[4]) for row in rows]
    for one, other in pairwise(keys):
        assert one < other, f"{file}: {one} before {other}"
    deletes = len(rows) if operation == DELETE else 0
    metadata = reader.user_metadata
    assert metadata["hive.acid.version"] == b"2", f"{file}: version"
    assert metadata["hive.acid.stats"] == f"{len(rows) - deletes},0,{deletes}".encode(), f"{file}: statistics"
    ends: list[int] = []
    for stripe in reader.iter_stripes():
        ends.append((ends[-1] if ends else 0) + len(stripe))
    index = "".join(f"{row[1]},{row[2]},{row[3]};" for row in (rows[end - 1] for end in ends))
    assert metadata["hive.acid.key.index"] == index.encode(), f"{file}: key index"
