"""Every scenario of Hive's own compactor tests about merging, cleaning and the queue is named by a test or explained.

The ids are those of a catalogue of Hive's tests: W worker and merge, A aborted transactions, M insert-only, L load data
and converted tables, U unbucketed tables, C cleaner, K queue and concurrency. A test names one in its name, in a
docstring, or in the name of its case file; ``docs/hive-scenarios.md`` says of the others which test proves them or why
they do not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "hive-scenarios.md"
SCENARIOS = {"W": 55, "A": 21, "M": 17, "L": 15, "U": 7, "C": 28, "K": 14}
IDS = [f"{letter}-{number:02d}" for letter, count in SCENARIOS.items() for number in range(1, count + 1)]

_IN_TEXT = re.compile(r"(?<![\w-])([WAMLUCK])-(\d\d)(?!\d)")
_IN_NAME = re.compile(r"\bdef test_((?:[wamluck]_?\d\d_)+)")
_ID_IN_NAME = re.compile(r"([wamluck])_?(\d\d)_")


def ids_in(text: str) -> set[str]:
    in_names = [id for ids in _IN_NAME.findall(text) for id in _ID_IN_NAME.findall(ids)]
    found = [*_IN_TEXT.findall(text), *in_names]
    return {f"{letter.upper()}-{number}" for letter, number in found}


def python_files() -> list[Path]:
    return [path for path in sorted((ROOT / "tests").glob("**/*.py")) if path != Path(__file__)]


def ids_in_tests() -> set[str]:
    cases = (ROOT / "tests" / "unit" / "acid" / "cases").glob("*/*.json")
    return set().union(*(ids_in(path.name) for path in cases), *(ids_in(path.read_text()) for path in python_files()))


def explained(document: str) -> dict[str, str]:
    """The explanation of each id that has a line of its own in a table of the document."""
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", document, re.MULTILINE)
    return {id: explanation.strip() for ids, explanation in rows for id in ids_in(ids)}


def unproven(named: Iterable[str], document: str) -> list[str]:
    lines = explained(document)
    return [id for id in IDS if id not in {*named} and not lines.get(id)]


def test_every_scenario_is_named_by_a_test_or_explained() -> None:
    assert unproven(ids_in_tests(), DOCUMENT.read_text()) == []


def test_a_scenario_that_nobody_names_or_explains_is_noticed() -> None:
    named = ids_in('"""W-16, A-02"""\ndef test_c07_kept() -> None: def test_m_08_b: def test_k01_a16_x: W-123 X-1 W-1')
    assert named == {"W-16", "A-02", "C-07", "M-08", "K-01", "A-16"}
    document = "| W-01, W-02 | refused |\n| W-03 |  |\ntext W-04\n"
    assert set(IDS) - set(unproven(named, document)) == named | {"W-01", "W-02"}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:tests/|test_)[^`]*)`", DOCUMENT.read_text()))))
def test_a_test_that_the_document_names_exists(name: str) -> None:
    if name.startswith("tests/"):
        assert (ROOT / name).exists()
    else:
        assert any(f"def {name}(" in path.read_text() for path in python_files())


def test_the_document_explains_no_scenario_that_does_not_exist() -> None:
    assert set(explained(DOCUMENT.read_text())) <= set(IDS)
