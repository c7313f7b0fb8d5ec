"""Columns that changed their types: what is exact becomes the table's, what is not stays as it is in the files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyorc.predicates import PredicateColumn

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.orc.schema import Kind, OrcType, can_be_written, can_become, parse_hive_type
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from tests.unit.merge.acid_files import CONVERTERS, Partition, delete, insert, read_events
from tests.unit.merge.orc_tails import Tail


def types_of(partition: Partition, merged: Merged) -> list[str]:
    assert merged.attempt is not None
    with (partition.path / merged.attempt).open("rb") as file:
        return [str(column) for column in read_tail(file, "merged").schema.children[5].children]


WIDENED = [
    ("tinyint", "bigint", -128, -128),
    ("smallint", "int", 32767, 32767),
    ("int", "bigint", -(2**31), -(2**31)),
    ("varchar(3)", "varchar(10)", "abc", "abc"),
    ("varchar(3)", "string", "abc", "abc"),
    ("decimal(5,2)", "decimal(20,4)", "-123.45", "-123.45"),
    ("array<int>", "array<bigint>", [1, None], [1, None]),
    ("map<string,int>", "map<string,bigint>", {"a": 1}, {"a": 1}),
    ("struct<a:int>", "struct<a:int,b:string>", (1,), (1, None)),
    ("array<struct<a:int>>", "array<struct<a:bigint,b:string>>", [None, (1,)], [None, (1, None)]),
]


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize(("was", "becomes", "value", "expected"), WIDENED)
def test_columns_of_older_files_become_what_the_table_has_now(
    was: str, becomes: str, value: Any, expected: Any, way: str, tmp_path: Path
) -> None:
    extra, stamp = ("timestamp", (-1, 5)) if way == "exact" else ("int", 7)
    partition = Partition(tmp_path, (becomes, extra, "string"))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, value), insert(1, 1, None)], types=(was,))
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, expected, stamp, "new")])
    merged = partition.merge()
    found = [event[5] for event in partition.read(merged)]
    newest = read_events(tmp_path / "delta_0000002_0000002_0000/bucket_00000")[0][5]
    assert found[1:] == [(None, None, None), newest]
    assert found[0][1:] == (None, None)
    assert found[0][0] == newest[0]
    assert types_of(partition, merged) == [becomes, extra, "string"]


@pytest.mark.parametrize(("was", "becomes", "value", "expected"), [case for case in WIDENED if "<" in case[0]])
def test_a_nested_column_of_another_type_takes_the_exact_way(
    was: str, becomes: str, value: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_rows, "ArrowRows", None)
    partition = Partition(tmp_path, (becomes,))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, value)], types=(was,))
    assert [event[5] for event in partition.read(partition.merge())] == [(expected,)]


@pytest.mark.parametrize("way", ["arrow", "exact"])
@pytest.mark.parametrize("was", ["string", "varchar(9)"])
def test_a_text_that_readers_cut_is_found_by_what_is_left_of_it(was: str, way: str, tmp_path: Path) -> None:
    """Hive compares limits and filters of whole values with what it looks for: 'abc' lies before 'abcdef'."""
    extra, stamp = ("timestamp", (-1, 5)) if way == "exact" else ("int", 7)
    partition = Partition(tmp_path, ("varchar(3)", "string", extra))
    rows = [insert(1, number, text, text, stamp) for number, text in enumerate(("aaa", "abcdef", "zzz"))]
    partition.write("delta_0000001_0000001_0000", rows, types=(was, "string", extra))
    partition.write("delete_delta_0000002_0000002_0000", [delete(1, 0, 2)])
    merged = partition.merge(orc=OrcOptions(bloom_filter_columns=("c0", "c1")))
    content = (tmp_path / str(merged.attempt)).read_bytes()
    found = {}
    for column in (7, 8):
        predicate = PredicateColumn(pyorc.TypeKind.STRING, index=column) == "abc"
        reader = pyorc.Reader(io.BytesIO(content), predicate=predicate, converters=CONVERTERS)
        found[column] = [row[5][0] for row in reader]
    assert found == {7: ["abcdef", "zzz"], 8: []}
    assert pyorc.Reader(io.BytesIO(content)).read_stripe(0).bloom_filter_columns == (8,)
    tail = Tail(content)
    for statistics in (tail.footer.statistics, tail.metadata.stripeStats[0].colStats):
        assert [statistics[column].HasField("stringStatistics") for column in (7, 8)] == [False, True]


NOT_EXACT: dict[tuple[str, str], Any] = {
    ("bigint", "int"): 2**40,
    ("int", "string"): 7,
    ("int", "double"): 7,
    ("int", "decimal(12,0)"): 7,
    ("smallint", "float"): 3,
    ("char(3)", "char(5)"): "ab ",
    ("char(3)", "varchar(3)"): "ab ",
    ("char(3)", "string"): "ab ",
    ("string", "char(9)"): "abcdef",
    ("date", "timestamp"): 19782,
    ("date", "string"): 19782,
    ("timestamp", "string"): (1_709_251_199, 5),
    ("decimal(10,4)", "decimal(10,2)"): "1.2345",
    ("decimal(10,2)", "decimal(10,4)"): "1.25",
    ("struct<a:int,b:int>", "struct<a:int>"): (1, 2),
    ("struct<a:int>", "struct<z:int>"): (1,),
    ("struct<a:int>", "struct<A:int>"): (1,),
    ("map<int,int>", "map<string,int>"): {1: 2},
}


@pytest.mark.parametrize("copied", [CopiedStripes.AUTO, CopiedStripes.NEVER])
@pytest.mark.parametrize(("was", "becomes"), NOT_EXACT)
def test_files_that_are_all_of_an_older_type_keep_it(
    was: str, becomes: str, copied: CopiedStripes, tmp_path: Path
) -> None:
    """Readers go on to convert each value as they did before."""
    value, partition = NOT_EXACT[was, becomes], Partition(tmp_path, (becomes, "int"))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, value), insert(1, 1, None)], types=(was,))
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, value, 1)], types=(was, "int"))
    merged = partition.merge(stripe_copy=copied)
    assert [event[5] for event in partition.read(merged)] == [(value, None), (None, None), (value, 1)]
    assert types_of(partition, merged) == [was, "int"]


@pytest.mark.parametrize(("was", "becomes"), NOT_EXACT)
@pytest.mark.parametrize("newer_first", [False, True])
def test_beside_files_of_the_new_type_a_change_that_is_not_known_to_be_exact_is_refused(
    was: str, becomes: str, newer_first: bool, tmp_path: Path
) -> None:
    partition = Partition(tmp_path, (becomes,))
    for number, kind in enumerate((becomes, was) if newer_first else (was, becomes), 1):
        partition.write(f"delta_000000{number}_000000{number}_0000", [insert(number, 0, None)], types=(kind,))
    with pytest.raises(UnsupportedTableError, match="bucket_00000: has column c0 as"):
        partition.merge()


@pytest.mark.parametrize(
    ("files", "becomes", "written"),
    [
        (("string",), "varchar(3)", "string"),
        (("string", "varchar(3)"), "varchar(3)", "string"),
        (("varchar(3)", "string"), "varchar(3)", "string"),
        (("varchar(9)",), "varchar(3)", "varchar(9)"),
        (("varchar(9)", "varchar(3)"), "varchar(3)", "varchar(9)"),
        (("varchar(3)", "varchar(9)", "varchar(6)"), "varchar(3)", "varchar(9)"),
        (("varchar(2)", "varchar(3)"), "varchar(3)", "varchar(3)"),
        (("varchar(9)", "string", "varchar(3)"), "varchar(3)", "string"),
    ],
)
def test_texts_are_not_cut_whatever_length_the_table_has_now(
    files: tuple[str, ...], becomes: str, written: str, tmp_path: Path
) -> None:
    partition = Partition(tmp_path, (becomes,))
    values = {"string": "as long as it likes", "varchar(9)": "123456789", "varchar(6)": "123456"}
    texts = [values.get(kind, "12") for kind in files]
    for number, (kind, value) in enumerate(zip(files, texts, strict=True), 1):
        partition.write(f"delta_000000{number}_000000{number}_0000", [insert(number, 0, value)], types=(kind,))
    merged = partition.merge()
    assert [event[5] for event in partition.read(merged)] == [(value,) for value in texts]
    assert types_of(partition, merged) == [written]


def test_decimals_of_hive_0_11_that_have_no_precision_are_refused() -> None:
    """ORC's C++ library would cut them to six digits behind the point."""
    without = OrcType(Kind.DECIMAL, parameters={"precision": 0, "scale": 0})
    assert not can_become(without, parse_hive_type("c", "decimal(38,18)"))
    assert not can_be_written(OrcType(Kind.LIST, (without,)))
