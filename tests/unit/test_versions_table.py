"""The table of Hive versions says what was run, and nothing that was not."""

from __future__ import annotations

from pathlib import Path

from tests.harness.versions_table import PAGE, ROWS, VERSIONS, Report, reports, table

CRASH = "tests.crash.test_matrix.test_next"
CLEAN = "tests.integration.test_compaction_cleaning.test_x"
BESIDE = "tests.judge.test_beside_hive.test_hives_own_cleaner_never_takes_a_row_of_ours"
SITES = ("hive_3", "hive_4", "hive_4_alpha", "hive_4_1", "hive_4_2", "hive_4_2-odd")


def cells(found: list[Report]) -> dict[tuple[str, str], str]:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(found).splitlines()]
    heads = lines[0][1:]
    return {(line[0], head): cell for line in lines[2:] for head, cell in zip(heads, line[1:], strict=True)}


def test_each_version_is_told_by_the_names_of_tests() -> None:
    found = cells(
        [
            *(Report(f"{CLEAN}[{site}]", True) for site in SITES),
            *(Report(f"{BESIDE}[hive_{version}]", True) for version in ("3.1.3", "4.0.1", "4.2.1")),
            *(
                Report(f"{CRASH}[{name}-major-x]", True)
                for name in ("3.1.3 on PostgreSQL", "4.0.0-alpha-1 on PostgreSQL", "4.2.1 on PostgreSQL")
            ),
        ]
    )
    cleaning = [found["cleaning", version] for version in VERSIONS]
    assert cleaning == [*["1 passed"] * 4, "2 passed"]
    beside = [found["beside Hive's own threads, with a reader it does not know", version] for version in VERSIONS]
    assert beside == ["1 passed", "not run", "1 passed", "not run", "1 passed"]
    assert [found["killed at every step", version] for version in VERSIONS] == [
        *("1 passed", "1 passed", "not run", "not run", "1 passed")
    ]


def test_a_failure_and_a_skip_are_not_hidden_behind_what_passed(tmp_path: Path) -> None:
    case = '<testcase classname="tests.integration.test_compaction_cleaning" name="test_{}[hive_4]">{}</testcase>'
    ends = ("", "<failure/>", "<skipped/>")
    text = "".join(case.format(number, end) for number, end in enumerate(ends))
    (tmp_path / "integration.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    assert cells(reports(tmp_path))["cleaning", "4.0.1"] == "**2 failed**"


def test_the_page_has_a_row_for_all_that_is_looked_at() -> None:
    page = PAGE.read_text()
    assert all(f"| {row} |" in page for row in ROWS)
