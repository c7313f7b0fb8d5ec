"""A diagnosis for people: what is wrong first, then what is due."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from airflow_provider_acid.compaction.quantities import human_bytes
from airflow_provider_acid.doctor.diagnosis import Diagnosis
from airflow_provider_acid.doctor.finding import Finding, Severity

MOST_DUE = 20
"""Partitions that are shown; how many more there are is said."""

_STYLES = {Severity.OK: "green", Severity.NOTE: "cyan", Severity.WARNING: "yellow", Severity.PROBLEM: "bold red"}


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Draw it, as wide as the terminal is."""
    worst_first = sorted(diagnosis.findings, key=lambda finding: -finding.severity.rank)
    odd = [finding for finding in worst_first if finding.severity is not Severity.OK]
    if odd:
        console.print(_table("what was seen, why it matters, what to do", odd, show_lines=True))
    well = [finding for finding in worst_first if finding.severity is Severity.OK]
    if well:
        console.print(_table("what was seen", well, show_lines=False))
    console.print(_due(diagnosis))


def _table(told: str, findings: Sequence[Finding], *, show_lines: bool) -> Table:
    table = Table(show_lines=show_lines, expand=True)
    for name in ("", "check", told):
        table.add_column(name, overflow="fold")
    for finding in findings:
        table.add_row(Text(finding.severity.value, _STYLES[finding.severity]), Text(finding.check), _told(finding))
    return table


def _told(finding: Finding) -> Text:
    parts = [finding.seen, finding.why, finding.remedy and f"→ {finding.remedy}"]
    return Text("\n".join(part for part in parts if part))


def _due(diagnosis: Diagnosis) -> RenderableType:
    due = list(diagnosis.due())
    if diagnosis.evaluation is None:
        return Text("no table was looked at")
    if not due:
        return Text(f"{len(diagnosis.evaluation.evaluated)} partitions looked at, none is due")
    total = human_bytes(sum(seen.input_bytes for *_, seen in due if seen is not None))
    table = Table(title=f"due: {len(due)} of {len(diagnosis.evaluation.evaluated)} partitions, {total} to read")
    table.add_column("partition", overflow="fold")
    table.add_column("type")
    for name in ("deltas", "delete deltas", "bytes", "read cost"):
        table.add_column(name, justify="right")
    table.add_column("reason", overflow="fold")
    for partition, kind, reason, seen in due[:MOST_DUE]:
        figures = ["-"] * 4
        if seen is not None:
            decision = seen.decision
            counts = (str(decision.delta_count), str(decision.delete_delta_count))
            figures = [*counts, human_bytes(seen.input_bytes), human_bytes(seen.read_cost_bytes)]
        table.add_row(Text(partition), kind, *figures, Text(reason))
    if len(due) > MOST_DUE:
        table.caption = f"and {len(due) - MOST_DUE} more"
    return table
