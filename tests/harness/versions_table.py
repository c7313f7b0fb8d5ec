"""Makes the table in docs/hive-versions.md of what ``./run-tests`` reported: what was run on which Hive, and passed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness.crash_table import put_into
from tests.harness.hive_engine_program import HIVE_3, HIVE_4, HIVE_4_1, HIVE_4_2, HIVE_4_ALPHA

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hive-versions.md"
REPORTS = ROOT / ".cache" / "tests"
BEGIN = "<!-- versions table: made by tools/versions-table -->"
END = "<!-- end of the versions table -->"

VERSIONS = {
    HIVE_3: re.compile(r"\bhive_3\b|3\.1\.3 on"),
    HIVE_4_ALPHA: re.compile(r"\bhive_4_alpha\b|hive-4-alpha|4\.0\.0-alpha-1 on"),
    HIVE_4: re.compile(r"\bhive_4(?![\w.])|hive_4\.0\.1|4\.0\.1 on|^[^\[]*\[4\.0\.1\]"),
    HIVE_4_1: re.compile(r"\bhive_4_1\b|hive_4\.1\.0|4\.1\.0 on|^[^\[]*\[4\.1\.0\]"),
    HIVE_4_2: re.compile(r"\bhive_4_2\b|hive_4\.2\.1|4\.2\.1 on|^[^\[]*\[4\.2\.1\]"),
}
"""How the names of tests tell the version."""

ROWS = {
    "from the sensor to the cleaner: minor": r"test_every_hive.*sensor.*\[minor",
    "the same: major": r"test_every_hive.*sensor.*\[major",
    "the same: insert-only tables": r"test_every_hive.*insert_only",
    "every kind of table, read by that Hive's own engine": r"judge\.test_kinds",
    "cleaning beside readers": r"integration\.test_cleaning_beside_readers",
    "cleaning": r"integration\.test_(compaction_cleaning|cleaning_)",
    "beside Hive's own threads, with a reader it does not know": r"test_beside_hive.*(at_every_step|never_takes)",
    "requests of users and of Hive's Initiator": r"test_beside_hive.*(users_ask|initiator)|test_compaction_requests",
    "killed at every step": r"(crash\.test_|soak\.test_crash_)matrix",
}
"""What is looked at, and which tests do."""


@dataclass(frozen=True)
class Report:
    """One test's end.

    :param name: with its module.
    """

    name: str
    passed: bool


def reports(folder: Path) -> list[Report]:
    """What the last run of each group reported."""
    return [
        Report(f"{case.get('classname')}.{case.get('name')}", all(part.tag not in _FAILED for part in case))
        for file in sorted(folder.glob("*.xml"))
        for case in ElementTree.parse(file).iter("testcase")
    ]


_FAILED = ("failure", "error", "skipped")


def table(found: Iterable[Report]) -> str:
    """A Markdown table: a row for each of :data:`ROWS`, a column for each of :data:`VERSIONS`."""
    passed: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for report in found:
        for row, tests in ROWS.items():
            if not re.search(tests, report.name):
                continue
            for version in VERSIONS:
                if VERSIONS[version].search(report.name):
                    (passed if report.passed else failed)[row, version] += 1
    lines = [["", *VERSIONS], ["---", *("--:" for _ in VERSIONS)]]
    lines += [[row, *(_cell(passed, failed, (row, version)) for version in VERSIONS)] for row in ROWS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(passed: Mapping[tuple[str, str], int], failed: Mapping[tuple[str, str], int], place: tuple[str, str]) -> str:
    if failed.get(place):
        return f"**{failed[place]} failed**"
    return f"{passed[place]} passed" if passed.get(place) else "not run"


def main() -> None:
    """Write the page."""
    PAGE.write_text(put_into(PAGE.read_text(encoding="utf-8"), table(reports(REPORTS)), BEGIN, END), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
