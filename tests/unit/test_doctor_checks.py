"""What a check tells of what it saw, and which options the doctor's remedies name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from airflow_provider_acid import doctor
from airflow_provider_acid.doctor.check import Check, problem, warning
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.options import OPTIONS

NOWHERE: Any = None


def test_a_problem_is_told_however_many_warnings_come_before_it() -> None:
    warnings = [warning(f"table {number} could not be asked", "", "") for number in range(20)]
    check = Check("rights on tables", "none is missing", lambda site: [*warnings, problem("no right on z.t", "", "")])
    findings = list(check.findings(NOWHERE))
    assert (findings[0].severity, findings[0].seen) == (Severity.PROBLEM, "no right on z.t")
    assert (findings[-1].severity, findings[-1].seen) == (Severity.WARNING, "and 11 more of the kind")


def test_a_threshold_that_a_remedy_names_is_an_option() -> None:
    texts = " ".join(
        node.value
        for path in Path(doctor.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)*_threshold\b", texts))
    assert named
    assert named <= OPTIONS.keys()
