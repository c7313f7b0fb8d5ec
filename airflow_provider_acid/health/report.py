"""What the doctor found last, as the page shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportedFinding:
    """One answer of one of its checks; severity is ``ok``, ``note``, ``warning`` or ``problem``."""

    check: str
    severity: str
    seen: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Report:
    """What it found.

    :param looked_ms: when, in milliseconds since 1970.
    :param findings: worst first.
    """

    looked_ms: int
    findings: tuple[ReportedFinding, ...]
