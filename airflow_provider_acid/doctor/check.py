"""A check: a question with a name, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.exceptions import AcidError

MOST_SHOWN = 10
"""Findings of one check; how many more there are is said."""


@dataclass(frozen=True)
class Seen:
    """What a check saw that somebody should know; see :class:`~.finding.Finding`."""

    severity: Severity
    seen: str
    why: str
    remedy: str


def note(seen: str, why: str, remedy: str) -> Seen:
    """Good to know."""
    return Seen(Severity.NOTE, seen, why, remedy)


def warning(seen: str, why: str, remedy: str) -> Seen:
    """Costs time or space, or will."""
    return Seen(Severity.WARNING, seen, why, remedy)


def problem(seen: str, why: str, remedy: str) -> Seen:
    """Compactions or cleanings do not work until somebody does something."""
    return Seen(Severity.PROBLEM, seen, why, remedy)


@dataclass(frozen=True)
class Check:
    """One question about a site.

    :param fine: what is seen where nothing is wrong.
    :param look: yields what is not as it should be; changes nothing.
    """

    name: str
    fine: str
    look: Callable[[Site], Iterable[Seen]]

    def findings(self, site: Site) -> Iterator[Finding]:
        """Its answers; that it could not be carried out is one, too."""
        try:
            with Supervised(self.name):
                # The worst first: what is not shown may be no worse than what is.
                seen = sorted(self.look(site), key=lambda one: -one.severity.rank)
        except AcidError as error:
            why = "nothing is known about what this check looks at"
            yield Finding(self.name, Severity.WARNING, f"{error.subject}: {error.reason}", why, error.remedy)
            return
        if not seen:
            yield Finding(self.name, Severity.OK, self.fine)
        for one in seen[:MOST_SHOWN]:
            yield Finding(self.name, one.severity, one.seen, one.why, one.remedy)
        if len(seen) > MOST_SHOWN:
            yield Finding(self.name, seen[MOST_SHOWN].severity, f"and {len(seen) - MOST_SHOWN} more of the kind")
