"""What ``./benchmark`` says follows from what it measured."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.measured import Findings, Measured, ratio
from benchmarks.metering import Cost
from benchmarks.report import as_json, as_picture, as_text


def measured(side: str, *seconds: float) -> Measured:
    return Measured("work", side, tuple(Cost(taken, 2 * taken, 3_000_000, 4_000_000, 5_000_000) for taken in seconds))


def findings(*seconds: float) -> Findings:
    ours, theirs = measured("project", *seconds), measured("Hive 3.1.3", 10.0, 30.0, 20.0)
    return Findings((ours, theirs), (ratio("hive_vs_major10", theirs, ours),), ("a note",))


@pytest.mark.parametrize(
    ("key", "seconds", "is_met"),
    [
        ("hive_vs_major10", 2.0, True),
        ("hive_vs_major10", 2.1, False),
        ("evaluate_vs_listing", 2.0, False),
        ("evaluate_vs_listing", 8.0, True),
    ],
)
def test_a_goal_is_met_from_above_or_from_below(key: str, seconds: float, is_met: bool) -> None:
    assert ratio(key, measured("one", 10.0), measured("other", seconds)).is_met is is_met


def test_a_ratio_is_the_median_of_the_rounds_and_may_stand_for_more_than_was_measured() -> None:
    found = ratio("hive_vs_small100", measured("some", 10.0, 30.0, 20.0), measured("all", 1.0, 2.0, 4.0), 5.0)
    assert (found.rounds, found.value) == ((50.0, 75.0, 25.0), 50.0)
    assert found.cpu_rounds == found.rounds


def test_the_tables_show_medians_and_how_far_the_rounds_lie_apart() -> None:
    lines = list(as_text(findings(2.0, 5.0, 5.0)))
    assert "| work | project | 5.00 | 10.00 | 3 | 4.0 | 5.0 |  |  |  |" in lines
    assert "(`hive_vs_major10`) | 5.00 | 4.00–6.00 | 5.00 | ≥ 5 | yes |" in "\n".join(lines)
    assert "- a note" in lines


def test_the_json_holds_every_round() -> None:
    document = json.loads(as_json(findings(2.0, 5.0, 5.0)))
    assert document["keys"]["hive_vs_major10"]["value"] == 5.0
    assert document["keys"]["hive_vs_major10"]["rounds"] == [5.0, 6.0, 4.0]
    assert [cost["seconds"] for cost in document["measured"][0]["costs"]] == [2.0, 5.0, 5.0]


@pytest.mark.parametrize(("seconds", "is_better"), [(1.0, True), (9.0, False)])
def test_what_is_better_than_its_goal_goes_to_the_right_of_the_picture(seconds: float, is_better: bool) -> None:
    found = findings(seconds, seconds, seconds)
    _, bar = ElementTree.fromstring(as_picture(found)).findall("{http://www.w3.org/2000/svg}rect")
    line = ElementTree.fromstring(as_picture(found)).find("{http://www.w3.org/2000/svg}path")
    assert line is not None
    middle = float(line.attrib["d"][1:].split()[0])
    assert (float(bar.attrib["x"]) >= middle) is is_better
