"""Merged column statistics are exact, or their part is left out: a wrong one hides rows."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.stripes_statistics import merge_statistics

BIG = 2**63 - 1


def column(values: int = 5, has_null: bool | None = False, **parts: dict[str, Any]) -> Any:
    message: Any = message_class("ColumnStatistics")()
    message.numberOfValues = values
    if has_null is not None:
        message.hasNull = has_null
    for name, fields in parts.items():
        part = getattr(message, f"{name}Statistics")
        part.SetInParent()
        for field, value in fields.items():
            if field == "count":
                part.count.extend(value)
            else:
                setattr(part, field, value)
    return message


def merged(*columns: Any, precision: int = 38, scale: int = 2) -> Any:
    (found,) = merge_statistics([[one] for one in columns], [SimpleNamespace(precision=precision, scale=scale)])
    return found


def ints(minimum: int, maximum: int, **more: int) -> dict[str, Any]:
    return {"int": {"minimum": minimum, "maximum": maximum, **more}}


@pytest.mark.parametrize(
    ("what", "one", "other", "expected"),
    [
        ("integers", ints(1, 5, sum=9), ints(-3, 2, sum=-1), ints(-3, 5, sum=8)),
        ("a sum that overflows", ints(1, 5, sum=BIG), ints(1, 2, sum=1), ints(1, 5)),
        ("a sum that overflowed before", ints(1, 5), ints(1, 2, sum=1), ints(1, 5)),
        ("integers without a limit", {"int": {"minimum": 1}}, ints(1, 2), {}),
        ("two parts that differ", ints(1, 2), {"date": {"minimum": 1, "maximum": 2}}, {}),
        ("a part that is missing", ints(1, 2), {}, {}),
        (
            "doubles",
            {"double": {"minimum": 1.5, "maximum": 2.0, "sum": 3.5}},
            {"double": {"minimum": -0.5, "maximum": 0.0, "sum": -0.5}},
            {"double": {"minimum": -0.5, "maximum": 2.0, "sum": 3.0}},
        ),
        (
            "signs of zero",
            {"double": {"minimum": 0.0, "maximum": -0.0, "sum": 0.0}},
            {"double": {"minimum": -0.0, "maximum": 0.0, "sum": 0.0}},
            {"double": {"minimum": -0.0, "maximum": 0.0, "sum": 0.0}},
        ),
        (
            "NaN among the values",
            {"double": {"minimum": 1.0, "maximum": 2.0, "sum": math.nan}},
            {"double": {"minimum": 1.0, "maximum": 2.0, "sum": 1.0}},
            {},
        ),
        (
            "NaN as a limit",
            {"double": {"minimum": 1.0, "maximum": 2.0, "sum": 1.0}},
            {"double": {"minimum": math.nan, "maximum": math.nan, "sum": 1.0}},
            {},
        ),
        (
            "strings by their bytes",
            {"string": {"minimum": b"a", "maximum": "é".encode(), "sum": 3}},
            {"string": {"minimum": b"Z", "maximum": b"z", "sum": 4}},
            {"string": {"minimum": b"Z", "maximum": "é".encode(), "sum": 7}},
        ),
        (
            "strings cut short",
            {"string": {"lowerBound": b"aa", "upperBound": b"zz", "sum": 3000}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 4}},
            {"string": {"lowerBound": b"aa", "upperBound": b"zz", "sum": 3004}},
        ),
        (
            "strings cut short inside the others' range",
            {"string": {"lowerBound": b"bb", "upperBound": b"bc", "sum": 3000}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 4}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 3004}},
        ),
        (
            "a bound that is also a value",
            {"string": {"lowerBound": b"b", "upperBound": b"c", "sum": 3000}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 4}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 3004}},
        ),
        (
            "strings without limits",
            {"string": {"sum": 4}},
            {"string": {"minimum": b"b", "maximum": b"c", "sum": 4}},
            {},
        ),
        ("booleans", {"bucket": {"count": [3]}}, {"bucket": {"count": [4]}}, {"bucket": {"count": [7]}}),
        ("buckets of different number", {"bucket": {"count": [3]}}, {"bucket": {"count": [4, 1]}}, {}),
        (
            "decimals by their value",
            {"decimal": {"minimum": "9.5", "maximum": "100", "sum": "120.75"}},
            {"decimal": {"minimum": "-10", "maximum": "99.99", "sum": "0.25"}},
            {"decimal": {"minimum": "-10", "maximum": "100", "sum": "121"}},
        ),
        (
            "a decimal sum with too many digits",
            {"decimal": {"minimum": "1", "maximum": "2", "sum": "9" * 36}},
            {"decimal": {"minimum": "1", "maximum": "2", "sum": "1"}},
            {"decimal": {"minimum": "1", "maximum": "2"}},
        ),
        (
            "decimals that are none",
            {"decimal": {"minimum": "1", "maximum": "x", "sum": "1"}},
            {"decimal": {"minimum": "1", "maximum": "2", "sum": "1"}},
            {},
        ),
        (
            "dates",
            {"date": {"minimum": -9, "maximum": 3}},
            {"date": {"minimum": 1, "maximum": 4}},
            {"date": {"minimum": -9, "maximum": 4}},
        ),
        ("binaries", {"binary": {"sum": 3}}, {"binary": {"sum": 4}}, {"binary": {"sum": 7}}),
        ("binaries whose lengths overflow", {"binary": {"sum": BIG}}, {"binary": {"sum": 4}}, {}),
        (
            "timestamps",
            {"timestamp": {"minimum": 1, "maximum": 9, "minimumUtc": 2, "maximumUtc": 8}},
            {"timestamp": {"minimum": 0, "maximum": 3, "minimumUtc": 1, "maximumUtc": 4}},
            {"timestamp": {"minimum": 0, "maximum": 9, "minimumUtc": 1, "maximumUtc": 8}},
        ),
        (
            "timestamps with nanoseconds",
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8, "minimumNanos": 7, "maximumNanos": 5}},
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8, "minimumNanos": 6, "maximumNanos": 9}},
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8, "minimumNanos": 6, "maximumNanos": 9}},
        ),
        (
            "timestamps of which one names no nanoseconds",
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8, "minimumNanos": 7, "maximumNanos": 5}},
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8}},
            {"timestamp": {"minimumUtc": 2, "maximumUtc": 8}},
        ),
        (
            "timestamps of old writers",
            {"timestamp": {"minimum": 1, "maximum": 9}},
            {"timestamp": {"minimum": 0, "maximum": 3}},
            {"timestamp": {"minimum": 0, "maximum": 9}},
        ),
        (
            "timestamps in different terms",
            {"timestamp": {"minimum": 1, "maximum": 9}},
            {"timestamp": {"minimumUtc": 0, "maximumUtc": 3}},
            {},
        ),
        (
            "collections",
            {"collection": {"minChildren": 0, "maxChildren": 3, "totalChildren": 9}},
            {"collection": {"minChildren": 1, "maxChildren": 5, "totalChildren": 8}},
            {"collection": {"minChildren": 0, "maxChildren": 5, "totalChildren": 17}},
        ),
    ],
)
def test_each_type_is_merged_exactly_or_left_out(
    what: str, one: dict[str, Any], other: dict[str, Any], expected: dict[str, Any]
) -> None:
    for first, second in ((one, other), (other, one)):
        found, wanted = merged(column(**first), column(**second)), column(10, **expected)
        assert found == wanted, what
        # Equality of messages does not see the sign of a zero.
        assert str(found) == str(wanted), what


def test_a_sum_of_short_decimals_fits_64_bits_or_is_left_out() -> None:
    halves = [column(decimal={"minimum": "1", "maximum": "1", "sum": "6" + "0" * 15}) for _ in range(2)]
    assert merged(*halves, precision=18, scale=2).decimalStatistics.sum == ""
    assert merged(*halves, precision=19, scale=2).decimalStatistics.sum == "12" + "0" * 15


def test_a_file_without_values_says_nothing() -> None:
    assert merged(column(**ints(1, 5, sum=9)), column(0, True)) == column(5, True, **ints(1, 5, sum=9))
    assert merged(column(**ints(1, 5, sum=9)), column(0, int={"sum": 0})) == column(5, **ints(1, 5, sum=9))
    assert merged(column(0, True), column(0, True)) == column(0, True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"int": {"sum": 0}}, {"int": {"sum": 0}}, {"int": {"sum": 0}}),
        ({"timestamp": {}}, {"timestamp": {}}, {"timestamp": {}}),
        ({"int": {"sum": 0}}, {"int": {}}, {}),
        ({"int": {"sum": 0}}, {}, {}),
        ({}, {}, {}),
    ],
)
def test_files_without_values_keep_what_all_of_them_say(
    one: dict[str, Any], other: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged(column(0, True, **one), column(0, True, **other)) == column(0, True, **expected)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((False, False), False),
        ((False, True), True),
        ((None, True), True),
        ((None, False), None),
        ((None, None), None),
    ],
)
def test_null_is_known_to_be_absent_only_where_every_file_says_so(
    flags: tuple[bool | None, ...], expected: bool | None
) -> None:
    found = merged(*(column(has_null=flag) for flag in flags))
    assert (found.hasNull if found.HasField("hasNull") else None) == expected


def test_bytes_on_disk_are_added_where_all_files_say_them() -> None:
    one, other = column(), column()
    one.bytesOnDisk = 5
    assert not merged(one, other).HasField("bytesOnDisk")
    other.bytesOnDisk = 7
    assert merged(one, other).bytesOnDisk == 12
