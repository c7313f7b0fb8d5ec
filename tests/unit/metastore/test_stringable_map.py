"""Hive's text form of a map."""

from __future__ import annotations

import pytest

from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.thrift.stringable_map import parse_stringable_map
from tests.harness.stringable_map_text import stringable_map_text

CASES = [
    ({}, "0:"),
    ({"a": "b"}, "1:1:a1:b"),
    ({"orc.compress": "ZLIB", "k": ""}, "2:12:orc.compress4:ZLIB1:k0:"),
    ({"1:": "2:x"}, "1:2:1:3:2:x"),
    ({"pool": "ü𝄞"}, "1:4:pool3:ü𝄞"),
]
"""The last as Hive 3.1.3 wrote it: lengths count UTF-16 units."""


@pytest.mark.parametrize(("values", "text"), CASES)
def test_a_map_is_written_as_hive_writes_it(values: dict[str, str], text: str) -> None:
    assert stringable_map_text(values) == text


@pytest.mark.parametrize(("values", "text"), CASES)
def test_what_hive_wrote_is_read(values: dict[str, str], text: str) -> None:
    assert parse_stringable_map(text) == values


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_is_no_property(text: str | None) -> None:
    assert parse_stringable_map(text) == {}


@pytest.mark.parametrize("text", ["x", "1:", "1:1:a", "1:9:a1:b", "-1:", "1:-1:a0:", "1:٣:abc0:", "2:1:a1:b"])
def test_a_text_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(MetastoreError, match="not in the form that Hive writes"):
        parse_stringable_map(text)
