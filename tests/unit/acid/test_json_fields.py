"""JSON that somebody else wrote: whatever it holds, it is read, or refused in this package's own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pytest

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.names import METADATA_CONTENT, parse_data_format, parse_flush_length
from airflow_provider_acid.compaction.publish.journal import PublicationJournal
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.health.history import HistoryRecord
from airflow_provider_acid.health.json_lines import from_lines
from airflow_provider_acid.metastore.hive3.row_notes import RowNotes
from airflow_provider_acid.plan.plan import CompactionPlan, SyntheticIds
from airflow_provider_acid.plan.result import CompactionResult

HOSTILE = {
    "nothing": b"",
    "no text": b"\xff\xfe",
    "zero bytes": b"\0" * 10,
    "lists without end": b"[" * 200_000,
    "objects without end": b'{"a":' * 100_000,
    "nested too deep": b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
    "a list": b"[]",
    "a number": b"1",
    "a huge number": b"9" * 5000,
    "a huge number in an object": b'{"format_version":' + b"9" * 5000 + b"}",
    "not a number": b'{"format_version":NaN}',
    "infinity": b'{"format_version":-Infinity}',
    "another version": b'{"format_version":1}',
    "half a surrogate": b'{"format_version":2,"attempt":"\\ud800","targets":["\\ud800"],"transaction":1}',
    "wrong types": b'{"format_version":2,"attempt":5,"targets":"a","transaction":"b"}',
}
NO_OBJECT = set(HOSTILE) - {"another version", "half a surrogate", "wrong types"}


@pytest.mark.parametrize("name", sorted(NO_OBJECT))
def test_what_is_no_json_object_is_refused_by_the_name_of_its_file(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        fields.decoded(HOSTILE[name], "s3://a/plan.json")
    assert "s3://a/plan.json" in str(raised.value)


def test_an_object_of_a_hundred_levels_is_read() -> None:
    document = b'{"a":' + b"[" * 99 + b"]" * 99 + b"}"
    assert set(fields.decoded(document, "it")) == {"a"}


READERS: dict[str, Callable[[bytes], object]] = {
    "a plan": CompactionPlan.from_json,
    "a result": CompactionResult.from_json,
    "a journal": PublicationJournal.from_json,
    "_metadata_acid": lambda content: parse_data_format(content, "base_1/_metadata_acid"),
    "_flush_length": lambda content: parse_flush_length(content[:-8] + b"\xff" * 8, "bucket_00000_flush_length"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
@pytest.mark.parametrize("reader", sorted(READERS))
def test_every_reader_of_a_stored_file_refuses_it_in_the_family_of_errors(reader: str, name: str) -> None:
    with pytest.raises(AcidError):
        READERS[reader](HOSTILE[name])


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_notes_and_records_of_others_are_passed_over(name: str) -> None:
    assert RowNotes.parse(HOSTILE[name]) == RowNotes()
    assert from_lines(HistoryRecord, HOSTILE[name], "file") == []


def test_what_hive_writes_is_read() -> None:
    assert parse_data_format(METADATA_CONTENT, "it") == "compacted"


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (fields.integer, 2**63 - 1, None),
        (fields.integer, -(2**63), None),
        (fields.integer, 2**63, "an integer of 64 bits"),
        (fields.integer, 10**4000, "an integer of 64 bits"),
        (fields.number, 10**400, "a finite number"),
        (fields.number, 1.5, None),
        (fields.text, "äöü 😀", None),
        (fields.text, "a\udfff", "text that can be encoded"),
    ],
)
def test_values_that_nothing_can_be_done_with_are_refused(
    read: Callable[[fields.JsonObject, str], object], value: object, expected: str | None
) -> None:
    if expected is None:
        assert read({"a": value}, "a") == value
        return
    with pytest.raises(ConfigurationError, match=expected):
        read({"a": value}, "a")


def test_a_number_that_is_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a finite number"):
        fields.number(fields.decoded(json.dumps({"a": 1}).replace("1", "1e400"), "it"), "a")


@dataclass(frozen=True)
class Point:
    x: int
    names: tuple[str, ...]
    inner: SyntheticIds | None = None


def test_a_dataclass_is_read_as_it_was_written_and_what_may_be_none_may_be_missing() -> None:
    for point in (Point(1, ("a",), SyntheticIds(2, 3)), Point(1, ())):
        assert fields.read_as(Point, asdict(point)) == point
    assert fields.read_as(Point, {"x": 1, "names": [], "others": 7}) == Point(1, ())


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"names": []}, "'x': expected an integer"),
        ({"x": True, "names": []}, "'x': expected an integer"),
        ({"x": 1}, "'names': expected a list"),
        ({"x": 1, "names": "ab"}, "'names': expected a list"),
        ({"x": 1, "names": [1]}, "'names': expected a string"),
        ({"x": 1, "names": [], "inner": []}, "'inner': expected an object"),
        ({"x": 1, "names": [], "inner": {"write_id": 1}}, "'bucket_property': expected an integer"),
    ],
)
def test_a_field_of_another_kind_or_none_is_refused_by_name(data: fields.JsonObject, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        fields.read_as(Point, data)


def test_a_dataclass_with_fields_that_json_has_no_words_for_is_an_error_of_its_author() -> None:
    @dataclass(frozen=True)
    class Odd:
        at: complex

    with pytest.raises(TypeError, match="complex"):
        fields.read_as(Odd, {"at": 1})
