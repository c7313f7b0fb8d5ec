"""./run-tests does what the README says of it, as far as that can be seen without running the tests again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPORT = (
    '<testsuites><testsuite tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"/></testsuites>'
)


def test_an_unknown_group_is_an_error_that_names_the_known_ones() -> None:
    answer = subprocess.run(["./run-tests", "unit", "unti"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "unknown group 'unti'" in answer.stderr
    assert all(group in answer.stderr for group in ("lint", "types", "unit", "property", "storage", "integration"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with run-tests and commands that only pretend: pytest reports what ``REPORT_XML`` holds."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup-venv").write_text(
        'python() { case $1 in -m) printf %s "$REPORT_XML" >.cache/tests/integration.xml; return "$STATUS" ;;'
        ' *) command python3 "$@" ;; esac; }\n'
        "ruff() { return 1; }\nlint-imports() { return 1; }\n"
    )
    (tmp_path / "tools" / "keep-spark-classes").write_text("#!/bin/sh\n")
    (tmp_path / "tools" / "keep-spark-classes").chmod(0o755)
    (tmp_path / "run-tests").write_bytes((ROOT / "run-tests").read_bytes())
    return tmp_path


def run(repository: Path, *groups: str, report: str, status: int, ci: bool) -> tuple[int, str]:
    environment = {**os.environ, "REPORT_XML": report, "STATUS": str(status), "CI": "true" if ci else ""}
    answer = subprocess.run(
        ["bash", "run-tests", *groups], capture_output=True, text=True, check=False, cwd=repository, env=environment
    )
    return answer.returncode, answer.stdout


@pytest.mark.parametrize(
    ("report", "status", "ci", "code", "last_line"),
    [
        (REPORT.format(tests=5, failures=0, errors=0, skipped=0), 0, True, 0, "5 passed, 0 failed"),
        (REPORT.format(tests=5, failures=1, errors=1, skipped=0), 1, True, 1, "3 passed, 2 failed"),
        (REPORT.format(tests=5, failures=0, errors=0, skipped=2), 0, False, 0, "3 passed, 0 failed"),
        (REPORT.format(tests=5, failures=0, errors=0, skipped=2), 0, True, 1, "3 passed, 2 failed"),
        (REPORT.format(tests=0, failures=0, errors=0, skipped=0), 5, False, 1, "0 passed, 1 failed"),
        ("", 139, False, 1, "0 passed, 1 failed"),
    ],
    ids=["passed", "failed", "skipped", "skipped on CI", "no tests", "crashed"],
)
def test_the_last_line_counts_and_the_exit_code_agrees(
    repository: Path, report: str, status: int, ci: bool, code: int, last_line: str
) -> None:
    returned, output = run(repository, "integration", report=report, status=status, ci=ci)
    assert (returned, output.splitlines()[-1]) == (code, last_line)


def test_a_failing_group_does_not_stop_the_next(repository: Path) -> None:
    report = REPORT.format(tests=5, failures=0, errors=0, skipped=0)
    returned, output = run(repository, "lint", "integration", report=report, status=0, ci=False)
    assert (returned, output.splitlines()[-1]) == (1, "5 passed, 3 failed")
    assert re.search(r"^lint +1 min +\d+ s +0 +3$", output, re.MULTILINE)
    assert re.search(r"^integration +25 min +\d+ s +5 +0$", output, re.MULTILINE)


def test_tests_that_need_the_same_servers_run_in_one_process(tmp_path: Path) -> None:
    """What run-tests relies on with --dist loadgroup; a pytest that pytest-xdist does not know ignored the groups."""
    (tmp_path / "test_groups.py").write_text(
        """import os
import pytest


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("group", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("a", "b")])
def test_it(group, number, tmp_path_factory):
    place = tmp_path_factory.getbasetemp().parent / group
    place.write_text(place.read_text() if place.exists() else os.environ["PYTEST_XDIST_WORKER"])
    assert place.read_text() == os.environ["PYTEST_XDIST_WORKER"]
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--basetemp", "made", "."]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "8 passed" in answer.stdout, answer.stdout
