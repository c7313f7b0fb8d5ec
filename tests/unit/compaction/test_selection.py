from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.exceptions import ConfigurationError


@pytest.mark.parametrize(
    ("include", "exclude", "name", "matches"),
    [
        (["sales.orders"], [], "sales.orders", True),
        (["Sales.Orders "], [], "SALES.orders", True),
        (["sales.orders"], [], "sales.orders2", False),
        (["sales.*"], [], "sales.orders", True),
        (["sales.*"], [], "sales2.orders", False),
        (["*.events_?"], [], "web.events_1", True),
        (["*.events_?"], [], "web.events_10", False),
        (["sales.[op]*"], [], "sales.parts", True),
        (["sales.*"], ["sales.tmp_*"], "sales.tmp_1", False),
        (["sales.*"], [" SALES.tmp_* "], "sales.tmp_1", False),
        (["sales.tmp_1"], ["sales.tmp_*"], "sales.tmp_1", False),
        (["sales.*", "web.*"], [], "web.logs", True),
    ],
)
def test_a_table_is_selected_by_any_pattern_unless_one_excludes_it(
    include: list[str], exclude: list[str], name: str, matches: bool
) -> None:
    assert TableSelection.of(include, exclude).matches(name) is matches


@pytest.mark.parametrize("include", [[], [" "]])
def test_a_selection_of_nothing_is_refused(include: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="table selection: names no table. Remedy: "):
        TableSelection.of(include)


@pytest.mark.parametrize(("include", "exclude"), [(["orders"], []), (["a.b.c"], []), (["sales.*"], ["orders"])])
def test_a_pattern_without_exactly_one_dot_is_refused(include: list[str], exclude: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="is not of the form database.table"):
        TableSelection.of(include, exclude)


def test_names_without_wildcards_are_known_as_such() -> None:
    selection = TableSelection.of(["sales.orders", "sales.*", "web.log?", "web.[ab]"])
    assert selection.exact_names == ("sales.orders",)
    assert selection.names_exactly("Sales.Orders")
    assert not selection.names_exactly("sales.parts")
    assert selection.database_patterns == ("sales", "web")


TABLES = ["sales.orders", "sales.TMP_1", "web.logs"]


@pytest.mark.parametrize(
    ("include", "exclude", "told"),
    [
        (["sales.*", "WEB.*"], ["sales.tmp_*"], []),
        (["sales.*", "wbe.*"], [], ["table pattern 'wbe.*' matches no table"]),
        (
            ["sales.x*", "s?les.[yz]"],
            [],
            [f"table pattern {name!r} matches no table" for name in ("sales.x*", "s?les.[yz]")],
        ),
        (["sales.*"], ["sales.tpm_*"], ["excluded pattern 'sales.tpm_*' leaves out no table"]),
        (["sales.*"], ["web.*"], ["excluded pattern 'web.*' leaves out no table"]),
        (["*.*"], ["*.*"], []),
    ],
)
def test_of_patterns_that_no_table_needs_it_is_told(include: list[str], exclude: list[str], told: list[str]) -> None:
    assert [str(pattern) for pattern in TableSelection.of(include, exclude).unmatched(TABLES)] == told


def test_an_excluded_pattern_with_wildcards_may_be_for_tables_to_come() -> None:
    found = TableSelection.of(["sales.*", "wbe.*"], ["sales.tpm_*", "sales.ordres"]).unmatched(TABLES)
    assert [pattern.is_mistake for pattern in found] == [True, False, True]
