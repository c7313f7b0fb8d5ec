"""docs/reliability.md tells of every step what became of a process that died there, as docs/crash-matrix.log says."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.compaction.steps import Step
from tests.harness.crash_record import FAILED, PASSED, CrashRecord, load, store
from tests.harness.crash_table import BEGIN, END, LOG, PAGE, log_text, parse_log, put_into, table

VERSIONS = ("4.0.1", "3.1.3")
RECORD = CrashRecord("4.0.1 on Derby", "4.0.1 t", "major", "fenced", "next try", "a request", "merged anew", PASSED)


def page_table(version: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"Hive {version} (metastore on ")[2].partition("\nHive ")[0].partition(END)[0]


@pytest.mark.parametrize("step", [step.value for step in Step])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_step_is_in_the_table(version: str, step: str) -> None:
    assert f"\n| `{step}` | " in page_table(version)


def test_the_table_is_made_of_the_log() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert put_into(page, table(parse_log(LOG.read_text(encoding="utf-8")))) == page


def test_in_the_log_every_case_is_right() -> None:
    assert {record.result for record in parse_log(LOG.read_text(encoding="utf-8"))} == {PASSED}


def test_a_log_is_read_as_it_was_written() -> None:
    assert parse_log(log_text([RECORD])) == [RECORD]


def test_successors_that_do_different_things_are_told_apart_and_failures_are_counted() -> None:
    other = CrashRecord(*(*RECORD.case[:4], "another run", "a request", "fled", FAILED))
    (row,) = [line for line in table([other, RECORD]).splitlines() if line.startswith("| `")]
    assert row == "| `fenced` | major | a request | next try: merged anew; another run: fled | 1 of 2 right |"


def test_kinds_that_end_alike_share_a_row() -> None:
    other = CrashRecord(*(*RECORD.case[:2], "minor", *RECORD.case[3:], "a request", "merged anew", PASSED))
    (row,) = [line for line in table([other, RECORD]).splitlines() if line.startswith("| `")]
    assert row == "| `fenced` | major; minor | a request | merged anew | 2 of 2 right |"


def test_only_what_lies_between_the_markers_is_replaced() -> None:
    assert put_into(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n"


def test_a_case_that_is_run_again_replaces_its_record(tmp_path: Path) -> None:
    file = tmp_path / "records.json"
    failed = CrashRecord(*RECORD.case)
    other = CrashRecord("3.1.3 on PostgreSQL", *RECORD.case[1:])
    for record in (failed, other, RECORD):
        store(record, file)
    assert load(file) == [RECORD, other]
