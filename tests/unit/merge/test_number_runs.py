"""What runs say of ids is what ORC's own library decodes, row by row; in doubt they say nothing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import orc

from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, open_source
from airflow_provider_acid.merge.keys.one_write import OneWrite, one_write
from airflow_provider_acid.merge.orc.number_runs import NumberRange, _range_of, number_ranges
from airflow_provider_acid.merge.orc.schema import is_acid
from airflow_provider_acid.merge.orc.stripe_footers import stripe_footer
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.plan.plan import SourceFile
from tests.harness.hive_tables import VERSIONS, fixture_names, load_fixture
from tests.unit.merge.acid_files import Partition, bucket_property, insert

COMPRESSIONS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")

steps = st.sampled_from([0, 1, 1, 1, 2, 1000, -1])
pieces = st.tuples(
    st.sampled_from([0, 1, 5, 2**29, 2**40, 2**62, -7]), steps, st.sampled_from([1, 2, 3, 10, 600, 1500])
)


def numbers_of(found: list[tuple[int, int, int]]) -> list[int]:
    return [first + step * row for first, step, rows in found for row in range(rows)]


def expected(numbers: list[int]) -> NumberRange | None:
    ascends = all(one < other for one, other in zip(numbers, numbers[1:], strict=False))
    if min(numbers) < 0 or not (ascends or len(set(numbers)) == 1):
        return None
    return NumberRange(numbers[0], numbers[-1], ascends)


def by_arrow(numbers: list[int], compression: Any = "zlib") -> bytes:
    file = io.BytesIO()
    orc.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), file, compression=compression)
    return file.getvalue()


def no_more_files() -> BinaryIO:
    raise AssertionError


def ranges(content: bytes) -> NumberRange | None:
    file = io.BytesIO(content)
    tail = read_tail(file, "f")
    (stripe,) = tail.stripes
    found = number_ranges(file, tail, stripe, stripe_footer(file, tail, stripe, "f"), [1])
    return found[0] if found else None


@example([(0, 1, 1500)], "zlib")
@example([(0, 1, 600), (600, 1, 600)], "zlib")
@example([(7, 0, 600), (7, 0, 3), (7, 0, 10)], "zlib")
@example([(7, 0, 600), (8, 0, 600)], "zlib")
@example([(0, 1, 600), (599, 1, 600)], "zlib")
@given(st.lists(pieces, min_size=1, max_size=5), st.sampled_from(COMPRESSIONS))
def test_runs_say_of_a_column_what_its_numbers_are_or_nothing(found: list[tuple[int, int, int]], how: str) -> None:
    numbers = numbers_of(found)
    assert ranges(by_arrow(numbers, how)) in (expected(numbers), None)


@pytest.mark.parametrize("first", [0, 1, 5, 2**29, 2**40])
@pytest.mark.parametrize(("step", "rows"), [(0, 3), (0, 11), (0, 200_000), (1, 11), (1, 200_000), (3, 5000)])
@pytest.mark.parametrize("how", COMPRESSIONS)
def test_long_runs_are_found(first: int, step: int, rows: int, how: str) -> None:
    numbers = numbers_of([(first, step, rows)])
    assert ranges(by_arrow(numbers, how)) == expected(numbers)


def as_run(step: int, first: int, rows: int) -> bytes:
    def varint(number: int) -> bytes:
        number = number * 2 if number >= 0 else -2 * number - 1
        parts = [number >> bits & 0x7F for bits in range(0, max(number.bit_length(), 1), 7)]
        return bytes([*(part | 0x80 for part in parts[:-1]), parts[-1]])

    return bytes([0xC0 | (rows - 1) >> 8, (rows - 1) & 0xFF]) + varint(first) + varint(step)


runs = st.tuples(steps, st.integers(-3, 2**49), st.sampled_from([1, 2, 3, 64, 512]))


@example([(1, 0, 512), (1, 511, 512)], 0)
@example([(1, 1000, 512), (1, 1511, 512)], 0)
@example([(0, 7, 512), (0, 7, 512)], 1)
@example([(0, 7, 512), (0, 7, 512)], -1)
@given(st.lists(runs, min_size=1, max_size=70), st.integers(-1, 1))
def test_runs_that_no_writer_makes_are_understood_or_left(found: list[tuple[int, int, int]], more: int) -> None:
    """Runs of one row, runs that overlap, and others than as many as the stripe has rows."""
    numbers = numbers_of([(first, step, rows) for step, first, rows in found])
    said = _range_of(b"".join(as_run(*run) for run in found), len(numbers) + more)
    assert said is None or (more == 0 and said == expected(numbers))


@given(st.binary(max_size=60), st.integers(0, 2000))
def test_no_bytes_are_too_odd(plain: bytes, rows: int) -> None:
    for repeated in (plain, plain * 3):
        said = _range_of(repeated, rows)
        assert said is None or rows == 0 or 0 <= said.first <= said.last


def test_numbers_with_nulls_are_left() -> None:
    file = io.BytesIO()
    orc.write_table(pa.table({"n": pa.array([*range(600), None], pa.int64())}), file)
    assert ranges(file.getvalue()) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_of_what_hive_wrote_runs_say_what_a_reader_finds(version: str, tmp_path: Path) -> None:
    """Hive's own writer, Java's; its tables are small."""
    told = 0
    for name in fixture_names(version):
        for path in load_fixture(version, name).unpack(tmp_path / name).glob("**/*bucket_0*"):
            if path.stat().st_size < 100 or path.name.endswith("_flush_length"):
                continue
            with path.open("rb") as file:
                if not is_acid(read_tail(file, name).schema):
                    continue
                reader = SourceReader(name, file, no_more_files)
                for stripe in range(len(reader.tail.stripes)):
                    write = reader.one_write(stripe)
                    (batch,) = reader.read_batches(stripe, KEY_FIELDS)
                    assert write in (one_write(batch), None)
                    told += write is not None
    assert told > 20


@pytest.fixture
def source(tmp_path: Path) -> tuple[Partition, SourceFile]:
    """700 rows of write id 5, written with pyorc."""
    partition = Partition(tmp_path)
    name = "delta_0000005_0000005_0000"
    return partition, partition.write(name, [insert(5, row, row) for row in range(700)])


def test_of_ids_the_one_write_is_found_without_their_rows(source: tuple[Partition, SourceFile]) -> None:
    partition, file = source
    with open_source(partition.storage, file) as reader:
        assert reader is not None
        assert reader.one_write(0) == OneWrite(5, bucket_property(), 0, 699)


def test_a_write_id_of_another_directory_is_refused_where_no_row_is_decoded(
    source: tuple[Partition, SourceFile],
) -> None:
    partition, file = source
    moved = file.path.replace("5", "6")
    (partition.path / moved).parent.mkdir()
    (partition.path / file.path).rename(partition.path / moved)
    refused = "has events of the write ids 5 to 5, its directory's name says 6 to 6"
    with open_source(partition.storage, SourceFile(moved, file.size_bytes)) as reader:
        assert reader is not None
        with pytest.raises(CorruptFileError, match=refused):
            reader.one_write(0)
