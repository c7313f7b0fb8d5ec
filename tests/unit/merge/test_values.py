"""Every value comes out as it went in, whatever its type and whichever way it takes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyorc.predicates import PredicateColumn

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.orc.tail import read_tail, reseal
from airflow_provider_acid.merge.rows import merge_sources
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from tests.unit.merge.acid_files import Partition, bucket_property, delete, insert, read_events

RANDOM = random.Random(11)
# More than one batch of ORC's writer.
ROWS = 1200


def text() -> str:
    return "".join(RANDOM.choice("ab ßé漢🙂\x00'`") for _ in range(RANDOM.randrange(6)))


def maybe(make: Callable[[], Any]) -> Any:
    return None if RANDOM.random() < 0.2 else make()


def number(bits: int) -> Callable[[], int]:
    return lambda: RANDOM.choice((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, RANDOM.getrandbits(bits - 1)))


def digits(whole: int, scale: int) -> str:
    sign = RANDOM.choice(("", "-"))
    return f"{sign}{RANDOM.randrange(10**whole)}.{RANDOM.randrange(10**scale):0{scale}d}"


def numbers() -> list[Any]:
    return [maybe(number(32)) for _ in range(RANDOM.randrange(4))]


def nested_struct() -> tuple[Any, ...]:
    return maybe(number(32)), maybe(text), maybe(lambda: [maybe(text) for _ in range(RANDOM.randrange(3))])


# Plain values; decimals come back from pyorc as digits.
VALUES: dict[str, Callable[[], Any]] = {
    "boolean": lambda: RANDOM.random() < 0.5,
    "tinyint": number(8),
    "smallint": number(16),
    "int": number(32),
    "bigint": number(64),
    "float": lambda: RANDOM.choice((1.5, -0.0, float("inf"), 2.0**-149, -3.4028234663852886e38)),
    "double": lambda: RANDOM.choice((0.1, -2.25e300, 5e-324, float("-inf"), RANDOM.random())),
    "string": text,
    "varchar(10)": text,
    "char(5)": lambda: text()[:5].ljust(5),
    "binary": lambda: RANDOM.randbytes(RANDOM.randrange(5)),
    "date": lambda: RANDOM.choice((-719162, -141427, -1, 0, 19782, 2932896, RANDOM.randrange(40000))),
    "decimal(10,2)": lambda: digits(8, 2),
    "decimal(20,4)": lambda: digits(16, 4),
    "decimal(38,18)": lambda: digits(20, 18),
    "array<int>": numbers,
    "map<string,int>": lambda: {text(): maybe(number(32)) for _ in range(RANDOM.randrange(4))},
    "map<int,array<string>>": lambda: {number(16)(): maybe(lambda: [maybe(text)]) for _ in range(RANDOM.randrange(4))},
    "struct<x:int,y:string,z:array<string>>": nested_struct,
    "array<struct<a:int,b:map<string,decimal(12,3)>>>": lambda: [
        maybe(lambda: (maybe(number(32)), maybe(lambda: {text(): maybe(lambda: digits(9, 3))})))
        for _ in range(RANDOM.randrange(4))
    ],
    "struct<s:struct<t:struct<u:int>>>": lambda: (maybe(lambda: (maybe(lambda: (maybe(number(32)),)),)),),
}


def merged_values(partition: Partition, **plan: Any) -> list[Any]:
    return [event[5] for event in partition.read(partition.merge(**plan))]


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("kind", VALUES)
def test_values_and_nulls_at_every_level_stay(
    kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "exact":
        monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: False)
    else:
        monkeypatch.setattr(merge_rows, "ExactRows", None)
    partition = Partition(tmp_path, (kind, "int"))
    rows = [insert(1, row_id, maybe(VALUES[kind]), row_id) for row_id in range(ROWS)]
    partition.write("delta_0000001_0000001_0000", rows[: ROWS // 2])
    partition.write("delta_0000001_0000001_0001", rows[ROWS // 2 :])
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, row_id, 2) for row_id in range(0, ROWS, 7)])
    before = [
        event
        for name in ("delta_0000001_0000001_0000", "delta_0000001_0000001_0001")
        for event in read_events(tmp_path / name / "bucket_00000")
        if event[3] % 7
    ]
    assert repr(partition.read(partition.merge())) == repr(before)


SECONDS_0001, SECONDS_9999 = -62_135_596_800, 253_402_300_799

TIMESTAMPS = {
    "0001-01-01": (SECONDS_0001, 0),
    "1582-10-04": (-12_219_379_200, 500_000_000),
    "1677-09-21": (-9_223_372_037, 1),
    "1969-12-31 23:59:58.5": (-2, 500_000_000),
    "the last second before 1970": (-1, 0),
    "1970": (0, 0),
    "1970 and a nanosecond": (0, 1),
    "2024": (1_709_251_199, 999_999_999),
    "2262-04-12": (9_223_372_037, 0),
    "9999-12-31": (SECONDS_9999, 999_999_999),
}


@pytest.mark.parametrize("kind", ["timestamp", "array<timestamp>", "struct<t:timestamp>", "map<int,timestamp>"])
@pytest.mark.parametrize("moment", TIMESTAMPS)
def test_timestamps_stay_to_the_nanosecond(moment: str, kind: str, tmp_path: Path) -> None:
    stamp = TIMESTAMPS[moment]
    value = {"a": [stamp, None], "s": (stamp,), "m": {1: stamp, 2: None}}.get(kind[0], stamp)
    partition = Partition(tmp_path, (kind,))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, value), insert(1, 1, None)])
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, (1_709_251_199, 0) if kind == "timestamp" else None)])
    partition.write("delete_delta_0000003_0000003_0000", [delete(2, 0, 3)])
    assert merged_values(partition) == [(value,), (None,)]


def test_the_nanosecond_before_1970_is_what_orc_makes_of_it(tmp_path: Path) -> None:
    """ORC stores seconds rounded towards zero, so that this moment reads as 1970 plus its fraction, in Hive as well."""
    partition = Partition(tmp_path, ("timestamp",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, (-1, 999_999_999))])
    before = read_events(tmp_path / "delta_0000001_0000001_0000/bucket_00000")
    assert before[0][5] == ((0, 999_999_999),)
    assert partition.read(partition.merge()) == before


def test_timestamps_that_statistics_hide_from_arrow_take_the_exact_way(tmp_path: Path, monkeypatch: Any) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    rows = [insert(1, 0, (1_000_000, 1)), insert(1, 1, (-100, 500_000_000))]
    partition.write("delta_0000001_0000001_0000", rows)
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: True)
    assert partition.read(partition.merge()) == rows


def test_a_file_with_more_columns_than_the_table_is_refused(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("int",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1, 2)], types=("int", "int"))
    with pytest.raises(UnsupportedTableError, match="has 2 columns, the table has 1"):
        partition.merge()


@pytest.mark.parametrize("kind", ["uniontype<int,string>", "timestamp with local time zone", "interval_day_time"])
def test_a_column_type_that_is_not_supported_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("int",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, 1)])
    partition.types = (kind,)
    with pytest.raises(UnsupportedTableError, match=f"column c0: the type {kind} is not supported"):
        partition.merge()


@pytest.mark.parametrize("way", ["arrow", "exact"])
def test_columns_may_be_called_like_those_of_acid(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    partition = Partition(tmp_path, ("string", "string", "struct<bucket:string,rowid:string>"))
    partition.names = ["operation", "row", "bucket"]
    rows = [insert(1, 0, "a", None, ("b", "c"))]
    partition.write("delta_0000001_0000001_0000", rows)
    merged = partition.merge()
    assert partition.read(merged) == rows
    with (tmp_path / str(merged.attempt)).open("rb") as file:
        assert read_tail(file, "merged").schema.children[5].names == ("operation", "row", "bucket")


def test_text_that_is_not_utf8_is_not_changed(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.orc as orc

    partition = Partition(tmp_path, ("string",))
    binary: Any = pa.array([b"\xff\x00a"], pa.binary())
    bad = pa.StringArray.from_buffers(1, *binary.buffers()[1:])
    row = pa.StructArray.from_arrays([bad], names=["c0"])
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    keys = [(0, pa.int32()), (1, pa.int64()), (bucket_property(), pa.int32()), (0, pa.int64()), (1, pa.int64())]
    table = pa.table([*(pa.array([value], kind) for value, kind in keys), row], names=names)
    (tmp_path / "delta_0000001_0000001_0000").mkdir()
    orc.write_table(table, tmp_path / "delta_0000001_0000001_0000/bucket_00000")
    partition.add("delta_0000001_0000001_0000")
    merged = partition.merge()
    row_back: Any = orc.ORCFile(tmp_path / str(merged.attempt)).read_stripe(0).column(5)
    found = row_back.field(0)
    assert found.cast(pa.binary())[0].as_py() == b"\xff\x00a"


def set_calendar(path: Path, calendar: int) -> None:
    content = path.read_bytes()
    with path.open("rb") as file:
        tail = read_tail(file, "source")
    path.write_bytes(reseal(content, tail.schema, tail.user_metadata, calendar))


@pytest.mark.parametrize("calendar", [0, 1, 2])
def test_days_and_the_footers_calendar_are_carried(calendar: int, tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("date",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, -719_162)])
    set_calendar(tmp_path / "delta_0000001_0000001_0000/bucket_00000", calendar)
    partition.rows.clear()
    partition.add("delta_0000001_0000001_0000")
    merged = partition.merge()
    with (tmp_path / str(merged.attempt)).open("rb") as file:
        assert read_tail(file, "merged").calendar == calendar
    assert partition.read(merged)[0][5] == (-719_162,)


@pytest.mark.parametrize(("kind", "value", "refused"), [
    ("date", -141_428, True), ("date", -141_427, False), ("timestamp", (-12_219_379_200, 0), True),
    ("timestamp", (0, 0), False), ("int", -141_428, False),
])  # fmt: skip
def test_different_calendars_are_refused_only_where_a_value_depends_on_them(
    kind: str, value: Any, refused: bool, tmp_path: Path
) -> None:
    partition = Partition(tmp_path, (kind,))
    for calendar, write_id in enumerate((1, 2), 1):
        name = f"delta_000000{write_id}_000000{write_id}_0000"
        partition.write(name, [insert(write_id, 0, value)])
        set_calendar(tmp_path / name / "bucket_00000", calendar)
    partition.rows.clear()
    partition.add("delta_0000001_0000001_0000")
    partition.add("delta_0000002_0000002_0000")
    if refused:
        with pytest.raises(UnsupportedTableError, match="before 1582-10-15 in files of different calendars"):
            partition.merge()
    else:
        assert merged_values(partition) == [(value,), (value,)]


PREDICATES = {
    "tinyint": pyorc.TypeKind.BYTE,
    "smallint": pyorc.TypeKind.SHORT,
    "int": pyorc.TypeKind.INT,
    "bigint": pyorc.TypeKind.LONG,
    "string": pyorc.TypeKind.STRING,
}


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("kind", PREDICATES)
def test_no_bloom_filter_hides_a_row(kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hive 4.0.1 was seen to miss the row of -128 by the filter that ORC's C++ library writes for a tinyint column."""
    monkeypatch.setattr(merge_sources, "is_exact", lambda source, target: way == "arrow")
    partition = Partition(tmp_path, (kind,))
    values: list[Any] = list("0123456789") if kind == "string" else list(range(-100, 0, 9))
    partition.write("delta_0000001_0000001_0000", [insert(1, place, value) for place, value in enumerate(values)])
    merged = partition.merge(orc=OrcOptions(bloom_filter_columns=("c0",)))
    column = PredicateColumn(PREDICATES[kind], index=7)
    found = []
    for value in values:
        with (tmp_path / str(merged.attempt)).open("rb") as file:
            found += [value for row in pyorc.Reader(file, predicate=column == value) if row[5] == (value,)]
    assert found == values


def test_bloom_filters_are_written_for_numbers_and_strings(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("array<int>", "string", "double", "bigint"))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, [1], "a", 0.5, 1)])
    merged = partition.merge(orc=OrcOptions(bloom_filter_columns=("C1", "c2", "c3")), stripe_copy=CopiedStripes.NEVER)
    with (tmp_path / str(merged.attempt)).open("rb") as file:
        assert pyorc.Reader(file).read_stripe(0).bloom_filter_columns == (9, 11)


def test_the_exact_way_is_taken_only_where_it_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactRows, "write", None)
    partition = Partition(tmp_path, ("timestamp", "date", "int"))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, (1_709_251_199, 5), -719_162, 1)])
    assert merged_values(partition) == [((1_709_251_199, 5), -719_162, 1)]
