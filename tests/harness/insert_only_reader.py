"""A slow and simple reader of insert-only tables (ORC, Parquet, text), to judge what the compactor made of them.

It shares no code with ``airflow_provider_acid``. A base or delta counts as a whole, with all files below it at any
depth; rows come as Hive prints them.
"""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as parquet
import pyorc

from tests.harness.acid_reader import Snapshot, live_directories
from tests.harness.hive_text import CONVERTERS, hive_text

FIELD_END = "\x01"
NULL = "\\N"
_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "deflate": zlib.decompress,
}
_ACID_PREFIXES = ("base_", "delta_", "delete_delta_")

Row = dict[str, object]


def read_table(
    location: Path,
    input_format: str,
    columns: Mapping[str, str],
    snapshot: Snapshot,
    *,
    partition_keys: Collection[str] = (),
    header_lines: int = 0,
) -> list[Row]:
    """All rows, in the form of the fixtures' ``rows/*.json``: ``file``, the columns, the partition keys.

    :param columns: name to Hive type, without partition keys.
    :param header_lines: lines at the beginning of every text file that are no rows.
    """
    rows: list[Row] = []
    for folder in sorted(location.glob("/".join(["*"] * len(partition_keys))) if partition_keys else [location]):
        levels = (level.split("=", 1) for level in folder.relative_to(location).parts)
        in_path = {name: unquote(value) for name, value in levels}
        for file in live_files(folder, snapshot):
            for values in _rows(file, input_format, columns, header_lines):
                rows.append({"file": str(file.relative_to(location)), **values, **in_path})
    return rows


def live_files(folder: Path, snapshot: Snapshot) -> list[Path]:
    """The files of a partition that a reader opens."""
    live = live_directories(folder, snapshot)
    originals: list[Path] = []
    if not any(directory.name.startswith("base_") for directory in live):
        tops = (child for child in folder.iterdir() if not child.name.startswith(_ACID_PREFIXES))
        originals = [file for child in tops for file in _files(child)]
    return sorted(originals + [file for directory in live for file in _files(directory)])


def _files(path: Path) -> Iterator[Path]:
    if path.name.startswith(("_", ".")):
        return
    if path.is_dir():
        for child in path.iterdir():
            yield from _files(child)
    elif path.stat().st_size:
        yield path


def _rows(file: Path, input_format: str, columns: Mapping[str, str], header_lines: int) -> Iterator[Row]:
    if input_format.endswith("OrcInputFormat"):
        with file.open("rb") as content:
            for fields in pyorc.Reader(content, converters=CONVERTERS):
                yield _by_position(tuple(fields), columns)
    elif input_format.endswith("ParquetInputFormat"):
        for record in parquet.read_table(file).to_pylist():
            by_name = {name.lower(): value for name, value in record.items()}
            yield {name: hive_text(by_name.get(name), kind) for name, kind in columns.items()}
    else:
        assert input_format.endswith("TextInputFormat"), input_format
        for line in _lines(file)[header_lines:]:
            fields = tuple(None if field == NULL else field for field in line.split(FIELD_END))
            yield {name: _as_typed(value, columns[name]) for name, value in _by_position(fields, columns).items()}


def _by_position(fields: tuple[object, ...], columns: Mapping[str, str]) -> Row:
    """Columns that were added after the file was written are NULL."""
    return {
        name: hive_text(fields[place] if place < len(fields) else None, kind)
        for place, (name, kind) in enumerate(columns.items())
    }


def _as_typed(value: object, kind: str) -> object:
    """Text that is no number is NULL in a column of numbers."""
    is_number = re.fullmatch(r"-?\d+", str(value)) is not None
    return value if is_number or kind not in ("tinyint", "smallint", "int", "bigint") else None


def _lines(file: Path) -> list[str]:
    content = file.read_bytes()
    codec = _CODECS.get(file.name.rpartition(".")[2])
    plain = codec(content) if codec else content
    if plain.startswith(b"\xef\xbb\xbf"):
        plain = plain[3:]
    text = re.split(r"\r\n|\n|\r", plain.decode())
    return text[:-1] if text[-1] == "" else text
