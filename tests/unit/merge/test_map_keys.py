"""Maps that Python does not hold whole are refused where rows go through Python; through Arrow they stay."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS
from tests.unit.merge.acid_files import Partition, bucket_property, delete
from tests.unit.merge.orc_tails import Tail

DELTA = "delta_0000001_0000001_0000"
MAP = "map<double,int>"
DOUBLES = pa.map_(pa.float64(), pa.int32())
TEXTS = pa.map_(pa.string(), pa.int32())
Entries = list[tuple[Any, Any]]


def written(path: Path, became: str, kind: pa.DataType, values: list[Any], way: str = "exact") -> Partition:
    """A partition of a delta with these values beside an array of integers that became longer, or not."""
    partition = Partition(path, (became, "array<bigint>" if way == "exact" else "array<int>"))
    rows = pa.StructArray.from_arrays(
        [pa.array(values, kind), pa.array([[1]] * len(values), pa.list_(pa.int32()))], ["c0", "c1"]
    )
    ones = pa.array([1] * len(values), pa.int64())
    operations, buckets = (pa.array([number] * len(values), pa.int32()) for number in (0, bucket_property()))
    columns: list[pa.Array[Any]] = [operations, ones, buckets, pa.array(range(len(values)), pa.int64()), ones, rows]
    content = io.BytesIO()
    orc.write_table(pa.Table.from_arrays(columns, names=[*KEY_FIELDS, "row"]), content)
    (path / DELTA).mkdir()
    (path / DELTA / "bucket_00000").write_bytes(content.getvalue())
    partition.add(DELTA)
    return partition


TWICE: Entries = [("a", 1), ("b", 2), ("a", 3)]
LOSING = {
    "a key twice": ("map<string,int>", TEXTS, [TWICE]),
    "0.0 and -0.0": (MAP, DOUBLES, [[(0.0, 1), (-0.0, 2)]]),
    "in a later row": ("map<string,int>", TEXTS, [[("a", 1)], None, TWICE]),
    "in a list": ("array<map<string,int>>", pa.list_(TEXTS), [[None, TWICE]]),
    "in a struct": ("struct<x:int,m:map<string,int>>", pa.struct([("x", pa.int32()), ("m", TEXTS)]), [{"m": TWICE}]),
    "in a map's value": ("map<int,map<string,int>>", pa.map_(pa.int32(), TEXTS), [[(1, None), (2, TWICE)]]),
}


@pytest.mark.parametrize(("became", "kind", "values"), LOSING.values(), ids=LOSING)
def test_a_map_that_would_lose_entries_is_refused(tmp_path: Path, became: str, kind: pa.DataType, values: Any) -> None:
    partition = written(tmp_path, became, kind, values)
    with pytest.raises(UnsupportedTableError, match=r"bucket_00000: has column c0 with maps that have a key twice"):
        partition.merge()


@pytest.mark.parametrize(("became", "kind", "values"), LOSING.values(), ids=LOSING)
def test_through_arrow_it_keeps_them(tmp_path: Path, became: str, kind: pa.DataType, values: Any) -> None:
    partition = written(tmp_path, became, kind, values, "arrow")
    rows: Any = orc.read_table(tmp_path / str(partition.merge().attempt)).column("row")
    expected: Any = pa.array(values, kind)
    assert [row["c0"] for row in rows.to_pylist()] == expected.to_pylist()


def test_maps_with_each_key_once_are_merged(tmp_path: Path) -> None:
    """NULLs, empty maps and the same key in other rows are no reason; nor are rows that are deleted."""
    values = [[(0.0, 1), (1.5, None)], None, [], [(-0.0, 1), (1.5, 2)], [(7.0, 7)]]
    partition = written(tmp_path, MAP, DOUBLES, values)
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, 4, 2)])
    found = [row[0] for *_, row in partition.read(partition.merge())]
    assert found == [None if value is None else dict(value) for value in values[:4]]


def test_statistics_that_count_no_keys_are_no_reason(tmp_path: Path) -> None:
    partition = written(tmp_path, MAP, DOUBLES, [[(1.5, 1)]])
    file = tmp_path / DELTA / "bucket_00000"
    tail = Tail(file.read_bytes())
    tail.metadata.ClearField("stripeStats")
    file.write_bytes(tail.sealed())
    partition.rows.clear()
    partition.add(DELTA)
    assert [row[0] for *_, row in partition.read(partition.merge())] == [{1.5: 1}]
