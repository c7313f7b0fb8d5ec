"""Values that are easily changed on their way, one by one: what goes in comes out, bit for bit."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyorc
import pytest

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows import merge_sources
from airflow_provider_acid.plan.plan import OrcOptions, SyntheticIds
from tests.unit.merge.acid_files import Partition, bucket_property, delete, insert, read_events

ORIGINAL = SyntheticIds(0, bucket_property())
COMPRESSIONS = ["none", "zlib", "snappy", "lz4", "zstd"]


def double(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


QUIET_NAN, NEGATIVE_NAN = double(0x7FF8_0000_0000_0000), double(0xFFF8_0000_0000_0000)

# Seconds since 1970 and nanoseconds, days, and digits: as pyorc's raw converters take and give them.
LITERALS: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "tinyint": [-128, 127, 0],
    "smallint": [-32_768, 32_767],
    "int": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "float": [QUIET_NAN, NEGATIVE_NAN, -0.0, 0.0, float("inf"), float("-inf"), 2.0**-149],
    "double": [QUIET_NAN, NEGATIVE_NAN, double(0x7FF8_0000_0000_0007), -0.0, 0.0, float("inf"), 5e-324],
    "string": ["", None, " ", "  trailing  ", "\x00", "🙂", "x" * 40_000],
    "varchar(10)": ["", None, " a ", "äöü漢字🙂    "[:10]],
    "char(5)": ["abcde", "ab   ", "     ", None],
    "binary": [b"", None, b"\x00\xff", bytes(range(256))],
    "date": [-719_162, -141_428, -141_427, -1, 0, 2_932_896],
    "decimal(38,18)": [
        "12345678901234567890.123456789012345678",
        "-99999999999999999999.999999999999999999",
        "0.000000000000000001",
        "1.500000000000000000",
        "-100.000000000000000000",
        "0.000000000000000000",
    ],
    "decimal(10,2)": ["1.50", "100.00", "-0.10", "0.00", "99999999.99"],
    "decimal(5,0)": ["10", "-100", "0"],
    "array<char(3)>": [["ab ", None, "   "], [], None],
    "map<char(2),varchar(3)>": [{"a ": "b  ", "  ": None}, {}, None],
    "struct<c:char(3),v:varchar(3),d:decimal(5,2)>": [("a  ", " b ", "1.10"), (None, None, None), None],
    "struct<a:struct<b:int>>": [None, (None,), ((None,),), ((1,),)],
    "array<double>": [[QUIET_NAN, -0.0, None], [], [None], None],
    "map<int,map<int,int>>": [{}, {1: None}, {1: {}}, {1: {2: None}}, None],
    "array<array<array<boolean>>>": [[[[True, None], None], None, []], [], None],
    "timestamp": [
        (-62_135_596_800, 0),
        (-2, 500_000_000),
        (-1, 1_000),
        (0, 999_999_999),
        (253_402_300_799, 999_999_999),
    ],
    "array<struct<t:timestamp,d:date>>": [[((-86_400, 1), -1), None, ((-62_135_596_800, 5_000), -719_162)], None],
    "map<string,timestamp>": [{"9999": (253_402_214_400, 0), "1969": (-5, 250_000_000), "": None}],
}

# What only the exact way can carry.
WAYS = [(kind, way) for kind in LITERALS for way in ("arrow", "exact") if way == "exact" or "timestamp" not in kind]


def bits(value: Any) -> Any:
    """A value whose equality is that of its bits."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {bits(key): bits(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(bits, value))
    return value


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    monkeypatch.setattr(merge_rows, "ExactRows" if way == "arrow" else "ArrowRows", None)


def merged_values(partition: Partition, **plan: Any) -> list[Any]:
    return [bits(event[5][0]) for event in partition.read(partition.merge(**plan))]


@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_value_comes_out_as_it_went_in(
    kind: str, way: str, has_ids: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(way, monkeypatch)
    partition = Partition(tmp_path, (kind,))
    values = LITERALS[kind]
    if has_ids:
        partition.write("delta_0000001_0000001_0000", [insert(1, row_id, value) for row_id, value in enumerate(values)])
    else:
        partition.write_plain("000000_0", [(value,) for value in values], ORIGINAL)
    assert merged_values(partition) == bits(values)


def test_timestamps_take_the_exact_way_by_themselves(tmp_path: Path) -> None:
    for kind in (kind for kind in LITERALS if "timestamp" in kind):
        partition = Partition(tmp_path / kind, (kind,))
        partition.write_plain("000000_0", [(value,) for value in LITERALS[kind]], ORIGINAL)
        assert merged_values(partition) == LITERALS[kind]


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("becomes", COMPRESSIONS)
def test_every_compression_is_read_and_written(
    becomes: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(way, monkeypatch)
    kinds = ("string", "decimal(38,18)", "array<int>")
    partition = Partition(tmp_path, kinds)
    expected = []
    for write_id, was in enumerate(COMPRESSIONS, start=1):
        name = f"{write_id:07d}_{write_id:07d}_0000"
        rows = [insert(write_id, row, was * row, f"{row}.500000000000000000", [row] * 9) for row in range(300)]
        compression = pyorc.CompressionKind[was.upper()]
        partition.write(f"delta_{name}", rows, compression=compression)
        partition.write(f"delete_delta_{name}", [delete(write_id, 7, write_id)], compression=compression)
        expected += [row for row in rows if row[3] != 7]
    merged = partition.merge(orc=OrcOptions(compression=becomes))
    assert partition.read(merged) == expected
    with (tmp_path / str(merged.attempt)).open("rb") as file:
        assert read_tail(file, "merged").compression.name.lower() == becomes
    events = partition.read(partition.merge_deletes(orc=OrcOptions(compression=becomes)))
    assert events == [delete(write_id, 7, write_id) for write_id in range(1, 6)]


@pytest.mark.parametrize("kind", ["uniontype<int,string>", "timestamp with local time zone"])
@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "without ids"])
def test_a_file_with_a_type_that_is_not_exact_is_refused(kind: str, has_ids: bool, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("int",))
    if has_ids:
        partition.write("delta_0000001_0000001_0000", [insert(1, 0, None)], types=(kind,))
    else:
        partition.write_plain("000000_0", [(None,)], ORIGINAL, types=(kind,))
    with pytest.raises(UnsupportedTableError, match=f"0: has column c0 as {kind}, the table has int"):
        partition.merge()
    assert partition.attempts() == []


@pytest.mark.parametrize("kind", ["uniontype<int,string>", "array<uniontype<int>>", "timestamp with local time zone"])
def test_a_table_with_a_type_that_is_not_exact_is_refused_for_deletes_too(kind: str, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("int",))
    partition.write("delete_delta_0000001_0000001_0000", [delete(1, 0, 1)])
    partition.types = (kind,)
    with pytest.raises(UnsupportedTableError, match="column c0: the type .* is not supported .* Remedy: "):
        partition.merge_deletes()


ADDED_FIELDS = [
    ("struct<a:int>", "struct<a:bigint,b:array<int>>", (1,), (1, None)),
    ("map<int,struct<a:int>>", "map<bigint,struct<a:bigint,b:int>>", {5: (7,), 6: None}, {5: (7, None), 6: None}),
    ("array<varchar(3)>", "array<string>", ["a", None], ["a", None]),
    ("struct<d:decimal(5,2)>", "struct<d:decimal(38,18)>", ("-1.50",), ("-1.500000000000000000",)),
]


@pytest.mark.parametrize(("was", "becomes", "value", "expected"), ADDED_FIELDS)
def test_nested_columns_of_files_without_ids_grow_too(
    was: str, becomes: str, value: Any, expected: Any, tmp_path: Path
) -> None:
    partition = Partition(tmp_path, (becomes,))
    partition.write_plain("000000_0", [(value,), (None,)], ORIGINAL, types=(was,))
    assert merged_values(partition) == [bits(expected), None]


@pytest.mark.parametrize("way", ["arrow", "exact"])
def test_the_source_is_read_as_pyorc_reads_it(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All types in one row, deletes between them."""
    take(way, monkeypatch)
    kinds = [kind for kind in LITERALS if "timestamp" not in kind]
    partition = Partition(tmp_path, kinds)
    partition.write(
        "delta_0000001_0000001_0000",
        [insert(1, row, *(LITERALS[kind][row % len(LITERALS[kind])] for kind in kinds)) for row in range(60)],
    )
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, row, 2) for row in range(0, 60, 3)])
    before = [event for event in read_events(tmp_path / "delta_0000001_0000001_0000/bucket_00000") if event[3] % 3]
    assert bits(partition.read(partition.merge())) == bits(before)
