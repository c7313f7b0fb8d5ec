"""Parameters come from Python, or as text from a template or a form; what cannot be used is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.parameters import (
    as_boolean,
    as_due_partitions,
    as_entities,
    as_integer,
    as_names,
    as_number,
    as_optional_number,
)

T = {"database": "d", "table": "t"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (["a.b", "c.*"], ["a.b", "c.*"]),
        (("a.b",), ["a.b"]),
        ([], []),
        ("", []),
        ("a.b", ["a.b"]),
        ("a.b, c.*\nd.e", ["a.b", "c.*", "d.e"]),
        ("['a.b', 'c.*']", ["a.b", "c.*"]),
        ('["a.b"]', ["a.b"]),
        ("[]", []),
        ("[ab].orders", ["[ab].orders"]),
        ("[ab].[cd]", ["[ab].[cd]"]),
    ],
)
def test_a_list_of_names_may_be_text(value: object, names: list[str]) -> None:
    assert as_names("tables", value) == names


@pytest.mark.parametrize(
    ("value", "number"), [(0, 0.0), ("0.1", 0.1), (0.1, 0.1), (" 10 ", 10.0), ("1e3", 1000.0), (21600.0, 21600.0)]
)
def test_a_number_may_be_text(value: object, number: float) -> None:
    assert as_number("ratio", value) == number


@pytest.mark.parametrize(("value", "number"), [(1, 1), ("10", 10), (10.0, 10), ("10.0", 10)])
def test_a_whole_number_may_be_text(value: object, number: int) -> None:
    assert as_integer("count", value) == number
    assert isinstance(as_integer("count", value), int)


@pytest.mark.parametrize(
    ("value", "truth"), [(True, True), (False, False), ("True", True), ("false", False), (" TRUE", True)]
)
def test_a_truth_value_may_be_text(value: object, truth: bool) -> None:
    assert as_boolean("flag", value) is truth


def test_partitions_are_objects_with_names() -> None:
    item = {**T, "partition": "ds=1", "type": "MINOR", "reason": "r", "request_id": 7}
    (due,) = as_due_partitions("partitions", [item])
    assert (due.entity, due.type.value, due.reason, due.request_id) == (Entity("d", "t", "ds=1"), "minor", "r", 7)
    assert as_entities("partitions", ({"database": "d", "table": "t", "partition": None},)) == [Entity("d", "t")]
    assert as_due_partitions("partitions", []) == []


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (as_names, 5),
        (as_names, None),
        (as_names, ["a.b", 1]),
        (as_names, {"a.b": 1}),
        (as_names, "['a.b', 1]"),
        (as_number, "many"),
        (as_number, ""),
        (as_number, "nan"),
        (as_number, "inf"),
        (as_number, -0.1),
        (as_number, True),
        (as_number, None),
        (as_integer, 0),
        (as_integer, "1.5"),
        (as_integer, "ten"),
        (as_integer, False),
        (as_boolean, "yes please"),
        (as_boolean, 1),
        (as_boolean, ""),
        (as_entities, "[{'database': 'd', 'table': 't'}]"),
        (as_entities, T),
        (as_entities, None),
        (as_entities, [[T]]),
        (as_entities, [{"database": "d"}]),
        (as_due_partitions, [{**T, "partition": 1}]),
        (as_due_partitions, [{**T, "type": "tiny"}]),
        (as_due_partitions, [{**T, "request_id": "7"}]),
        (as_due_partitions, [T, {"database": "D", "table": "T"}]),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_what_cannot_be_used_is_refused_by_the_parameters_name(
    read: Callable[[str, object], object], value: object
) -> None:
    with pytest.raises(ConfigurationError, match=r"^parameter the_name\b.*Remedy: (give|name) ."):
        read("the_name", value)


def nested(kind: type, levels: int = 100_000) -> object:
    value: object = kind()
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


HOSTILE: dict[str, object] = {
    "a list that is nested deep": nested(list),
    "an object that is nested deep": nested(dict, 5000),
    "a number of 5,000 digits": 10**5000,
    "objects that are nested deep": [nested(dict, 5000)],
    "a name that is nested deep": [{"database": nested(list), "table": "t"}],
    "a request of 5,000 digits": [{"database": "d", "table": "t", "type": "major", "request_id": 10**5000}],
}


READERS = (as_names, as_due_partitions, as_entities, as_number, as_integer, as_optional_number, as_boolean)


# Entities have no request.
@pytest.mark.parametrize(
    ("read", "case"),
    [(read, case) for read in READERS for case in HOSTILE if read is not as_entities or "request" not in case],
)
def test_a_hostile_value_is_refused_by_name(read: Callable[[str, object], object], case: str) -> None:
    with pytest.raises(ConfigurationError, match="parameter some_name"):
        read("some_name", HOSTILE[case])


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "-" * 100_000 + "1]", "[" + "(" * 5000 + "]", "['a'" * 50])
def test_a_text_that_is_nested_deep_is_no_written_list(text: str) -> None:
    assert as_names("include", text) == [text]
