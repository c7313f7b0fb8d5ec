"""A diagnosis in few words: for a task's result, for whoever is notified of its failure, and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_acid.doctor.diagnosis import Diagnosis
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.health.report import ReportedFinding

MOST_NAMED = 5
"""Findings that a message names."""

MOST_KEPT = 20
"""Findings of one severity that a task's result has; how many there are is told."""

MOST_CHARACTERS = 500
"""Of one text of a finding."""


def brief(diagnosis: Diagnosis, at_least: Severity) -> str:
    """What is as bad as that or worse, worst first, as one message: how many, and of some what and the remedy."""
    found = sorted(
        (finding for finding in diagnosis.findings if finding.severity.rank >= at_least.rank),
        key=lambda finding: -finding.severity.rank,
    )
    counts = " and ".join(
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity in (Severity.PROBLEM, Severity.WARNING)
        if (count := sum(finding.severity is severity for finding in found))
    )
    told = [
        f"{cut.check}: {cut.seen}." + (f" Remedy: {cut.remedy}." if cut.remedy else "")
        for cut in map(_cut, found[:MOST_NAMED])
    ]
    if len(found) > MOST_NAMED:
        told.append(f"And {len(found) - MOST_NAMED} more, see the log.")
    return "\n".join((f"The doctor found {counts}:", *told))


def small_json(diagnosis: Diagnosis) -> dict[str, object]:
    """The worst, problems and warnings, and how many partitions were looked at and are due; a few kilobytes at most."""
    found = diagnosis.evaluation
    document: dict[str, object] = {"worst": diagnosis.worst.value}
    for severity in (Severity.PROBLEM, Severity.WARNING):
        of_kind = [finding for finding in diagnosis.findings if finding.severity is severity]
        document[f"{severity.value}s"] = _some(of_kind)
        document[f"{severity.value}_count"] = len(of_kind)
    document["partitions"] = 0 if found is None else len(found.evaluated)
    document["due"] = 0 if found is None else len(found.due)
    return document


def for_the_page(diagnosis: Diagnosis) -> list[ReportedFinding]:
    """All findings, worst first."""
    return [
        ReportedFinding(cut.check, cut.severity.value, cut.seen, cut.why, cut.remedy)
        for cut in map(_cut, sorted(diagnosis.findings, key=lambda finding: -finding.severity.rank))
    ]


def _some(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [
        {"check": cut.check, "seen": cut.seen, "why": cut.why, "remedy": cut.remedy}
        for cut in map(_cut, findings[:MOST_KEPT])
    ]


def _cut(finding: Finding) -> Finding:
    return replace(finding, seen=finding.seen[:MOST_CHARACTERS], remedy=finding.remedy[:MOST_CHARACTERS])
