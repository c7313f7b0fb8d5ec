"""What the doctor found last, as the page shows it: one JSON object a line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.exceptions import ConfigurationError

log = logging.getLogger(__name__)


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


def to_lines(findings: Iterable[ReportedFinding]) -> bytes:
    """The content of a report's file."""
    return "".join(json.dumps(asdict(finding)) + "\n" for finding in findings).encode()


def from_lines(data: bytes, path: str) -> tuple[ReportedFinding, ...]:
    """The findings of a file; other lines are passed over with a warning.

    :param path: of the file, for the warning.
    """
    found = []
    for line in io.BytesIO(data):
        try:
            found.append(fields.read_as(ReportedFinding, fields.decoded(line, "finding")))
        except ConfigurationError as error:
            log.warning("a line of the health store's file %s is passed over: %s", path, error)
    return tuple(found)
