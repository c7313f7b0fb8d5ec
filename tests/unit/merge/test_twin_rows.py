"""Two results of one range of write ids: whether one holds all that the other holds, and what proves nothing."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyorc
import pytest

from airflow_provider_acid.acid.layout import partition_layout
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.merge.twin_rows import Compared, compare_files, compare_rows
from airflow_provider_acid.plan.twins import Result, find_twins, pair_of_compactions
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.merge.acid_files import CONVERTERS, Event, delete, insert

ONE, OTHER = "delta_0000001_0000005_v0000010", "delta_0000001_0000005_v0000012"
NAN, NULL = float("nan"), None
ABORTED = 4

ROWS = [insert(1, 0, 10), insert(1, 1, 11), insert(3, 0, 12)]
IN_BUCKET_1 = [insert(2, 0, 20, bucket=1)]
DELETES = [delete(1, 0, 3), delete(1, 1, 5), delete(1, 1, 2)]

Buckets = dict[int, list[Event]]


def write(path: Path, buckets: Buckets, row: str = "struct<v:bigint>", zone: str = "UTC") -> None:
    path.mkdir()
    schema = (
        f"struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,row:{row}>"
    )
    for bucket, events in buckets.items():
        with (
            (path / f"bucket_{bucket:05d}").open("wb") as file,
            pyorc.Writer(file, schema, timezone=zoneinfo.ZoneInfo(zone), converters=CONVERTERS) as writer,
        ):
            writer.writerows(events)


def twins(path: Path) -> tuple[Result, Result]:
    (results,) = find_twins(partition_layout(LocalStorage(str(path)).list(), {}).deltas)
    return pair_of_compactions(results)


def counts(write_id: int) -> bool:
    return write_id != ABORTED


def compared(path: Path) -> Compared:
    return compare_rows(LocalStorage(str(path)), *twins(path), counts)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({0: ROWS}, {0: ROWS}, (3, 0, 0), id="equal"),
        pytest.param({}, {}, (0, 0, 0), id="nothing"),
        pytest.param({0: ROWS}, {}, (0, 3, 0), id="nothing but one's"),
        pytest.param({0: []}, {0: ROWS}, (0, 0, 3), id="a file without rows"),
        pytest.param({0: ROWS, 1: IN_BUCKET_1}, {0: ROWS}, (3, 1, 0), id="a file is missing"),
        pytest.param({0: ROWS[1:]}, {0: ROWS}, (2, 0, 1), id="the first row is missing"),
        pytest.param({0: ROWS}, {0: [ROWS[0], ROWS[2]]}, (2, 1, 0), id="a row in the middle is missing"),
        pytest.param({0: ROWS}, {0: ROWS[:2]}, (2, 1, 0), id="the last row is missing"),
        pytest.param({0: ROWS[:2]}, {0: ROWS, 1: IN_BUCKET_1}, (2, 0, 2), id="rows of two files are missing"),
        pytest.param({0: [insert(1, 0, NULL)]}, {0: [insert(1, 0, NULL)]}, (1, 0, 0), id="NULL"),
    ],
)
def test_rows_are_counted_by_who_holds_them(
    tmp_path: Path, one: Buckets, other: Buckets, expected: tuple[int, int, int]
) -> None:
    write(tmp_path / ONE, one)
    write(tmp_path / OTHER, other)
    assert compared(tmp_path) == Compared(*expected)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        pytest.param({0: ROWS[:2]}, {0: ROWS[1:]}, "each hold what the other lacks", id="each lacks a row"),
        pytest.param(
            {0: ROWS, 1: IN_BUCKET_1}, {0: [*ROWS, insert(5, 0, 1)]}, "each hold what", id="each lacks one elsewhere"
        ),
        pytest.param({0: ROWS}, {0: [*ROWS[:2], insert(3, 0, 13)]}, "differ in row 0 of write id 3", id="a value"),
        pytest.param({0: ROWS}, {0: [*ROWS[:2], insert(3, 0, NULL)]}, "differ in row 0 of write id 3", id="a NULL"),
        pytest.param({0: ROWS}, {0: [*ROWS, ROWS[-1]]}, "row 0 of write id 3, bucket property", id="a row twice"),
        pytest.param({0: ROWS}, {0: ROWS[::-1]}, "twice, or out of its order", id="rows out of order"),
        pytest.param({0: ROWS}, {0: [*ROWS, insert(ABORTED, 0, 1)]}, "write id 4 is not committed", id="aborted"),
        pytest.param({0: ROWS}, {0: [*ROWS, insert(6, 0, 1)]}, "is not of its directory's", id="another write id"),
        pytest.param({0: ROWS}, {0: [*ROWS, insert(5, 0, 1, bucket=1)]}, "belongs to another bucket", id="bucket"),
        pytest.param({0: ROWS}, {0: [*ROWS, delete(5, 0, 5)]}, "holds operation 2", id="a delete among rows"),
        pytest.param({0: ROWS}, {0: [*ROWS, (0, 5, 1 << 29, 0, 5, None)]}, "holds operation 0", id="no row"),
        pytest.param({0: ROWS}, {0: [*ROWS, (1, 5, 1 << 29, 0, 5, (1,))]}, "holds operation 1", id="an old update"),
    ],
)
def test_what_proves_nothing_is_refused(tmp_path: Path, one: Buckets, other: Buckets, words: str) -> None:
    write(tmp_path / ONE, one)
    write(tmp_path / OTHER, other)
    with pytest.raises(RefusedError, match=words):
        compared(tmp_path)
    (tmp_path / ONE).rename(tmp_path / "between")
    (tmp_path / OTHER).rename(tmp_path / ONE)
    (tmp_path / "between").rename(tmp_path / OTHER)
    with pytest.raises(RefusedError, match=words):
        compared(tmp_path)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(DELETES, DELETES, (3, 0, 0), id="equal"),
        pytest.param(DELETES, DELETES[:1], (1, 2, 0), id="deletes are missing"),
        pytest.param(DELETES[:2], DELETES, (2, 0, 1), id="a second delete of a row is missing"),
    ],
)
def test_deletes_are_told_apart_by_who_deleted(
    tmp_path: Path, one: list[Event], other: list[Event], expected: tuple[int, int, int]
) -> None:
    write(tmp_path / f"delete_{ONE}", {0: one})
    write(tmp_path / f"delete_{OTHER}", {0: other})
    assert compared(tmp_path) == Compared(*expected)


@pytest.mark.parametrize(("rows", "deletes", "expected"), [(3, 3, (6, 0, 0)), (3, 2, (5, 1, 0)), (3, None, (3, 3, 0))])
def test_rows_and_deletes_of_one_compaction_are_one_result(
    tmp_path: Path, rows: int, deletes: int | None, expected: tuple[int, int, int]
) -> None:
    write(tmp_path / ONE, {0: ROWS})
    write(tmp_path / f"delete_{ONE}", {0: DELETES})
    write(tmp_path / OTHER, {0: ROWS[:rows]})
    if deletes is not None:
        write(tmp_path / f"delete_{OTHER}", {0: DELETES[:deletes]})
    assert compared(tmp_path) == Compared(*expected)


@pytest.mark.parametrize("deletes", [1, None])
def test_of_results_of_which_one_lacks_rows_and_the_other_deletes_none_is_whole(
    tmp_path: Path, deletes: int | None
) -> None:
    write(tmp_path / ONE, {0: ROWS[1:]})
    write(tmp_path / f"delete_{ONE}", {0: DELETES})
    write(tmp_path / OTHER, {0: ROWS})
    if deletes is not None:
        write(tmp_path / f"delete_{OTHER}", {0: DELETES[:deletes]})
    with pytest.raises(RefusedError, match="each hold what the other lacks"):
        compared(tmp_path)


def test_deletes_in_a_file_of_another_bucket_are_compared(tmp_path: Path) -> None:
    for name in (ONE, OTHER):
        write(tmp_path / f"delete_{name}", {0: [*DELETES, delete(2, 0, 3, bucket=1)]})
    assert compared(tmp_path) == Compared(4, 0, 0)


@pytest.mark.parametrize(
    ("row", "one", "other", "is_equal"),
    [
        ("struct<v:double>", NAN, NAN, True),
        ("struct<v:double>", 0.0, -0.0, False),
        ("struct<v:struct<w:array<float>>>", ([NAN, 1.0],), ([NAN, 1.0],), True),
        ("struct<v:struct<w:array<float>>>", ([NAN, 1.0],), ([NAN, -1.0],), False),
        ("struct<v:string>", "", NULL, False),
        ("struct<v:decimal(38,10)>", "1.10", "1.10", True),
        ("struct<v:decimal(38,10)>", "99999999999999999999999999.1", "99999999999999999999999999.2", False),
        ("struct<v:timestamp>", (-1, 999_999_999), (-1, 999_999_998), False),
        ("struct<v:timestamp>", (10_000_000_000, 1), (10_000_000_000, 1), True),
    ],
)
def test_values_are_compared_exactly(tmp_path: Path, row: str, one: Any, other: Any, is_equal: bool) -> None:
    write(tmp_path / ONE, {0: [insert(1, 0, one)]}, row)
    write(tmp_path / OTHER, {0: [insert(1, 0, other)]}, row)
    if is_equal:
        assert compared(tmp_path) == Compared(1, 0, 0)
        return
    with pytest.raises(RefusedError, match="differ in row 0 of write id 1"):
        compared(tmp_path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def add_raw(path: Path) -> None:
    path.rename(path.with_name("000000_0"))


def add_second(path: Path) -> None:
    path.with_name("bucket_00000_1").write_bytes(path.read_bytes())


def add_side_file(path: Path) -> None:
    path.with_name("bucket_00000_flush_length").write_bytes(bytes(8))


def nest(path: Path) -> None:
    path.with_name("deeper").mkdir()
    path.rename(path.with_name("deeper") / path.name)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncate, "Remedy: restore the file"),
        (add_raw, "no compaction writes .*000000_0"),
        (add_second, "is not the only one of its bucket"),
        (add_side_file, "no compaction writes .*flush_length"),
        (nest, "no compaction writes .*deeper/bucket_00000"),
    ],
)
def test_files_that_no_compaction_leaves_prove_nothing(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    for name in (ONE, OTHER):
        write(tmp_path / name, {0: ROWS})
    damage(tmp_path / OTHER / "bucket_00000")
    with pytest.raises(RefusedError, match=words):
        compared(tmp_path)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (("struct<v:bigint>", 1, "UTC"), ("struct<w:bigint>", 1, "UTC"), "different names or types"),
        (("struct<v:bigint>", 1, "UTC"), ("struct<v:int>", 1, "UTC"), "different names or types"),
        (("struct<v:timestamp>", (1, 0), "UTC"), ("struct<v:timestamp>", (1, 0), "Asia/Tokyo"), "the zones"),
    ],
)
def test_what_is_written_otherwise_is_not_compared(
    tmp_path: Path, one: tuple[str, Any, str], other: tuple[str, Any, str], words: str
) -> None:
    for name, (row, value, zone) in ((ONE, one), (OTHER, other)):
        write(tmp_path / name, {0: [insert(1, 0, value)]}, row, zone)
    with pytest.raises(RefusedError, match=words):
        compared(tmp_path)


def write_files(path: Path, files: Sequence[tuple[str, bytes]]) -> None:
    path.mkdir()
    for name, content in files:
        (path / name).write_bytes(content)


LARGE = bytes(3 << 20)
FILES = [("000000_0", b"rows"), ("000001_0", LARGE)]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (FILES, (2, 0, 0)),
        ([*FILES, ("_orc_acid_version", b"2")], (2, 0, 0)),
        (FILES[1:], (1, 1, 0)),
        ([*FILES, ("000002_0", b"")], (2, 0, 1)),
        ([FILES[0], ("000001_0", LARGE[:-1] + b"x")], None),
        ([FILES[0], ("000001_0", LARGE[:-1])], None),
        ([FILES[0], ("000002_0", LARGE)], None),
    ],
)
def test_files_without_row_ids_are_compared_byte_by_byte(
    tmp_path: Path, other: list[tuple[str, bytes]], expected: tuple[int, int, int] | None
) -> None:
    write_files(tmp_path / ONE, FILES)
    write_files(tmp_path / OTHER, other)
    if expected is not None:
        assert compare_files(LocalStorage(str(tmp_path)), *twins(tmp_path)) == Compared(*expected)
        return
    with pytest.raises(RefusedError, match="rows without ids"):
        compare_files(LocalStorage(str(tmp_path)), *twins(tmp_path))
