"""How far an evaluation is: a line now and then, for a look at many thousands of partitions takes minutes."""

from __future__ import annotations

import logging
import time

from airflow_provider_acid.compaction.quantities import time_left

log = logging.getLogger(__name__)

LINE_SECONDS = 30.0
"""Time between two lines; most evaluations end before the first."""


class EvaluationProgress:
    """Counts what was looked at, beside what is known to be there."""

    def __init__(self) -> None:
        self._begun_monotonic = self._said_monotonic = time.monotonic()
        self._table = self._tables = 0
        self._expected = self._looked_at = 0

    def table(self, number: int, tables: int) -> None:
        """The partitions of a table come next."""
        self._table, self._tables = number, tables

    def expect(self, partitions: int) -> None:
        """A table has so many partitions."""
        self._expected += partitions

    def looked_at(self) -> None:
        """One more was looked at, or passed over."""
        self._looked_at += 1
        now = time.monotonic()
        if now - self._said_monotonic < LINE_SECONDS:
            return
        self._said_monotonic = now
        seconds = now - self._begun_monotonic
        log.info(
            "%s of %s partitions looked at (table %d of %d), %.0f/s, %s",
            f"{self._looked_at:,}",
            f"{self._expected:,}",
            self._table,
            self._tables,
            self._looked_at / seconds,
            time_left(self._looked_at, self._expected, seconds)
            + (" of the tables known" if self._table < self._tables else ""),
        )
