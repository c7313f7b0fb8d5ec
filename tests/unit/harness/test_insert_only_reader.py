"""The judge is judged: rows of insert-only fixtures as Hive read them, before and after Hive's own compaction."""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import Path

import pytest

from tests.harness.acid_reader import Snapshot
from tests.harness.hive_tables import fixture_names, load_fixture
from tests.harness.insert_only_reader import read_table

TEXT = "org.apache.hadoop.mapred.TextInputFormat"
INSERT_ONLY = [
    (version, name)
    for version in ("3.1.3", "4.0.1")
    for name in fixture_names(version)
    if not load_fixture(version, name).full_acid
]


def test_there_are_insert_only_fixtures_of_both_versions() -> None:
    assert {version for version, _ in INSERT_ONLY} == {"3.1.3", "4.0.1"}
    assert len(INSERT_ONLY) == 7


@pytest.mark.parametrize(("version", "name"), INSERT_ONLY)
def test_it_reads_what_hive_read(tmp_path: Path, version: str, name: str) -> None:
    fixture = load_fixture(version, name)
    definition = fixture.definition
    snapshot = Snapshot(fixture.high_water_mark, fixture.open_write_ids, fixture.aborted_write_ids)
    rows = read_table(
        fixture.unpack(tmp_path),
        definition.input_format,
        definition.columns,
        snapshot,
        partition_keys=definition.partition_keys,
    )
    assert sorted(map(repr, rows)) == sorted(repr(dict(row)) for row in fixture.rows)


@pytest.mark.parametrize("name", ["mm_abort", "io_abort"])
def test_without_the_aborted_write_ids_it_reads_too_much(tmp_path: Path, name: str) -> None:
    fixture = load_fixture("4.0.1" if name.startswith("mm") else "3.1.3", name)
    found = read_table(
        fixture.unpack(tmp_path),
        fixture.definition.input_format,
        fixture.definition.columns,
        Snapshot(fixture.high_water_mark),
    )
    assert len(found) > len(fixture.rows)


def values(folder: Path, header_lines: int = 0) -> list[tuple[object, object]]:
    rows = read_table(folder, TEXT, {"v": "int", "s": "string"}, Snapshot(9), header_lines=header_lines)
    return [(row["v"], row["s"]) for row in rows]


def put(folder: Path, name: str, content: bytes) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "pack"), [("a", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress), ("a.deflate", zlib.compress)]
)
def test_text_is_unpacked_by_the_extension_of_its_file(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    put(tmp_path, f"delta_0000001_0000001_0000/{name}", pack(b"1\x01a\r\n\\N\x01\\N\nx\x01b\r2"))
    assert values(tmp_path) == [("1", "a"), (None, None), (None, "b"), ("2", None)]


def test_header_lines_and_a_byte_order_mark_are_no_rows(tmp_path: Path) -> None:
    put(tmp_path, "delta_0000001_0000001_0000/a", b"\xef\xbb\xbf1\x01head\n2\x01a\n")
    assert values(tmp_path) == [("1", "head"), ("2", "a")]
    assert values(tmp_path, header_lines=1) == [("2", "a")]


def test_originals_count_until_there_is_a_base_and_files_at_any_depth_do(tmp_path: Path) -> None:
    put(tmp_path, "000000_0", b"1\n")
    put(tmp_path, "HIVE_UNION_SUBDIR_1/000000_0", b"2\n")
    put(tmp_path, "delta_0000002_0000002_0000/HIVE_UNION_SUBDIR_1/000000_0", b"3\n")
    put(tmp_path, "delta_0000002_0000002_0000/_marker", b"4\n")
    put(tmp_path, "_staging/000000_0", b"5\n")
    assert sorted(str(value) for value, _ in values(tmp_path)) == ["1", "2", "3"]
    put(tmp_path, "base_0000001/000000_0", b"6\n")
    assert sorted(str(value) for value, _ in values(tmp_path)) == ["3", "6"]
