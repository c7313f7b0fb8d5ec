"""What a check saw, why it matters, and what can safely be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"

    @property
    def rank(self) -> int:
        """The worst is the highest."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Finding:
    """One answer of one check.

    :param check: its name.
    :param seen: what was seen, in one clause with its figures.
    :param why: why that matters; empty where it does not.
    :param remedy: what can safely be done; empty where nothing needs to be.
    """

    check: str
    severity: Severity
    seen: str
    why: str = ""
    remedy: str = ""
